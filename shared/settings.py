"""Settings, read from the environment once and checked as a whole.

The Functions host turns app settings (on Azure) and `local.settings.json` (locally) into environment variables
before the app is imported, so the environment is the only source. Every fault names its setting.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shared.account import StorageIdentity, is_emulator, refuse_reference, storage_account
from shared.errors import SettingsError

#: The values of `local.settings.json.example`. They are public, so they are refused wherever data is real.
PLACEHOLDER_TOKEN: Final = "placeholder-token-for-the-emulator-only"  # noqa: S105 - public on purpose
PLACEHOLDER_SEAL_KEY: Final = "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI="

DEFAULT_OWNER: Final = "default"
SEAL_KEY_BYTES: Final = 32
#: The front end of Azure Functions ends a response after 230 s; a call that waits must answer before.
WAIT_HARD_CAP_MS: Final = 210_000
#: How much earlier than the host's functionTimeout our own deadline fires: the host's kills every neighbour.
HOST_TIMEOUT_MARGIN_MS: Final = 60_000
_DEFAULT_FUNCTION_TIMEOUT_MS: Final = 30 * 60_000

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::[0-9]{1,5})?")
_LOCAL = re.compile(r"(?:localhost|127(?:\.[0-9]{1,3}){3})(?::[0-9]{1,5})?", re.IGNORECASE)
_BASE_URL = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST.pattern})(?:/[A-Za-z0-9._~-]+)*/?")
_TIMESPAN = re.compile(r"(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2})")
_HOST_JSON = Path(__file__).resolve().parent.parent / "host.json"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of the app. Times are milliseconds unless the name says otherwise."""

    #: A connection string, an account reached by identity, or "" when none is set.
    storage: str | StorageIdentity = field(repr=False)
    #: Owner -> the tokens that name it; several, so that a token can be exchanged without a gap.
    owner_tokens: Mapping[str, tuple[str, ...]] = field(repr=False)
    #: Keys that open sealed values; the first one seals new ones.
    seal_keys: tuple[bytes, ...] = field(repr=False)
    require_token: bool
    max_timeout_ms: int
    max_wait_ms: int
    inline_timeout_ms: int
    lease_ms: int
    lease_renew_ms: int
    #: When the reaper runs: an NCRONTAB expression, as the timer trigger takes it.
    reaper_schedule: str
    #: Storage requests that one run of the reaper may make.
    reaper_requests: int
    #: How long jobs are kept after they have ended, and invocation records, in hours.
    retention_hours: int
    #: Saved connections, as JSON or `@file`; see `shared.apis.connections.reading`.
    connections: str = field(repr=False)
    #: Request headers that tools may see beside the usual ones, in lower case.
    tool_headers: frozenset[str]
    #: Whether the platform's built-in authentication stands in front: its principal header names owners.
    trust_easyauth: bool = False
    #: How long a window waits for a person when neither its tool nor the call says so.
    window_timeout_ms: int = 900_000
    #: Where the app is reached, `https://host`, for links to its windows; "" where nothing says so.
    base_url: str = ""

    @property
    def uses_emulator(self) -> bool:
        return is_emulator(self.storage)


@functools.cache
def current() -> Settings:
    """The settings of this process. Raises `SettingsError`."""
    return load(os.environ)


def load(environ: Mapping[str, str], host_json: Path = _HOST_JSON) -> Settings:
    """Reads and checks every setting. Raises `SettingsError` naming the first illegal one."""
    storage = storage_account(environ)
    emulator = is_emulator(storage)
    owner_tokens = _owner_tokens(environ, emulator=emulator)
    ceiling = max(function_timeout_ms(environ, host_json) - HOST_TIMEOUT_MARGIN_MS, 1_000)
    lease_ms = _integer(environ, "TOOLBOX_LEASE_MS", 60_000, 1_000, 600_000)
    return Settings(
        storage=storage,
        owner_tokens=owner_tokens,
        seal_keys=_seal_keys(environ, emulator=emulator),
        require_token=_boolean(environ, "TOOLBOX_REQUIRE_TOKEN"),
        max_timeout_ms=min(_integer(environ, "TOOLBOX_MAX_TIMEOUT_MS", 1_800_000, 1_000, 86_400_000), ceiling),
        max_wait_ms=_integer(environ, "TOOLBOX_MAX_WAIT_MS", 50_000, 0, WAIT_HARD_CAP_MS),
        inline_timeout_ms=min(WAIT_HARD_CAP_MS, ceiling),
        lease_ms=lease_ms,
        lease_renew_ms=_integer(environ, "TOOLBOX_LEASE_RENEW_MS", lease_ms // 3, 100, lease_ms // 2),
        reaper_schedule=_schedule(environ, "TOOLBOX_REAPER_SCHEDULE", "0 */5 * * * *"),
        reaper_requests=_integer(environ, "TOOLBOX_REAPER_REQUESTS", 1_000, 10, 100_000),
        retention_hours=_integer(environ, "TOOLBOX_RETENTION_HOURS", 7 * 24, 1, 87_600),
        connections=connection_settings(environ)[0],
        tool_headers=frozenset(environ.get("TOOLBOX_TOOL_HEADERS", "").lower().replace(",", " ").split()),
        trust_easyauth=_boolean(environ, "TOOLBOX_TRUST_EASYAUTH"),
        window_timeout_ms=_integer(environ, "TOOLBOX_WINDOW_TIMEOUT_MS", 900_000, 1_000, 86_400_000),
        base_url=_base_url(environ),
    )


def connection_settings(environ: Mapping[str, str] = os.environ) -> tuple[str, str | StorageIdentity]:
    """(the connections setting, the storage account): what a tool of its own process needs."""
    return environ.get("CONNECTIONS", "").strip(), storage_account(environ)


def _owner_tokens(environ: Mapping[str, str], *, emulator: bool) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    single = environ.get("MCP_AUTH_TOKEN", "")
    if single:
        refuse_reference("MCP_AUTH_TOKEN", single)
        _check_token(single, "MCP_AUTH_TOKEN", emulator=emulator)
        found[DEFAULT_OWNER] = (single,)
    text = environ.get("MCP_AUTH_TOKENS", "")
    if text.strip():
        refuse_reference("MCP_AUTH_TOKENS", text)
        for owner, tokens in _owner_map(text).items():
            for token in tokens:
                _check_token(token, f"MCP_AUTH_TOKENS (owner '{owner}')", emulator=emulator)
            found[owner] = found.get(owner, ()) + tokens
    owner_of: dict[str, str] = {}
    for owner, tokens in found.items():
        for token in tokens:
            if owner_of.setdefault(token, owner) != owner:
                raise SettingsError(
                    f"MCP_AUTH_TOKENS: owners '{owner_of[token]}' and '{owner}' share a token; "
                    "each token must name one owner."
                )
    return found


def _owner_map(text: str) -> dict[str, tuple[str, ...]]:
    shape = 'MCP_AUTH_TOKENS must be a JSON object of owner -> token or list of tokens, like {"ana": "…"}'
    try:
        raw = json.loads(text)
    except ValueError:
        raise SettingsError(f"{shape}; it is not JSON.") from None
    if not isinstance(raw, dict):
        raise SettingsError(f"{shape}; it is JSON but no object.")
    owners: dict[str, tuple[str, ...]] = {}
    for owner, value in raw.items():
        if not _OWNER.fullmatch(owner):
            raise SettingsError(
                "MCP_AUTH_TOKENS: an owner's name must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ - "
                "and begin with a letter or digit."
            )
        tokens = value if isinstance(value, list) else [value]
        if not tokens or not all(isinstance(token, str) for token in tokens):
            raise SettingsError(f"MCP_AUTH_TOKENS: owner '{owner}' must have a token or a list of tokens.")
        owners[owner] = tuple(tokens)
    return owners


def _check_token(token: str, name: str, *, emulator: bool) -> None:
    if not token.strip():
        raise SettingsError(f"{name} holds an empty token.")
    if token != token.strip() or not token.isascii() or not token.isprintable():
        # A header cannot carry anything else without loss, so such a token could never be presented.
        raise SettingsError(f"{name} must be printable ASCII without blanks at its ends.")
    if token == PLACEHOLDER_TOKEN and not emulator:
        raise SettingsError(
            f"{name} still is the placeholder of local.settings.json.example, which is public. It is accepted "
            "only with the storage emulator; set a random token."
        )


def _seal_keys(environ: Mapping[str, str], *, emulator: bool) -> tuple[bytes, ...]:
    for name in ("TOOLBOX_SEAL_KEY", "TOOLBOX_SEAL_KEYS"):
        refuse_reference(name, environ.get(name, ""))
    texts = [("TOOLBOX_SEAL_KEY", environ.get("TOOLBOX_SEAL_KEY", "").strip())]
    older = environ.get("TOOLBOX_SEAL_KEYS", "").replace(",", " ").split()
    texts += [("TOOLBOX_SEAL_KEYS", text) for text in older]
    keys: list[bytes] = []
    for name, text in texts:
        if not text:
            continue
        if text == PLACEHOLDER_SEAL_KEY and not emulator:
            raise SettingsError(
                f"{name} still is the placeholder of local.settings.json.example, which is public. It is "
                "accepted only with the storage emulator; set 32 random bytes as base64."
            )
        try:
            key = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != SEAL_KEY_BYTES:
            raise SettingsError(
                f"{name} must be {SEAL_KEY_BYTES} random bytes as base64 (44 characters), for instance from: "
                'python3 -c "import base64, os; print(base64.b64encode(os.urandom(32)).decode())"'
            )
        keys.append(key)
    return tuple(keys)


def _integer(environ: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
        raise SettingsError(f"{name} must be a whole number from {low} to {high}.")
    return int(text)


def _schedule(environ: Mapping[str, str], name: str, default: str) -> str:
    """An NCRONTAB expression of six fields. The host reads it closer; this names the setting."""
    text = environ.get(name, "").strip()
    if not text:
        return default
    fields = text.split()
    if len(fields) != 6 or not all(re.fullmatch(r"[0-9A-Za-z*/,-]+", field) for field in fields):
        raise SettingsError(
            f"{name} must be six fields, second minute hour day month weekday, like '0 */5 * * * *'."
        )
    return text


def _base_url(environ: Mapping[str, str]) -> str:
    """The app's own address without a slash at its end. No request's header is ever asked for it.

    TOOLBOX_BASE_URL, else the name that the platform gives the app (Core Tools and the local host give one).
    """
    text = environ.get("TOOLBOX_BASE_URL", "").strip()
    if text:
        match = _BASE_URL.fullmatch(text)
        if match is None or (match["scheme"] == "http" and not _LOCAL.fullmatch(match["host"])):
            raise SettingsError(
                "TOOLBOX_BASE_URL must be the app's address, like https://tools.example.com; http is for "
                "localhost only."
            )
        return text.rstrip("/")
    host = environ.get("WEBSITE_HOSTNAME", "").strip()
    if not _HOST.fullmatch(host):
        return ""
    return f"{'http' if _LOCAL.fullmatch(host) else 'https'}://{host}"


def _boolean(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(name, "").strip().lower()
    if text in ("", "0", "false", "no"):
        return False
    if text in ("1", "true", "yes"):
        return True
    raise SettingsError(f"{name} must be 1 or 0.")


def function_timeout_ms(environ: Mapping[str, str], host_json: Path) -> int:
    """The host's functionTimeout. An app setting wins over host.json, as in the host itself."""
    text = environ.get("AzureFunctionsJobHost__functionTimeout", "")
    if not text:
        try:
            text = str(json.loads(host_json.read_text("utf-8-sig")).get("functionTimeout", ""))
        except (OSError, ValueError, AttributeError):
            text = ""
    if text.strip() == "-1":
        return 86_400_000
    match = _TIMESPAN.fullmatch(text.strip())
    if match is None:
        return _DEFAULT_FUNCTION_TIMEOUT_MS
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
