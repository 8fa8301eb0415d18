"""What a tool's own process may say to the worker, field by field: the other half of `frames`.

The process is nobody to be trusted: the tool's code runs in it, and may write into the pipe whatever it likes.
So every message is looked at before anything is done with it, and the code behind may rely on its shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.jobs.isolation.frames import FrameError
from shared.telemetry.apart import SERVICES
from shared.telemetry.outgoing import METHODS, OTHER_METHOD
from shared.telemetry.spans import TEXT_LIMIT
from shared.tool.result import Wrapped
from shared.tool.spec import RESULT_KEY, JsonObject

#: Levels of objects and lists within each other: what walks through data by recursion still gets to its end.
DEPTH_LIMIT: Final = 800
#: Characters of what was said that an error repeats.
_SHOWN: Final = 40
_METHODS: Final = (*sorted(METHODS), OTHER_METHOD)


@dataclass(frozen=True, slots=True)
class Field:
    """`legal`: what it may be, for the error's text."""

    legal: str
    fits: Callable[[Any], bool]
    is_required: bool = True


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_block(value: Any) -> bool:
    """A content block, as far as anything here looks at it."""
    return isinstance(value, dict) and (value.get("type") != "text" or isinstance(value.get("text"), str))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_TEXT: Final = Field("a text", lambda value: isinstance(value, str))
_TEXT_OR_NULL: Final = Field("a text or null", lambda value: value is None or isinstance(value, str))
_OPTIONAL_TEXT: Final = Field("a text", _TEXT.fits, is_required=False)
_TEXTS: Final = Field("a list of texts", _are_texts)
_WHOLE: Final = Field("a whole number", _is_whole)
_NUMBER: Final = Field("a whole number that is not below 0", lambda value: _is_whole(value) and value >= 0)
_NUMBER_OR_NULL: Final = Field("a number or null", lambda value: value is None or _is_number(value))
_FLAG: Final = Field("true or false", lambda value: isinstance(value, bool))
_OBJECT: Final = Field("an object", lambda value: isinstance(value, dict))
_OBJECT_OR_NULL: Final = Field("an object or null", lambda value: value is None or isinstance(value, dict))
_BLOCKS: Final = Field(
    "a list of content blocks", lambda value: isinstance(value, list) and all(map(_is_block, value))
)
_SERVICE: Final = Field(
    f"one of {', '.join(SERVICES)}", lambda value: isinstance(value, str) and value in SERVICES
)
_METHOD: Final = Field(
    f"one of {', '.join(_METHODS)}", lambda value: isinstance(value, str) and value in _METHODS
)
_SHORT: Final = Field(
    f"a text of at most {TEXT_LIMIT} characters",
    lambda value: isinstance(value, str) and len(value) <= TEXT_LIMIT,
)
_STATUS: Final = Field(
    "a status of HTTP or null", lambda value: value is None or (_is_whole(value) and 100 <= value <= 599)
)
_SPAN_ID: Final = Field(
    "16 hex digits", lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{16}", value))
)
_FEW: Final = Field("a whole number from 0 to 1000", lambda value: _is_whole(value) and 0 <= value <= 1000)
_MOMENT: Final = Field("nanoseconds since 1970", lambda value: _is_whole(value) and 0 <= value < 1 << 63)
_SECONDS: Final = Field("seconds of at most a day", lambda value: _is_number(value) and 0 <= value <= 86_400)
_WRAPPED: Final = Field(
    f"one of {[str(kind) for kind in Wrapped]}", lambda value: value in [str(kind) for kind in Wrapped]
)

type Fields = Mapping[str, Field]

#: What a process may ask for -> what it gives with it.
ASKS: Final[Mapping[str, Fields]] = {
    "settings.read": {},
    "settings.write": {"values": _OBJECT, "version": _TEXT},
    "tools.launch": {"tool": _TEXT, "arguments": _OBJECT, "secrets": _TEXTS},
    "tools.find": {"capabilities": _TEXTS},
    "tools.capabilities": {},
    "checkpoint.part": {"number": _NUMBER},
    "checkpoint.save": {"value": _OBJECT, "part": _TEXT},
    "checkpoint.clear": {},
}

#: What is told of a request to a service, see `shared.telemetry.apart`.
_REQUEST: Final[Fields] = {
    "service": _SERVICE,
    "method": _METHOD,
    "host": _SHORT,
    "status": _STATUS,
    "error": _SHORT,
}

#: Type -> fields. Fields that are not named here mean nothing.
MESSAGES: Final[Mapping[str, Fields]] = {
    "progress": {"percent": _NUMBER_OR_NULL, "message": _TEXT_OR_NULL},
    "log": {"level": _TEXT, "message": _TEXT},
    "record": {"name": _TEXT, "level": _WHOLE, "message": _TEXT},
    "file": {"name": _TEXT, "mimeType": _TEXT},
    "part": {"data": _TEXT},
    "end": {"complete": _FLAG},
    "ask": {
        "number": _NUMBER,
        "what": Field(f"one of {', '.join(ASKS)}", lambda value: _is_ask(value)),
        "given": _OBJECT,
    },
    "drop": {"number": _NUMBER},
    "span": {
        **_REQUEST,
        "id": _SPAN_ID,
        "route": _SHORT,
        "resends": _FEW,
        "start": _MOMENT,
        "end": _MOMENT,
    },
    "request": {**_REQUEST, "seconds": _SECONDS},
    "result": {
        "content": _BLOCKS,
        "structured": _OBJECT_OR_NULL,
        "isError": _FLAG,
        "meta": _OBJECT,
        "wrapped": _WRAPPED,
    },
    "error": {"kind": _TEXT, "message": _OPTIONAL_TEXT, "traceback": _OPTIONAL_TEXT},
}


def checked(message: JsonObject) -> JsonObject:
    """The message itself. Raises `FrameError` that names the field, what it is and what is legal."""
    kind = message.get("type")
    fields = MESSAGES.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise FrameError(f"a message whose type is {_shown(kind)}, not one of {', '.join(MESSAGES)}")
    _check(f"a message '{kind}'", fields, message)
    if _is_deeper(message, DEPTH_LIMIT):
        raise FrameError(f"a message '{kind}' that is nested more than {DEPTH_LIMIT} deep")
    if kind == "ask":
        _check(f"a message 'ask' for {message['what']}", ASKS[message["what"]], message["given"])
    if kind == "result" and message["wrapped"]:
        _check_wrapped(message)
    return message


def _check(what: str, fields: Fields, message: JsonObject) -> None:
    for name, field in fields.items():
        if name not in message:
            if field.is_required:
                raise FrameError(f"{what} without '{name}', which must be {field.legal}")
        elif not field.fits(message[name]):
            raise FrameError(f"{what} whose '{name}' is {_shown(message[name])}, not {field.legal}")


def _check_wrapped(message: JsonObject) -> None:
    structured = message["structured"]
    if structured is None or RESULT_KEY not in structured:
        raise FrameError(f"a message 'result' that is wrapped, without '{RESULT_KEY}' in its 'structured'")
    if message["wrapped"] == Wrapped.TEXT and not isinstance(structured[RESULT_KEY], str):
        raise FrameError(
            f"a message 'result' that wraps a text, with {_shown(structured[RESULT_KEY])} in its place"
        )


def _is_ask(value: Any) -> bool:
    return isinstance(value, str) and value in ASKS


def _is_deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _shown(value: Any) -> str:
    """The kind of a value, with a short text's own words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return f"the text {value[:_SHOWN]!r}"
        case int() | float():
            return "a number"
        case list():
            return "a list"
    return "an object"
