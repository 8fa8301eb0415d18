"""The form of an entry, and the names of files that many entries need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Counterpart:
    """`tests`: as pytest names them, from the project's folder; a case in brackets is one of the vectors'.

    `reason`: why there is none, or in which way ours has another answer.
    """

    tests: tuple[str, ...] = ()
    reason: str = ""


type Group = Mapping[str, Counterpart]

_UNIT: Final = "tests/unit/upstream/"
CONFIG: Final = f"{_UNIT}config/test_holodeck_config.py"
ENV: Final = f"{_UNIT}config/test_holodeck_env.py"
SUBSTITUTION: Final = f"{_UNIT}config/test_substitution.py"
COMMAND: Final = f"{_UNIT}config/test_agentzero_command.py"
PARSE: Final = f"{_UNIT}config/test_agentzero_parse.py"
TYPES: Final = f"{_UNIT}config/test_agentzero_types.py"
MERGE: Final = f"{_UNIT}config/test_agentzero_merge.py"
EXAMPLES: Final = f"{_UNIT}config/test_examples.py"
GUARD: Final = f"{_UNIT}config/test_guard.py"
LOADING: Final = f"{_UNIT}config/test_loading.py"
MODEL: Final = f"{_UNIT}config/test_model.py"
URLS: Final = f"{_UNIT}config/test_urls.py"
LIFECYCLE: Final = f"{_UNIT}connection/test_lifecycle.py"
LISTS: Final = f"{_UNIT}connection/test_lists.py"
OWN_TIME: Final = f"{_UNIT}connection/test_own_time.py"
PIECES: Final = f"{_UNIT}connection/test_pieces.py"
POOL: Final = f"{_UNIT}connection/test_pool.py"
PARTS: Final = f"{_UNIT}content/test_parts.py"
STORING: Final = f"{_UNIT}content/test_storing.py"
BLOCKS: Final = f"{_UNIT}content/test_table.py"
COMMANDS: Final = f"{_UNIT}test_commands.py"
EDITING: Final = f"{_UNIT}test_editing.py"
GATEWAY: Final = f"{_UNIT}test_gateway.py"
LOCKING: Final = f"{_UNIT}test_locking.py"
NAMES: Final = f"{_UNIT}test_names.py"
NORMALISE: Final = f"{_UNIT}test_normalise.py"
POLICY: Final = f"{_UNIT}test_policy.py"
PUBLISH: Final = f"{_UNIT}test_publish.py"
REFRESH: Final = f"{_UNIT}test_refresh.py"
SETTINGS: Final = f"{_UNIT}test_settings.py"
STATUS: Final = f"{_UNIT}test_status.py"
SYNC: Final = f"{_UNIT}test_sync.py"
ERRORS: Final = "tests/unit/test_errors.py"
WEB: Final = "tests/unit/web/test_servers.py"
WEB_TOOLS: Final = "tests/unit/web/test_tools.py"
_REAL: Final = "tests/integration/upstream/"
HTTP: Final = f"{_REAL}test_http.py"
REFUSALS: Final = f"{_REAL}test_http_refusals.py"
REPORTS: Final = f"{_REAL}test_reports.py"
SESSIONS: Final = f"{_REAL}test_http_sessions.py"
STREAMS: Final = f"{_REAL}test_sse_and_websocket.py"
STDIO: Final = f"{_REAL}test_stdio.py"
MESSAGES: Final = f"{_REAL}test_stdio_messages.py"
PROCESSES: Final = f"{_REAL}test_stdio_processes.py"
_APP: Final = "tests/acceptance/upstream/"
CHANGES: Final = f"{_APP}test_changes.py"
SERVERS: Final = f"{_APP}test_servers.py"
EVERYTHING: Final = f"{_APP}test_everything.py"


def by(file: str, *names: str) -> Counterpart:
    """Held by these tests of a file."""
    return Counterpart(tuple(f"{file}::{name}" for name in names))


def both(*ones: Counterpart, reason: str = "") -> Counterpart:
    """Held by the tests of all of them."""
    return Counterpart(tuple(test for one in ones for test in one.tests), reason)


def not_ours(reason: str) -> Counterpart:
    return Counterpart(reason=reason)
