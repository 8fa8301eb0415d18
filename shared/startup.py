"""What is looked at before the app starts, beyond each setting by itself (`shared.settings`).

A start that fails names every setting that is wrong, a line each. What works in part, or is somebody's choice,
is a warning.

    stops the start   tools that run as jobs without storage or seal key; a host.json that would lose jobs or
                      their addresses: messageEncoding, routePrefix, functionTimeout; an extension bundle that
                      is too old
    warns             no token: nothing can be read over HTTP; a token that can be guessed, where data is real;
                      no extension bundle, or one that may be too old; TOOLBOX_MAX_TIMEOUT_MS that
                      functionTimeout cuts; a host.json that is no plain JSON

Values of host.json may be overridden by app settings, `AzureFunctionsJobHost__` and the path with `__` for
dots, as the host does it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared import settings as app_settings
from shared.account import STORAGE_SETTING
from shared.errors import SettingsError
from shared.settings import HOST_TIMEOUT_MARGIN_MS, Settings, function_timeout_ms

if TYPE_CHECKING:  # every start pays for what is imported here
    from shared.tool.spec import ToolSpec

_LOG = logging.getLogger(__name__)

#: The least that our own deadline must be able to be, so that calls can do anything at all.
LEAST_DEADLINE_MS: Final = 10_000
#: Characters of a token; each try costs its sender one request, and nothing counts them. Fewer are warned of,
#: fewer than `shared.settings.LEAST_TOKEN` stop the start.
SHORT_TOKEN: Final = 16
#: The first bundle whose MCP extension publishes output schemas; before it, clients get results unannounced.
OLDEST_BUNDLE: Final = (4, 36, 0)
_OVERRIDE: Final = "AzureFunctionsJobHost"
_MAX_TIMEOUT: Final = "TOOLBOX_MAX_TIMEOUT_MS"
_NAMES_SHOWN: Final = 5


class Finding(NamedTuple):
    """Something that is not as the app needs it. `text` begins with the name of what has to be changed."""

    text: str
    stops: bool = True


def check_host(host_json: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Logs warnings. Raises `SettingsError` with everything that stops the start."""
    _settle(host_findings(host_json, environ))


def check_jobs(settings: Settings, specs: Sequence[ToolSpec]) -> None:
    """The same for what the app's tools need."""
    check_named_jobs(settings, [spec.name for spec in specs if set(spec.rules.execution_modes) != {"inline"}])


def check_named_jobs(settings: Settings, run_as_jobs: Sequence[str]) -> None:
    """The same, where only the names of the tools are known that may run as jobs."""
    _settle(job_findings(settings, sorted(run_as_jobs)))


def faults(root: Path, environ: Mapping[str, str], as_jobs: Sequence[str] = ()) -> list[str]:
    """All that keeps the app in the folder `root` from starting, a text each; it begins with what is wrong.

    `as_jobs`: as for `check_named_jobs`. Loads all that reads settings: for a start that has failed, and for
    whoever looks before an app is started.
    """
    from shared.apis.connections.reading import read_setting
    from shared.upstream.policy import Policy
    from shared.upstream.settings import upstream_settings

    settings, found = app_settings.read(environ, root / "host.json")
    findings = [*host_findings(root / "host.json", environ), *job_findings(settings, sorted(as_jobs))]
    for finding in findings:
        name = finding.text.partition(" ")[0]
        # An illegal setting is not there for what comes after it: it is told of as illegal, not as missing.
        if finding.stops and not any(text.startswith(name) for text in found):
            found.append(finding.text)
    for check in (
        lambda: read_setting(settings.connections),
        lambda: Policy.parse(upstream_settings(environ, root).policy),
    ):
        try:
            check()
        except SettingsError as error:
            found.append(error.message)
    return found


def failure(
    first: SettingsError, root: Path, environ: Mapping[str, str], as_jobs: Sequence[str]
) -> SettingsError:
    """What a start that has failed says: besides the fault that it met first, all others."""
    found = faults(root, environ, as_jobs)
    missing = [line for line in first.message.splitlines() if not any(line in text for text in found)]
    return SettingsError("\n".join([*found, *missing]))


def job_findings(settings: Settings, as_jobs: Sequence[str]) -> list[Finding]:
    """`as_jobs`: names of tools that may run as jobs, sorted."""
    found: list[Finding] = []
    if as_jobs:
        names = ", ".join(as_jobs[:_NAMES_SHOWN]) + (", …" if len(as_jobs) > _NAMES_SHOWN else "")
        why = f"tools that run as jobs need it ({names})"
        if not settings.storage:
            found.append(
                Finding(
                    f"{STORAGE_SETTING} is not set, and {why}: set a connection string, "
                    f"UseDevelopmentStorage=true for the emulator, or, to use an identity, "
                    f"{STORAGE_SETTING}__accountName"
                )
            )
        if not settings.seal_keys:
            found.append(
                Finding(
                    f"TOOLBOX_SEAL_KEY is not set, and {why}: set 32 random bytes as base64, for instance "
                    'from: python3 -c "import base64, os; print(base64.b64encode(os.urandom(32)).decode())"'
                )
            )
    if not settings.owner_tokens and not settings.trust_easyauth:
        text = "MCP_AUTH_TOKEN and MCP_AUTH_TOKENS are not set: nothing can be read over HTTP (503)"
        found.append(Finding(text, stops=False))
    if not settings.uses_emulator:
        found += [_guessable(owner) for owner in _with_short_tokens(settings)]
    return found


def _with_short_tokens(settings: Settings) -> list[str]:
    return sorted(
        owner
        for owner, tokens in settings.owner_tokens.items()
        if any(len(token) < SHORT_TOKEN for token in tokens)
    )


def _guessable(owner: str) -> Finding:
    text = (
        f"MCP_AUTH_TOKEN or MCP_AUTH_TOKENS: a token of owner '{owner}' has fewer than {SHORT_TOKEN} "
        "characters and can be guessed: set one from: "
        'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
    )
    return Finding(text, stops=False)


def host_findings(host_json: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Nothing about a file that is not there: the host does not start without it."""
    try:
        host = json.loads(host_json.read_text("utf-8-sig"))
    except OSError:
        return []
    except ValueError:
        host = None
    if not isinstance(host, dict):
        # The host takes comments, which are no JSON.
        text = (
            "host.json is no plain JSON object: the app cannot read it and takes functionTimeout for 00:30:00"
        )
        return [Finding(text, stops=False)]
    found = [
        _encoding(_value(host, environ, "extensions", "queues", "messageEncoding")),
        _prefix(_value(host, environ, "extensions", "http", "routePrefix")),
        _timeout(host_json, environ),
        _bundle(host.get("extensionBundle")),
    ]
    return [finding for finding in found if finding is not None]


def _encoding(value: Any) -> Finding | None:
    if value is None or str(value).lower() == "base64":
        return None
    return Finding("extensions.queues.messageEncoding of host.json must be base64: jobs' messages are sent so")


def _prefix(value: Any) -> Finding | None:
    if value is not None and not str(value).strip("/"):
        return None
    return Finding(
        'extensions.http.routePrefix of host.json must be "": answers name addresses like /mcp/jobs/ID/status'
    )


def _timeout(host_json: Path, environ: Mapping[str, str]) -> Finding | None:
    limit = function_timeout_ms(environ, host_json) - HOST_TIMEOUT_MARGIN_MS
    if limit < LEAST_DEADLINE_MS:
        least = (HOST_TIMEOUT_MARGIN_MS + LEAST_DEADLINE_MS) // 1_000
        return Finding(
            f"functionTimeout of host.json must be at least {least} s: the app ends a call "
            f"{HOST_TIMEOUT_MARGIN_MS // 1_000} s earlier than the host, whose end takes its neighbours along"
        )
    asked = environ.get(_MAX_TIMEOUT, "").strip()
    if asked.isdecimal() and int(asked) > limit:
        text = f"{_MAX_TIMEOUT} is {asked}, and functionTimeout of host.json allows {limit}: that counts"
        return Finding(text, stops=False)
    return None


def _bundle(bundle: Any) -> Finding | None:
    name, oldest = "extensionBundle.version of host.json", ".".join(map(str, OLDEST_BUNDLE))
    if bundle is None:
        text = (
            f"extensionBundle of host.json is absent: MCP triggers need {oldest} or newer, or their extension"
        )
        return Finding(text, stops=False)
    text = str(bundle.get("version", "")) if isinstance(bundle, dict) else ""
    # NuGet's interval: `[4.36.0, 5.0.0)`, `[4.*, 5.0.0)`, `[4.36.0]`.
    interval = text.strip()
    low, comma, high = interval[1:-1].partition(",")
    lowest, highest = _version(low, star=0), _version(high if comma else low, star=1 << 30)
    if interval[:1] not in ("[", "(") or interval[-1:] not in ("]", ")") or lowest is None or highest is None:
        return Finding(f"{name} must be a range like [{oldest}, 5.0.0)")
    if highest and (highest < OLDEST_BUNDLE or (highest == OLDEST_BUNDLE and interval[-1] == ")")):
        return Finding(
            f"{name} allows none from {oldest} on, which the MCP triggers need: set [{oldest}, 5.0.0)"
        )
    if lowest < OLDEST_BUNDLE:
        text = f"{name} allows older ones than {oldest}, which do not publish output schemas"
        return Finding(text, stops=False)
    return None


def _version(text: str, *, star: int) -> tuple[int, ...] | None:
    """`star`: what `*` stands for. Empty where there is no bound; None for what is no version."""
    parts = text.strip().split(".")
    if parts == [""]:
        return ()
    if not all(part == "*" or (part.isascii() and part.isdecimal()) for part in parts):
        return None
    return tuple(star if part == "*" else int(part) for part in parts)


def _value(host: Mapping[str, Any], environ: Mapping[str, str], *path: str) -> Any:
    """A value of host.json, or of the app setting that overrides it; None when absent. Names in any case."""
    name = "__".join((_OVERRIDE, *path)).lower()
    for key, value in environ.items():
        if key.lower() == name:
            return value
    found: Any = host
    for part in path:
        if not isinstance(found, Mapping):
            return None
        found = next((value for key, value in found.items() if str(key).lower() == part.lower()), None)
    return found


def _settle(findings: Sequence[Finding]) -> None:
    stopping = [finding.text for finding in findings if finding.stops]
    for finding in findings:
        if not finding.stops:
            _LOG.warning("%s", finding.text)
    if stopping:
        raise SettingsError("\n".join(stopping))
