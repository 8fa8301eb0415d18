"""`dev.py upstream sync`: asks every configured server what it has, and makes the lock of it.

Every scope is asked: the global one and each project. A server that cannot be asked, or whose configuration is
faulty, keeps what was locked of it before, so that an outage takes no tool away, and is a fault of the run. The
same goes for the prompts alone of a server that has them and cannot list them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shared.errors import ConfigError, MCPError, ToolboxError
from shared.files import replace_text
from shared.upstream import lock
from shared.upstream.changes import Change, changes
from shared.upstream.config.loading import load_all
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.findings import Fault, findings_of
from shared.upstream.lock import Lock, scope_of
from shared.upstream.locking import Asked, locked
from shared.upstream.names import key_of
from shared.upstream.settings import UpstreamSettings

_LOG = logging.getLogger(__name__)

#: Servers that are asked at once.
AT_ONCE: Final = 8

type Connect = Callable[[ServerConfig, UpstreamSettings], ServerConnection]


@dataclass(slots=True)
class Synced:
    """What came of a sync."""

    lock: Lock
    changes: list[Change] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


async def sync(
    settings: UpstreamSettings,
    before: Lock,
    taken: Collection[str] = (),
    *,
    connect: Connect = ServerConnection,
) -> Synced:
    """Asks every server. `taken`: names of the app's own tools and prompts, which no upstream one may have.

    `connect`: makes a connection object; tests put fakes there. Raises nothing for a server's sake.
    """
    done = Synced(Lock())
    asked: list[Asked] = []
    broken: set[tuple[str, str]] = set()
    everything = load_all(settings, refresh=True)
    wrong = findings_of(everything)
    done.faults, done.warnings = wrong.faults, wrong.warnings
    for project, loaded in everything.items():
        # A project's configuration is merged over the global one, which is asked by itself.
        scope = scope_of(project)
        for fault in loaded.faults:
            key = fault.key or (key_of(fault.name) if fault.name else "")
            if fault.project == project and key not in loaded.servers:
                broken.add((scope, key))
        asked += [
            Asked(scope, config)
            for config in loaded.servers.values()
            if not config.disabled and config.project == project
        ]
    gate = asyncio.Semaphore(AT_ONCE)
    await asyncio.gather(*(_ask(one, settings, gate, connect) for one in asked))
    done.faults += [Fault(one.scope, one.config.name, one.reason) for one in asked if one.reason]
    done.lock = locked(asked, settings, before, taken, done.warnings, broken)
    done.changes = changes(before, done.lock)
    return done


async def _ask(one: Asked, settings: UpstreamSettings, gate: asyncio.Semaphore, connect: Connect) -> None:
    async with gate:
        connection = connect(one.config, settings)
        try:
            await connection.connect()
            one.tools = connection.tools
            if (unlisted := connection.prompts_error) is None:
                one.prompts = connection.prompts
            else:
                one.reason = _reason(unlisted)
        except Exception as error:
            one.reason = _reason(error)
        finally:
            try:
                await connection.disconnect()
            except Exception as error:
                one.reason = one.reason or _reason(error)


def _reason(error: Exception) -> str:
    """What to tell of one server; whatever it is, it must not keep the others from being asked."""
    if isinstance(error, MCPError):
        return error.full_message
    if isinstance(error, ToolboxError):
        return error.message
    _LOG.error("a server could not be asked", exc_info=error)
    return f"it could not be asked ({type(error).__name__})"


def differs(path: Path, made: Lock) -> bool:
    """Whether the file says anything else. No file says the same as a lock that holds nothing."""
    try:
        return path.read_text("utf-8") != made.to_text()
    except FileNotFoundError:
        return bool(made.tools or made.prompts)
    except (OSError, UnicodeDecodeError):
        return True


def write(path: Path, made: Lock) -> bool:
    """Writes the lock, whole or not at all. False: the file said the same already."""
    text = made.to_text()
    if path.exists() and not differs(path, made):
        return False
    replace_text(path, text)
    return True


def read_before(path: Path, faults: list[Fault]) -> Lock:
    """What was locked. A file that cannot be read counts as none, and is a fault."""
    try:
        return lock.read(path)
    except ConfigError as error:
        faults.append(Fault(lock.GLOBAL, lock.LOCK_FILE, error.message))
        return Lock()
