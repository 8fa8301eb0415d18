"""Reads the files beside a tool: JSON and TOML of the author's, so anything may stand in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from shared.contract.findings import CONFIG_FILE, Findings, step
from shared.tool.spec import JsonObject
from shared.tool.validation import kind_of

MAX_FILE_BYTES: Final = 262_144
#: Objects and arrays within each other. Checks and validators recurse; the interpreter's limit is 1,000 frames.
MAX_DEPTH: Final = 250
_BOM: Final = "\ufeff"


def read_json(folder: Path, file: str, found: Findings) -> JsonObject | None:
    """The JSON object in a file; None: a finding says why not.

    A key that stands twice is a warning, and the last one counts, as everywhere in JSON.
    """
    text = _read_text(folder / file, found)
    if text is None:
        return None
    if text.startswith(_BOM):
        if file == CONFIG_FILE:
            found.error("$", "begins with a byte order mark, which is no JSON", "save it as UTF-8 without BOM")
            return None
        text = text[1:]
    return parse_object(text, found)


def parse_object(text: str, found: Findings) -> JsonObject | None:
    """The JSON object in a text; None: a finding says why not."""

    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON; write a number or null")

    def pairs(members: list[tuple[str, Any]]) -> JsonObject:
        read: JsonObject = {}
        for key, value in members:
            if key in read:
                found.warn("$", f"the key '{key[:80]}' stands twice in one object; the last one counts")
            read[key] = value
        return read

    try:
        document = json.loads(text, parse_constant=no_constant, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        what = "is empty" if not text.strip() else f"is no JSON: {error.msg}"
        found.error("$", what, f"line {error.lineno}, column {error.colno}")
        return None
    except RecursionError:
        found.error("$", f"is nested deeper than {MAX_DEPTH} levels")
        return None
    except ValueError as error:
        found.error("$", f"is no JSON: {str(error)[:200]}")
        return None
    if not isinstance(document, dict):
        found.error("$", f"must be a JSON object, got {kind_of(document)}")
        return None
    return document if _can_be_walked(document, found) else None


def read_toml(folder: Path, file: str, found: Findings) -> JsonObject | None:
    """The tables of a TOML file; None: a finding says why not."""
    import tomllib

    text = _read_text(folder / file, found)
    if text is None:
        return None
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except (ValueError, RecursionError) as error:
        found.error("$", f"is no TOML: {str(error)[:200]}")
        return None


def _read_text(path: Path, found: Findings) -> str | None:
    try:
        if not path.is_file():
            found.error("$", "is no file")
            return None
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        found.error("$", f"cannot be read: {error.strerror or type(error).__name__}")
        return None
    if len(data) > MAX_FILE_BYTES:
        found.error("$", f"is larger than {MAX_FILE_BYTES} bytes")
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        found.error("$", f"is no UTF-8 text (byte {error.start})", "save it as UTF-8")
        return None


def _can_be_walked(document: JsonObject, found: Findings) -> bool:
    """Whether checks may recurse into it. Numbers like 1e400, which become infinite, are told here once."""
    for path, depth, value in _members(document):
        if depth > MAX_DEPTH:
            found.error("$", f"is nested deeper than {MAX_DEPTH} levels")
            return False
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            found.error(path, "is a number too large to be kept")
    return True


def _members(document: JsonObject) -> Iterator[tuple[str, int, Any]]:
    waiting: list[tuple[str, int, Any]] = [("$", 1, document)]
    while waiting:
        path, depth, value = waiting.pop()
        yield path, depth, value
        if depth > MAX_DEPTH:
            continue
        if isinstance(value, dict):
            waiting += [(step(path, key), depth + 1, item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(step(path, index), depth + 1, item) for index, item in enumerate(value)]
