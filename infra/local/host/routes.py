"""Route templates of HTTP triggers, as ASP.NET Core's routing reads them.

Literals (in any case), ``{name}``, ``{name?}``, ``{name=default}``, ``{*rest}``, ``{**rest}``, several parts
in one segment (``{name}.{ext}``) and inline constraints (``{id:int:min(1)}``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from infra.local.host.constraints import build_constraint

if TYPE_CHECKING:
    from infra.local.host.constraints import Constraint

_PARAMETER = re.compile(r"(\*{0,2})([^:=?*{}/]+)")
_CONSTRAINT = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


class TemplateError(ValueError):
    """A route template that ASP.NET Core would refuse; the message says why."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A ``{...}`` part."""

    name: str
    constraints: tuple[Constraint, ...] = ()
    optional: bool = False
    default: str | None = None
    catch_all: bool = False

    def accepts(self, value: str) -> bool:
        """Whether the value meets every constraint."""
        return all(check(value) for check in self.constraints)


type Segment = tuple["str | Parameter", ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template. ``precedence`` sorts templates the way routing tries them."""

    text: str
    segments: tuple[Segment, ...]

    @property
    def precedence(self) -> tuple[int, ...]:
        """Per segment: literal 1, constrained or mixed 2, parameter 3, catch-all 4 or 5."""
        return tuple(_digit(segment) for segment in self.segments)

    def match(self, parts: list[str]) -> dict[str, str] | None:
        """Route values for the decoded path segments, or None when the path does not match."""
        values: dict[str, str] = {}
        for index, segment in enumerate(self.segments):
            only = segment[0] if len(segment) == 1 else None
            if isinstance(only, Parameter) and only.catch_all:
                if not _take(only, "/".join(parts[index:]), values):
                    return None
                return values
            if not _match_segment(segment, parts[index] if index < len(parts) else "", values):
                return None
        return values if len(parts) <= len(self.segments) else None


def split_path(raw: str) -> list[str]:
    """Decoded segments of an undecoded path; a trailing slash is ignored and ``%2F`` stays encoded."""
    path = raw.removeprefix("/").removesuffix("/")
    if not path:
        return []
    return [re.sub("/", "%2F", unquote(part)) for part in path.split("/")]


def parse_template(text: str) -> Template:
    """Parse a route, without its leading slash. Raises TemplateError."""
    body = text.strip("/")
    segments = tuple(_parse_segment(part, text) for part in _split(body)) if body else ()
    names: list[str] = []
    for index, segment in enumerate(segments):
        for part in segment:
            if isinstance(part, Parameter):
                names.append(part.name.lower())
                if part.catch_all and (len(segment) > 1 or index != len(segments) - 1):
                    raise TemplateError(f"{text!r}: a catch-all parameter must be the whole last segment.")
    if len(names) != len(set(names)):
        raise TemplateError(f"{text!r}: a parameter name is used twice.")
    return Template(text, segments)


def _split(body: str) -> list[str]:
    """Split at slashes outside braces, since a regular expression may hold one."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(body):
        depth += (character == "{") - (character == "}")
        if character == "/" and depth == 0:
            parts.append(body[start:index])
            start = index + 1
    return [*parts, body[start:]]


def _parse_segment(text: str, template: str) -> Segment:
    parts: list[str | Parameter] = []
    literal, index = "", 0
    while index < len(text):
        if text.startswith(("{{", "}}"), index):
            literal += text[index]
            index += 2
        elif text[index] == "{":
            end = _closing(text, index, template)
            if literal:
                parts.append(literal)
            elif parts:
                raise TemplateError(f"{template!r}: two parameters need a literal between them.")
            literal = ""
            parts.append(_parse_parameter(text[index + 1 : end], template))
            index = end + 1
        elif text[index] == "}":
            raise TemplateError(f"{template!r}: '}}' without '{{'.")
        else:
            literal += text[index]
            index += 1
    if literal:
        parts.append(literal)
    if not parts:
        raise TemplateError(f"{template!r}: an empty segment.")
    return tuple(parts)


def _closing(text: str, start: int, template: str) -> int:
    depth, index = 0, start
    while index < len(text):
        if index > start and text.startswith(("{{", "}}"), index):
            index += 2
            continue
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return index
        index += 1
    raise TemplateError(f"{template!r}: '{{' without '}}'.")


def _parse_parameter(text: str, template: str) -> Parameter:
    match = _PARAMETER.match(text)
    if match is None:
        raise TemplateError(f"{template!r}: {{{text}}} has no name.")
    rest, constraints = text[match.end() :], []
    while rest.startswith(":"):
        found = _CONSTRAINT.match(rest, 1) if "(" not in rest else _with_argument(rest)
        if found is None:
            raise TemplateError(f"{template!r}: {{{text}}} has an empty constraint.")
        try:
            constraints.append(build_constraint(found[1], found[2]))
        except ValueError as error:
            raise TemplateError(f"{template!r}: {error}.") from None
        rest = rest[found.end() :]
    optional = rest.startswith("?")
    default = rest[1:] if rest.startswith("=") else None
    if (rest and not optional and default is None) or (optional and rest != "?"):
        raise TemplateError(f"{template!r}: {{{text}}} cannot be read after {text[: -len(rest)]!r}.")
    return Parameter(match[2], tuple(constraints), optional, default, catch_all=bool(match[1]))


def _with_argument(rest: str) -> re.Match[str] | None:
    """The first constraint of ``rest`` with its whole argument, whose brackets may be nested."""
    depth = 0
    for index, character in enumerate(rest):
        if depth == 0 and index and character in ":?=":
            return _CONSTRAINT.fullmatch(rest, 1, index)
        depth += (character == "(") - (character == ")")
    return _CONSTRAINT.fullmatch(rest, 1)


def _digit(segment: Segment) -> int:
    first = segment[0]
    if len(segment) > 1:
        return 2
    if isinstance(first, str):
        return 1
    return (5 if first.catch_all else 3) - bool(first.constraints)


def _match_segment(segment: Segment, text: str, values: dict[str, str]) -> bool:
    first = segment[0]
    if len(segment) == 1:
        return text.lower() == first.lower() if isinstance(first, str) else _take(first, text, values)
    pattern = "".join(
        re.escape(part) if isinstance(part, str) else f"(?P<p{index}>.+?)" for index, part in enumerate(segment)
    )
    match = re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL)
    return match is not None and all(
        _take(part, match[f"p{index}"], values)
        for index, part in enumerate(segment)
        if isinstance(part, Parameter)
    )


def _take(parameter: Parameter, text: str, values: dict[str, str]) -> bool:
    """Bind one parameter; an absent value needs a default, the ``?`` or a catch-all."""
    if not text:
        if parameter.default is not None:
            values[parameter.name] = parameter.default
            return True
        return parameter.optional or (parameter.catch_all and parameter.accepts(""))
    values[parameter.name] = text
    return parameter.accepts(text)
