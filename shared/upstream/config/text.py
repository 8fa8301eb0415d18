"""Reads configuration text: JSON, JSON with comments and the like (JSON5), YAML. What cannot be read is a
fault.

Strict JSON is tried first. JSON5 covers what people write by hand: comments, trailing commas, single quotes,
keys without quotes. Of nine PyPI libraries, measured against vectors/agentzero/agentzero-parse.json (the texts
that must be read, and 23 damaged ones that must not be):

    json5         reads all; refuses all but unknown escapes, whose backslash it drops, and a NUL; tells of
                  duplicate keys; does not join the halves of a character (done here)
    pyjson5       reads all; refuses all but a NUL; cannot tell of duplicate keys
    chompjs       reads all; takes the first of two documents, and curly quotes
    demjson3      reads all; drops backslashes too; unchanged since 2022
    dirtyjson     does not read block comments; takes the first of two documents
    commentjson   reads neither block comments nor single quotes
    hjson         reads all, and takes plain words, YAML and braces in a sentence for configuration
    json-repair   reads all, and reads all 23 damaged ones too: it guesses, which is wrong for commands and URLs

So json5, with the backslashes looked at first (`scan.bad_backslash`) and NULs refused where a field is checked.

YAML is read by PyYAML's safe loader, with duplicate keys refused and its aliases counted before they are
followed. No message repeats a piece of the text, and the text is never logged: it may hold secrets.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any, Final

from shared.upstream.config import scan
from shared.upstream.config.parts import Document, json_parts

MAX_CHARACTERS: Final = 1_048_576
#: json5 and PyYAML take about 15 s for a million characters; no configuration written by hand is that long.
MAX_TOLERANT_CHARACTERS: Final = 131_072

_FENCE = re.compile(r"```[A-Za-z0-9]*[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_PLACE = re.compile(r":(\d+) .* at column (\d+)", re.DOTALL)


class Syntax(StrEnum):
    #: As the text begins: `{` or `[` is JSON, anything else YAML.
    ANY = "any"
    JSON = "json"
    YAML = "yaml"

    @classmethod
    def of_file(cls, name: str) -> Syntax:
        return cls.YAML if name.endswith((".yaml", ".yml")) else cls.JSON


def read_text(text: str, syntax: Syntax = Syntax.ANY) -> Document | None:
    """The text's value; None for a blank one. Raises `ValueError` with a message that is safe to show."""
    text = text.removeprefix("\ufeff").strip()
    if (fenced := _FENCE.fullmatch(text)) is not None:
        text = fenced.group(1).strip()
    if not text:
        return None
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"the text is longer than {MAX_CHARACTERS} characters")
    if syntax is Syntax.JSON or (syntax is Syntax.ANY and (text[0] in "{[" or _is_json(text))):
        return _read_json(text)
    if len(text) > MAX_TOLERANT_CHARACTERS:
        raise ValueError(f"YAML may have at most {MAX_TOLERANT_CHARACTERS} characters; write it as strict JSON")
    from shared.upstream.config.yaml_text import read_yaml  # most configurations are JSON and need none of it

    return read_yaml(text)


def _is_json(text: str) -> bool:
    """Whether it begins with a comment of JSON5, which YAML does not know."""
    return text.startswith(("//", "/*"))


def _read_json(text: str) -> Document:
    try:
        return Document(_value(text))
    except ValueError:
        parts = json_parts(text, _value)
        if parts is None:
            # No single entry is to blame, so what is wrong stands around them.
            raise
        return parts


def _value(text: str) -> Any:
    try:
        value = _loaded(text)
        return _joined(value) if _SURROGATE.search(text) else value
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError:
        pass
    if len(text) > MAX_TOLERANT_CHARACTERS:
        raise ValueError(f"it is not strict JSON, as a text of more than {MAX_TOLERANT_CHARACTERS} must be")
    return _json5(text)


def _joined(value: Any) -> Any:
    """The value with the halves of a character (`\\ud83d\\ude00`) made one, which json5 does not do.

    A half that stands alone is a fault: nothing could carry it.
    """
    if isinstance(value, str):
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError(
                "a text holds half a character (\\ud800 to \\udfff without the other half)"
            ) from None
    if isinstance(value, dict):
        return {_joined(key): _joined(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_joined(item) for item in value]
    return value


def _json5(text: str) -> Any:
    import json5

    if (position := scan.bad_backslash(text)) is not None:
        raise ValueError(f"{position}: a backslash in a text must be written twice, like C:\\\\Tools\\\\x")
    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except ValueError as error:
        said = str(error)
        if said.startswith("Duplicate key"):
            raise ValueError("a key stands twice in one object") from None
        where = _PLACE.search(said)
        at = f"line {where.group(1)} column {where.group(2)}: " if where else ""
        what = "the text is cut off" if "end of input" in said else "this is not JSON"
        raise ValueError(f"{at}{what}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found
