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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from shared.account import StorageIdentity, is_emulator, refuse_reference, storage_account
from shared.errors import SettingsError

#: The values of `local.settings.json.example`. They are public, so they are refused wherever data is real.
PLACEHOLDER_TOKEN: Final = "placeholder-token-for-the-emulator-only"  # noqa: S105 - public on purpose
PLACEHOLDER_SEAL_KEY: Final = "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI="

DEFAULT_OWNER: Final = "default"
SEAL_KEY_BYTES: Final = 32
#: Characters of an access token, where data is real: fewer can be tried out within hours. Fewer than
#: `shared.startup.SHORT_TOKEN` are warned of.
LEAST_TOKEN: Final = 8
#: The key that seals, and older ones that still open.
SEAL_KEY_SETTINGS: Final = ("TOOLBOX_SEAL_KEY", "TOOLBOX_SEAL_KEYS")
#: The front end of Azure Functions ends a response after 230 s; a call that waits must answer before.
WAIT_HARD_CAP_MS: Final = 210_000
#: How much earlier than the host's functionTimeout our own deadline fires: the host's kills every neighbour.
HOST_TIMEOUT_MARGIN_MS: Final = 60_000
#: What a job's input may have too. The most is what the host takes of any request.
DEFAULT_INPUT_BYTES: Final = 64 * 1024 * 1024
_INPUT_BYTES: Final = (256 * 1024, 100 * 1024 * 1024)
_DEFAULT_FUNCTION_TIMEOUT_MS: Final = 30 * 60_000
_REAPER_SCHEDULE: Final = "0 */5 * * * *"

# Patterns are texts here: to compile all of them would cost every start more than most of them are worth to it.
_OWNER: Final = r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}"
_HOST: Final = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::[0-9]{1,5})?"
_LOCAL: Final = r"(?i:localhost|127(?:\.[0-9]{1,3}){3})(?::[0-9]{1,5})?"
_BASE_URL: Final = rf"(?P<scheme>https?)://(?P<host>{_HOST})(?:/[A-Za-z0-9._~-]+)*/?"
_HOST_JSON = Path(__file__).resolve().parent.parent / "host.json"


#: Fields that are secret, or hold secrets.
_HIDDEN: Final = frozenset({"storage", "owner_tokens", "seal_keys", "connections"})


class Settings(NamedTuple):
    """All settings of the app. Times are milliseconds unless the name says otherwise.

    No dataclass, which takes five times as long to be made: every start makes it.
    """

    #: A connection string, an account reached by identity, or "" when none is set.
    storage: str | StorageIdentity
    #: Owner -> the tokens that name it; several, so that a token can be exchanged without a gap.
    owner_tokens: Mapping[str, tuple[str, ...]]
    #: Keys that open sealed values; the first one seals new ones.
    seal_keys: tuple[bytes, ...]
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
    connections: str
    #: Request headers that tools may see beside the usual ones, in lower case.
    tool_headers: frozenset[str]
    #: Whether the platform's built-in authentication stands in front: its principal header names owners.
    trust_easyauth: bool = False
    #: How long a window waits for a person when neither its tool nor the call says so.
    window_timeout_ms: int = 900_000
    #: Where the app is reached, `https://host`, for links to its windows; "" where nothing says so.
    base_url: str = ""
    #: Bytes of one call: its arguments with what the host tells of its request, as JSON.
    max_input_bytes: int = DEFAULT_INPUT_BYTES

    def __repr__(self) -> str:
        """Without what is secret, or holds it."""
        told = {name: value for name, value in self._asdict().items() if name not in _HIDDEN}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    @property
    def uses_emulator(self) -> bool:
        return is_emulator(self.storage)


@functools.cache
def current() -> Settings:
    """The settings of this process. Raises `SettingsError`."""
    return load(os.environ)


def load(environ: Mapping[str, str], host_json: Path = _HOST_JSON) -> Settings:
    """Reads and checks every setting. Raises `SettingsError` that names each illegal one, a line each."""
    settings, faults = read(environ, host_json)
    if faults:
        raise SettingsError("\n".join(faults))
    return settings


def read(environ: Mapping[str, str], host_json: Path = _HOST_JSON) -> tuple[Settings, list[str]]:
    """(the settings, what is wrong with them); an illegal one is as if it were not set."""
    faults: list[str] = []

    def checked[T](of: Callable[..., T], instead: Any, *args: Any, **options: Any) -> T:
        try:
            return of(environ, *args, **options)
        except SettingsError as error:
            faults.append(error.message)
        fallback: T = instead
        return fallback

    def number(name: str, default: int, low: int, high: int) -> int:
        return checked(integer, default, name, default, low, high)

    def flag(name: str) -> bool:
        return checked(_boolean, False, name)

    storage = checked(storage_account, "")
    emulator = is_emulator(storage)
    single = checked(_single_token, "", emulator=emulator)
    named = checked(_named_tokens, {}, emulator=emulator)
    keys: list[bytes] = []
    for name in SEAL_KEY_SETTINGS:
        keys += checked(_seal_keys, [], name, emulator=emulator)
    ceiling = max(function_timeout_ms(environ, host_json) - HOST_TIMEOUT_MARGIN_MS, 1_000)
    lease_ms = number("TOOLBOX_LEASE_MS", 60_000, 1_000, 600_000)
    settings = Settings(
        storage=storage,
        owner_tokens=checked(_owner_tokens, {}, single, named),
        seal_keys=tuple(keys),
        require_token=flag("TOOLBOX_REQUIRE_TOKEN"),
        max_timeout_ms=min(number("TOOLBOX_MAX_TIMEOUT_MS", 1_800_000, 1_000, 86_400_000), ceiling),
        max_wait_ms=number("TOOLBOX_MAX_WAIT_MS", 50_000, 0, WAIT_HARD_CAP_MS),
        inline_timeout_ms=min(WAIT_HARD_CAP_MS, ceiling),
        lease_ms=lease_ms,
        lease_renew_ms=number("TOOLBOX_LEASE_RENEW_MS", lease_ms // 3, 100, lease_ms // 2),
        reaper_schedule=checked(_schedule, _REAPER_SCHEDULE, "TOOLBOX_REAPER_SCHEDULE", _REAPER_SCHEDULE),
        reaper_requests=number("TOOLBOX_REAPER_REQUESTS", 1_000, 10, 100_000),
        retention_hours=number("TOOLBOX_RETENTION_HOURS", 7 * 24, 1, 87_600),
        connections=environ.get("CONNECTIONS", "").strip(),
        tool_headers=frozenset(environ.get("TOOLBOX_TOOL_HEADERS", "").lower().replace(",", " ").split()),
        trust_easyauth=flag("TOOLBOX_TRUST_EASYAUTH"),
        window_timeout_ms=number("TOOLBOX_WINDOW_TIMEOUT_MS", 900_000, 1_000, 86_400_000),
        base_url=checked(_base_url, ""),
        max_input_bytes=number("TOOLBOX_MAX_INPUT_BYTES", DEFAULT_INPUT_BYTES, *_INPUT_BYTES),
    )
    return settings, faults


def connection_settings(environ: Mapping[str, str] = os.environ) -> tuple[str, str | StorageIdentity]:
    """(the connections setting, the storage account): what a tool of its own process needs."""
    return environ.get("CONNECTIONS", "").strip(), storage_account(environ)


def _single_token(environ: Mapping[str, str], *, emulator: bool) -> str:
    single = environ.get("MCP_AUTH_TOKEN", "")
    if single:
        refuse_reference("MCP_AUTH_TOKEN", single)
        _check_token(single, "MCP_AUTH_TOKEN", emulator=emulator)
    return single


def _named_tokens(environ: Mapping[str, str], *, emulator: bool) -> dict[str, tuple[str, ...]]:
    text = environ.get("MCP_AUTH_TOKENS", "")
    if not text.strip():
        return {}
    refuse_reference("MCP_AUTH_TOKENS", text)
    found = _owner_map(text)
    for owner, tokens in found.items():
        for token in tokens:
            _check_token(token, f"MCP_AUTH_TOKENS (owner '{owner}')", emulator=emulator)
    return found


def _owner_tokens(
    _: Mapping[str, str], single: str, named: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {DEFAULT_OWNER: (single,)} if single else {}
    for owner, tokens in named.items():
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
        raise SettingsError(f"{shape}; it is JSON of the kind {_shape(raw)}.")
    owners: dict[str, tuple[str, ...]] = {}
    for owner, value in raw.items():
        if not re.fullmatch(_OWNER, owner):
            raise SettingsError(
                "MCP_AUTH_TOKENS: an owner's name must be 1 to 128 of the characters A-Z a-z 0-9 . _ : @ - "
                "and begin with a letter or digit."
            )
        tokens = value if isinstance(value, list) else [value]
        odd = [_shape(token) for token in tokens if not isinstance(token, str)]
        if odd or not tokens:
            got = odd[0] if odd else "an empty list"
            raise SettingsError(
                f"MCP_AUTH_TOKENS: owner '{owner}' must have a token or a list of tokens, not {got}."
            )
        owners[owner] = tuple(tokens)
    return owners


def _check_token(token: str, name: str, *, emulator: bool) -> None:
    if not token.strip():
        raise SettingsError(f"{name} holds an empty token.")
    if token != token.strip() or not token.isascii() or not token.isprintable():
        # A header cannot carry anything else without loss, so such a token could never be presented.
        raise SettingsError(f"{name} must be printable ASCII without blanks at its ends.")
    if len(token) < LEAST_TOKEN and not emulator:
        raise SettingsError(
            f"{name} has fewer than {LEAST_TOKEN} characters, which is accepted only with the "
            'storage emulator. Set one from: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    if token == PLACEHOLDER_TOKEN and not emulator:
        raise SettingsError(
            f"{name} still is the placeholder of local.settings.json.example, which is public. It is accepted "
            "only with the storage emulator; set a random token."
        )


def _seal_keys(environ: Mapping[str, str], name: str, *, emulator: bool) -> list[bytes]:
    """The keys of one of the two settings: one key, or several with blanks or commas between."""
    given = environ.get(name, "")
    refuse_reference(name, given)
    texts = [given.strip()] if name == SEAL_KEY_SETTINGS[0] else given.replace(",", " ").split()
    return [_seal_key(name, text, emulator=emulator) for text in texts if text]


def _seal_key(name: str, text: str, *, emulator: bool) -> bytes:
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
    return key


def integer(environ: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A setting that is a whole number; `default` where it is not set or blank. Raises `SettingsError`."""
    text = environ.get(name, "").strip()
    if not text:
        return default
    legal = f"{name} must be a whole number from {low} to {high}"
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise SettingsError(f"{legal}, not {_shape(text)}.")
    if not low <= int(text) <= high:
        raise SettingsError(f"{legal}, not {int(text)}.")
    return int(text)


def _schedule(environ: Mapping[str, str], name: str, default: str) -> str:
    """An NCRONTAB expression of six fields. The host reads it closer; this names the setting."""
    text = environ.get(name, "").strip()
    if not text:
        return default
    fields = text.split()
    if len(fields) != 6 or not all(re.fullmatch(r"[0-9A-Za-z*/,-]+", field) for field in fields):
        raise SettingsError(
            f"{name} must be six fields, second minute hour day month weekday, like '0 */5 * * * *', "
            f"not {_shape(text)} in {len(fields)} fields."
        )
    return text


def _base_url(environ: Mapping[str, str]) -> str:
    """The app's own address without a slash at its end. No request's header is ever asked for it.

    TOOLBOX_BASE_URL, else the name that the platform gives the app (Core Tools and the local host give one).
    """
    text = environ.get("TOOLBOX_BASE_URL", "").strip()
    if text:
        match = re.fullmatch(_BASE_URL, text)
        if match is None or (match["scheme"] == "http" and not re.fullmatch(_LOCAL, match["host"])):
            raise SettingsError(
                "TOOLBOX_BASE_URL must be the app's address, like https://tools.example.com, not another "
                f"{_shape(text)}; http is for localhost only."
            )
        return text.rstrip("/")
    host = environ.get("WEBSITE_HOSTNAME", "").strip()
    if not host or not re.fullmatch(_HOST, host):
        return ""
    return f"{'http' if re.fullmatch(_LOCAL, host) else 'https'}://{host}"


def _shape(value: object) -> str:
    """What a refused value is. Loaded for a fault only: a start pays for each module."""
    from shared.text import shape_of

    return shape_of(value)


def _boolean(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(name, "").strip().lower()
    if text in ("", "0", "false", "no"):
        return False
    if text in ("1", "true", "yes"):
        return True
    raise SettingsError(f"{name} must be 1 or 0, not another {_shape(text)}.")


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
    days, dot, clock = text.strip().rpartition(".")  # d.hh:mm:ss
    parts = clock.split(":")
    sizes = [len(part) for part in parts]
    if sizes not in ([1, 2, 2], [2, 2, 2]) or not f"{days or dot}{''.join(parts)}".isdecimal():
        return _DEFAULT_FUNCTION_TIMEOUT_MS
    hours, minutes, seconds = map(int, parts)
    return (((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
