"""One request to the Web API and its answer, without the HTTP server: a batch makes them too."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, unquote_plus

from infra.local.dataverse.errors import bad_payload, bad_query

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON: Final = "application/json; odata.metadata=minimal"
_SEGMENT: Final = re.compile(r"([^()]+)(?:\((.*)\))?", re.DOTALL)
_PREFERENCE: Final = re.compile(r"""\s*([\w.-]+)\s*(?:=\s*(?:"([^"]*)"|([^,;"]*)))?\s*(?:[,;]|$)""")


@dataclass(frozen=True, slots=True)
class Segment:
    """A step of a path: `accounts(1)` has the key text `1`, `WhoAmI()` the empty one, `accounts` none."""

    name: str
    key: str | None = None


@dataclass(frozen=True)
class Call:
    """A request. `path` is what follows `root` (`https://…/api/data/v9.2/`), still percent-encoded."""

    method: str
    path: str
    root: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    body: bytes = b""

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The steps of the path. Raises ApiError (400)."""
        return parse_path(self.path)

    @cached_property
    def prefer(self) -> Mapping[str, str]:
        """The Prefer header: preferences by name in lower case."""
        return parse_prefer(self.headers.get("prefer", ""))

    @property
    def url(self) -> str:
        """Its address without the query."""
        return self.root + self.path

    def header(self, name: str) -> str | None:
        """A header; the text `null`, which Microsoft's samples send, counts as none."""
        value = self.headers.get(name)
        return None if value in {None, "", "null"} else value

    def json(self) -> dict[str, Any]:
        """The body as a JSON object. Raises ApiError (400)."""
        try:
            value = json.loads(self.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            subject = self.path.partition("(")[0].partition("/")[0]
            raise bad_payload(
                subject, "Microsoft.OData.ODataException: The payload is not a valid JSON object."
            )
        return value


@dataclass(slots=True)
class Answer:
    """What a request is answered with: `body` is written as JSON unless it is text."""

    status: int = 204
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    media: str = JSON

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)
        return text.encode()


def parse_query(text: str) -> dict[str, str]:
    """A query string by name; of a repeated name the first counts."""
    fields: dict[str, str] = {}
    for part in text.split("&"):
        name, _, value = part.partition("=")
        if name:
            fields.setdefault(unquote_plus(name), unquote_plus(value))
    return fields


def split_outside(text: str, separator: str) -> list[str]:
    """`text` cut at a separator that stands in no quotes and no parentheses."""
    parts: list[str] = []
    quoted, depth, start = False, 0, 0
    for position, letter in enumerate(text):
        if letter == "'":
            quoted = not quoted
        elif not quoted:
            depth += (letter == "(") - (letter == ")")
            if letter == separator and depth == 0:
                parts.append(text[start:position])
                start = position + 1
    parts.append(text[start:])
    return parts


def parse_path(path: str) -> tuple[Segment, ...]:
    """The steps of a percent-encoded path. Raises ApiError (400)."""
    quotes_bare = re.sub("%27", "'", path)
    segments: list[Segment] = []
    for part in split_outside(quotes_bare.strip("/"), "/"):
        match = _SEGMENT.fullmatch(unquote(part))
        if match is None:
            raise bad_query()
        segments.append(Segment(match[1], match[2]))
    return tuple(segments)


def parse_prefer(text: str) -> dict[str, str]:
    """A Prefer header: preferences by name in lower case; one without a value has an empty one."""
    return {
        match[1].lower(): (match[2] if match[2] is not None else match[3] or "").strip()
        for match in _PREFERENCE.finditer(text)
    }
