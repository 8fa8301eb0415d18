"""What `@resource` and `@prompt` check alike when a function is declared.

Every fault is a `DeclarationError` that begins with what is declared, like `resource 'readme': …`. Nothing here
needs pydantic: a folder of resources and prompts alone loads without it.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Union

from shared.errors import DeclarationError
from shared.tool.collecting import Faults
from shared.tool.spec import JsonObject, check_name

#: The host refuses deeper metadata.
MAX_METADATA_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Subject:
    """What is being declared, as its faults name it: `resource 'readme'`."""

    kind: str
    name: str

    def fault(self, text: str) -> DeclarationError:
        return DeclarationError(f"{self.kind} '{self.name[:80]}': {text}")


@dataclass(frozen=True, slots=True)
class TextParameter:
    """A parameter that takes a text from the outside."""

    name: str
    #: What `Annotated[str, "…"]` or `Annotated[str, Field(description="…")]` says of it.
    description: str | None
    #: False: it has a default, or is annotated `str | None`.
    required: bool
    #: Optional without a default: somebody has to pass the None.
    none_when_absent: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes, and its return annotation (`inspect.Signature.empty` without one)."""

    parameters: tuple[TextParameter, ...]
    returns: Any


def subject_of(kind: str, function: Callable[..., Any], options: Mapping[str, Any]) -> Subject:
    return Subject(kind, str(options.get("name") or getattr(function, "__name__", "")))


def usable_options(
    subject: Subject,
    function: Callable[..., Any],
    options: Mapping[str, Any],
    known: Collection[str],
    faults: Faults,
) -> JsonObject:
    """The options that are known and of the right kind; what is wrong with the others is added to `faults`.

    So is a name that is none, and a function without a single result.
    """
    given = dict(options)
    faults.tried(lambda: check_name(subject.name))
    for option in sorted(given.keys() - set(known)):
        faults.add(f"unknown option '{option}'; known are {', '.join(known)}")
        del given[option]
    for option in ("name", "title", "description", "uri", "mime_type"):
        value = given.get(option)
        if value is not None and not isinstance(value, str):
            faults.add(f"{option} must be a text, not {type(value).__name__}")
            del given[option]
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        faults.add("a generator has no single result; return a value")
    return given


def description_of(subject: Subject, function: Callable[..., Any], given: str | None) -> str:
    """The description, or else the docstring; one of the two is required."""
    text = inspect.cleandoc(given if given is not None else function.__doc__ or "").strip()
    if not text:
        raise subject.fault("write a docstring or a description; agents read it")
    return text


def signature_of(subject: Subject, function: Callable[..., Any]) -> Signature:
    """The function's parameters, which must be ordinary ones that take texts."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise subject.fault(f"an annotation cannot be resolved: {error}") from error
    faults = Faults(subject.fault("").message)
    parameters = [
        faults.tried(functools.partial(_parameter, subject, parameter, hints))
        for parameter in inspect.signature(function).parameters.values()
    ]
    faults.check()
    return Signature(
        tuple(parameter for parameter in parameters if parameter is not None),
        hints.get("return", inspect.Signature.empty),
    )


def _parameter(subject: Subject, parameter: inspect.Parameter, hints: dict[str, Any]) -> TextParameter:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise subject.fault(
            f"parameter '{name}' must be an ordinary named one (no *args, no **kwargs, not positional-only)"
        )
    if name not in hints:
        raise subject.fault(f"parameter '{name}' has no annotation; annotate it with str")
    annotation, notes = hints[name], ()
    if typing.get_origin(annotation) is Annotated:
        annotation, *rest = typing.get_args(annotation)
        notes = tuple(rest)
    optional = typing.get_origin(annotation) in (Union, types.UnionType) and set(
        typing.get_args(annotation)
    ) == {str, type(None)}
    if annotation is not str and not optional:
        raise subject.fault(f"parameter '{name}' must be annotated str: only texts can be sent")
    described = _described(subject, name, notes)
    if parameter.default is not parameter.empty:
        return TextParameter(name, described, required=False)
    return TextParameter(name, described, required=not optional, none_when_absent=optional)


def _described(subject: Subject, name: str, notes: tuple[Any, ...]) -> str | None:
    """The description among the metadata of `Annotated`. pydantic's `Field` is known by its attributes."""
    found: str | None = None
    for note in notes:
        if getattr(note, "metadata", None):
            # Such a rule would be neither published nor checked.
            raise subject.fault(f"parameter '{name}': of Field(…) only the description can be carried out")
        text = note if isinstance(note, str) else getattr(note, "description", None)
        if isinstance(text, str):
            found = text
    return found


def json_text(subject: Subject, option: str, given: Any) -> str | None:
    """A JSON object, or a JSON list of objects for `icons`, as the text that a binding takes; None for none.

    `given` is the value itself or its JSON text.
    """
    if given is None:
        return None
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except ValueError as error:
            raise subject.fault(f"{option} is no JSON: {error}") from error
    wanted: type = list if option == "icons" else dict
    if not isinstance(value, wanted):
        raise subject.fault(f"{option} must be a JSON {'list of objects' if wanted is list else 'object'}")
    try:
        # Python's own parser and writer know NaN; JSON does not.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise subject.fault(f"{option} cannot be written as JSON: {error}") from error
    if depth_of(value) > MAX_METADATA_DEPTH:
        raise subject.fault(f"{option} is nested more than {MAX_METADATA_DEPTH} levels deep")
    return text


def icons_text(subject: Subject, given: Any) -> str | None:
    """`icons` as a binding takes them: a JSON list of objects that each have a `src`."""
    text = json_text(subject, "icons", given)
    icons: list[Any] = [] if text is None else json.loads(text)
    for icon in icons:
        if not isinstance(icon, dict) or not isinstance(icon.get("src"), str) or not icon["src"]:
            raise subject.fault("icons must be objects that each have a 'src', the address of the picture")
    return text


def bypassed(kind: str, name: str) -> DeclarationError:
    """functools.wraps copies what a decorator left on the function, and would hide the wrapper around it."""
    return DeclarationError(
        f"{kind} '{name}' stands below another decorator, which a call would bypass; put @{kind} on top"
    )


def function_name(kind: str, name: str) -> str:
    """The Azure function's name: letters, digits, `_` and `-`, beginning with a letter."""
    return f"{kind}_" + re.sub(r"[^A-Za-z0-9_-]", "_", name)


def depth_of(value: JsonObject | list[Any] | Any) -> int:
    """How many objects and lists stand within each other."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)
