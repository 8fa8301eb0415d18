"""The options of `@tool`, and what may stand in each. What is wrong is told, and then taken as left out."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict

from shared.errors import DeclarationError, ResultError
from shared.text import kind_of, shape_of
from shared.tool.declaration import MAX_METADATA_DEPTH, depth_of
from shared.tool.json_form import dumps
from shared.tool.spec import JsonObject, ToolAnnotations

_KINDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("title", str, "a text"),
    ("description", str, "a text"),
    ("modes", (str, list, tuple, set, frozenset), "a list of texts"),
    ("execution_modes", (str, list, tuple, set, frozenset), "a list of texts"),
    ("capabilities", (list, tuple, set, frozenset), "a list of texts"),
    ("icons", (list, tuple), "a list of objects"),
    ("annotations", ToolAnnotations, "a ToolAnnotations"),
)


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`; all may be left out."""

    #: The name that agents call; the function's name. `%SETTING%` stands for an app setting.
    name: str
    title: str
    #: What agents choose the tool by; the docstring.
    description: str
    #: Explicit properties, see `shared.tool.properties`.
    tool_properties: Any
    #: A JSON Schema as text or dict, or a type; the return annotation.
    result_schema: Any
    #: `one-way`, `two-way`.
    modes: Iterable[str]
    default_mode: str
    #: `inline`, `headless`.
    execution_modes: Iterable[str]
    default_execution_mode: str
    #: Milliseconds an attempt may run.
    timeout_ms: int
    #: Runs of a job whose worker was lost: 3 for a tool annotated read-only or idempotent, else 1.
    max_attempts: int
    #: `thread`, `process`.
    isolation: str
    capabilities: Iterable[str]
    annotations: ToolAnnotations
    #: As the MCP specification has them: `src`, `mimeType`, `sizes`.
    icons: Iterable[Mapping[str, Any]]
    #: Published as the tool's `_meta`: an object, or its JSON text.
    metadata: Mapping[str, Any] | str


def usable(options: ToolOptions, faults: list[str]) -> ToolOptions:
    """The options that are known and of the right kind; what is wrong with the others is added to `faults`."""
    given: JsonObject = {**options}
    known = ToolOptions.__annotations__
    for option in sorted(given.keys() - known.keys()):
        faults.append(f"unknown option '{option}'; known are {', '.join(known)}")
        del given[option]
    for option, kind, what in _KINDS:
        value = given.get(option)
        if value is not None and not isinstance(value, kind):
            faults.append(f"{option} must be {what}, not {type(value).__name__}")
            del given[option]
    return typing.cast(ToolOptions, given)


def capabilities_of(options: ToolOptions, faults: list[str]) -> tuple[str, ...]:
    tags = tuple(options.get("capabilities") or ())
    faults += [
        f"capabilities must be texts, not {type(tag).__name__}" for tag in tags if not isinstance(tag, str)
    ]
    return tags


def annotations_of(options: ToolOptions, faults: list[str]) -> ToolAnnotations:
    hints = options.get("annotations") or ToolAnnotations()
    for name, value in dataclasses.asdict(hints).items():
        if not isinstance(value, bool | None):
            faults.append(f"annotations: {name} must be True or False, not {type(value).__name__}")
    return hints


def icons_of(options: ToolOptions, faults: list[str]) -> tuple[JsonObject, ...]:
    icons: list[JsonObject] = []
    for icon in options.get("icons") or ():
        source = icon.get("src") if isinstance(icon, Mapping) else None
        if not isinstance(source, str) or not source.startswith(("https:", "data:")):
            got = f"one with {shape_of(source)} as its src" if isinstance(icon, Mapping) else kind_of(icon)
            faults.append(
                f"icons: each must be an object with a src that begins with https: or data:, not {got}"
            )
            continue
        icons.append(dict(icon))
    _check_form("icons have", icons, faults)
    return tuple(icons)


def metadata_of(options: ToolOptions, faults: list[str]) -> JsonObject:
    given: Any = options.get("metadata")
    try:
        found = parsed("metadata", given) if isinstance(given, str) else {} if given is None else given
        if not isinstance(found, Mapping):
            faults.append(f"metadata must be a JSON object, not {type(found).__name__}")
        elif depth_of(dict(found)) > MAX_METADATA_DEPTH:
            faults.append(f"metadata is nested more than {MAX_METADATA_DEPTH} levels deep")
        else:
            _check_form("metadata has", dict(found), faults)
            return dict(found)
    except DeclarationError as error:
        faults.append(error.message)
    except RecursionError:
        faults.append("metadata holds itself, or is nested too deeply")
    return {}


def _check_form(what: str, value: Any, faults: list[str]) -> None:
    try:
        dumps(value)
    except (TypeError, ValueError, ResultError) as error:
        faults.append(f"{what} no JSON form: {error}")


def parsed(option: str, text: str) -> JsonObject:
    """The JSON object in an option's text. Raises `DeclarationError`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"{option} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise DeclarationError(f"{option} must be a JSON object, not {type(found).__name__}")
    return found
