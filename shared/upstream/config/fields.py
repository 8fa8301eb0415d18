"""The keys of an entry: other spellings, unknown ones, and which transport an entry means.

Key names only; values are checked by `ServerConfig` and the modules beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from shared.tool.validation import kind_of
from shared.upstream.config.faults import Notes, listed, shown


class TransportType(StrEnum):
    STDIO = "stdio"
    SSE = "sse"
    WEBSOCKET = "websocket"
    #: Streamable HTTP.
    HTTP = "http"


#: Every other spelling of a key -> the key.
OTHER_SPELLINGS: Final[Mapping[str, str]] = {"envFile": "env_file", "serverUrl": "url", "httpUrl": "url"}

#: What each transport uses; what is in neither list of an entry's transport is named in a warning.
TRANSPORT_KEYS: Final[Mapping[TransportType, frozenset[str]]] = {
    TransportType.STDIO: frozenset(
        {"command", "args", "env", "env_file", "encoding", "encoding_error_handler", "config"}
    ),
    TransportType.SSE: frozenset({"url", "headers", "timeout", "sse_read_timeout", "verify"}),
    TransportType.WEBSOCKET: frozenset({"url", "headers", "timeout", "verify"}),
    TransportType.HTTP: frozenset(
        {"url", "headers", "timeout", "sse_read_timeout", "terminate_on_close", "verify"}
    ),
}
_COMMON_KEYS: Final = frozenset(
    {
        "name", "description", "type", "server", "transport", "load_tools", "load_prompts", "request_timeout",
        "init_timeout", "tool_timeout", "disabled", "disabled_tools",
    }
)  # fmt: skip
_FIELDS: Final = _COMMON_KEYS.union(*TRANSPORT_KEYS.values())
#: Written by Agent Zero into its own files; where an entry stands decides, so it is passed over.
_PASSED_OVER: Final = frozenset({"scope"})
KNOWN_KEYS: Final = _FIELDS | OTHER_SPELLINGS.keys()

#: A null in a `type: mcp` entry means "not given" for these, as in HoloDeck's model; elsewhere it is a fault.
_NULLABLE: Final = frozenset(_FIELDS - {
    "name", "type", "server", "transport", "load_tools", "load_prompts", "request_timeout", "disabled",
    "verify",
})  # fmt: skip

LEGAL_TRANSPORTS: Final = "'stdio', 'sse', 'websocket' or 'http'"
#: Exact spellings, for `type: mcp` entries.
_EXACT: Final[Mapping[str, TransportType]] = {
    **{kind.value: kind for kind in TransportType},
    "streamable-http": TransportType.HTTP,
    "streamable_http": TransportType.HTTP,
    "streamableHttp": TransportType.HTTP,
    "streaming-http": TransportType.HTTP,
    "http-stream": TransportType.HTTP,
    "http-streaming": TransportType.HTTP,
    "ws": TransportType.WEBSOCKET,
}
#: As other hosts write them, in lower case without - and _.
_LOOSE: Final[Mapping[str, TransportType]] = {
    **{name.lower().replace("-", "").replace("_", ""): kind for name, kind in _EXACT.items()},
    "https": TransportType.HTTP,
}


def collect(body: Mapping[str, Any], notes: Notes, *, strict: bool) -> dict[str, Any]:
    """The entry's known keys in one spelling each. `strict`: the rules of `type: mcp` entries.

    `httpUrl`, which stands for streamable HTTP, is told of by a `transport` where there is none.
    """
    found: dict[str, Any] = {}
    for key, value in body.items():
        field = OTHER_SPELLINGS.get(key, key)
        if field not in _FIELDS:
            if strict:
                notes.fault(shown(key), "this key is unknown")
            elif key not in _PASSED_OVER:
                notes.warn(shown(key), "this key is unknown and has no effect")
            continue
        if value is None and (not strict or field in _NULLABLE):
            continue
        # An empty URL or file name says nothing; the other spelling may.
        if value == "" and field in ("url", "env_file") and (not strict or field == "env_file"):
            continue
        if field in found and found[field] != value:
            spellings = [
                other for other in (field, *OTHER_SPELLINGS) if OTHER_SPELLINGS.get(other, other) == field
            ]
            given = listed(repr(other) for other in spellings if other in body)
            notes.fault(field, f"{given} say different things; give one of them")
            continue
        found[field] = value
    if not strict and body.get("httpUrl") and not found.keys() & {"type", "transport"}:
        found["transport"] = TransportType.HTTP.value
    return found


def transport_of(fields: dict[str, Any], notes: Notes, *, strict: bool) -> TransportType | None:
    """The transport; None after a fault. Takes `type` and `transport` out of `fields`.

    `http` may turn out to be SSE: the connection tries that when the server answers 404 or 405.
    """
    if strict:
        return _exact_transport(fields, notes)
    given: dict[str, TransportType] = {}
    sound = True
    for key in ("type", "transport"):
        value = fields.pop(key, "")
        if value == "":
            continue
        kind = (
            _LOOSE.get(value.strip().lower().replace("-", "").replace("_", ""))
            if isinstance(value, str)
            else None
        )
        if kind is None:
            said = f"'{shown(value)}'" if isinstance(value, str) else kind_of(value)
            notes.fault(key, f"must be {LEGAL_TRANSPORTS}, not {said}")
            sound = False
        else:
            given[key] = kind
    if not sound:
        return None
    if len(set(given.values())) > 1:
        notes.fault("type", f"'type' says {given['type']} and 'transport' says {given['transport']}")
        return None
    if given:
        return next(iter(given.values()))
    return _inferred(fields, notes)


def _inferred(fields: Mapping[str, Any], notes: Notes) -> TransportType | None:
    if "url" not in fields:
        return TransportType.STDIO
    if fields.get("command"):
        notes.fault("type", "'url' and 'command' are both given; say with 'type' which one is meant")
        return None
    url = fields["url"]
    if isinstance(url, str) and url.lower().startswith(("ws://", "wss://")):
        return TransportType.WEBSOCKET
    return TransportType.HTTP


def _exact_transport(fields: dict[str, Any], notes: Notes) -> TransportType | None:
    kind = fields.pop("type", None)
    if kind != "mcp":
        notes.fault("type", "must be 'mcp'")
    value = fields.pop("transport", TransportType.STDIO.value)
    found = _EXACT.get(value) if isinstance(value, str) else None
    if found is None:
        said = f"'{shown(value)}'" if isinstance(value, str) else kind_of(value)
        notes.fault("transport", f"must be {LEGAL_TRANSPORTS}, not {said}")
    return found


def note_foreign(fields: Mapping[str, Any], transport: TransportType, notes: Notes) -> list[str]:
    """Warns of the keys that only another transport uses, and returns them."""
    foreign = sorted(fields.keys() - _COMMON_KEYS - TRANSPORT_KEYS[transport])
    for key in foreign:
        notes.warn(key, f"'{key}' has no effect with the transport {transport}")
    return foreign
