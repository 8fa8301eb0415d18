"""Uri templates of resources: `docs://tools/{name}`.

The grammar is the host's: `{name}` stands for one path segment. The host matches a uri itself but tells the
worker only the uri, so the values are read from it here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s{}].*|[A-Za-z][A-Za-z0-9+.-]*:\{.*")
_BRACED = re.compile(r"\{([^{}]*)\}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """An absolute uri with any number of `{parameter}`; without one it is a plain uri."""

    text: str
    names: tuple[str, ...]
    _pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ValueError` that says what is wrong."""
        if not _ABSOLUTE.fullmatch(text) or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise ValueError(f"uri must be absolute and without blanks, like 'docs://tools', not {text!r}")
        if "}{" in text:
            raise ValueError(f"uri has two expressions without anything between them: {text!r}")
        pieces = _BRACED.split(text)  # literal, name, literal, name, …, literal
        literals, names = pieces[::2], pieces[1::2]
        if any("{" in literal or "}" in literal for literal in literals):
            raise ValueError(f"uri has a brace without its partner: {text!r}")
        for name in names:
            if not _IDENTIFIER.fullmatch(name):
                raise ValueError(f"uri: '{{{name}}}' must hold a parameter's name, nothing else")
        if len(set(names)) < len(names):
            raise ValueError(f"uri names a parameter twice: {text!r}")
        # Case: scheme and authority have none (RFC 3986, 6.2.2.1), and clients may write them either way. Paths
        # have one, but which template a uri belongs to is the host's decision, made before: this only reads the
        # values, in their own case, and must not refuse what the host let through.
        pattern = "".join(
            re.escape(piece) if index % 2 == 0 else f"(?P<{piece}>[^/?#\\s]+)"
            for index, piece in enumerate(pieces)
        )
        return cls(text, tuple(names), re.compile(pattern, re.IGNORECASE))

    @property
    def shape(self) -> str:
        """The same for templates that no uri can tell apart: parameters have no names, hosts no case."""
        start, mark, rest = _BRACED.sub("{}", self.text).partition("://")
        authority, slash, path = rest.partition("/")
        return f"{start.lower()}{mark}{authority.lower()}{slash}{path}"

    def values(self, uri: str) -> dict[str, str]:
        """The parameters' values in a uri, percent-decoded. Raises `ValueError` for one that does not fit."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            raise ValueError(f"the uri does not fit {self.text}")
        values = {name: _decoded(name, text) for name, text in found.groupdict().items()}
        for name, value in values.items():
            # An encoded slash would turn one segment into a path, dots into a way out of it.
            if "/" in value or "\\" in value or value in (".", ".."):
                raise ValueError(f"the uri's '{name}' must be one path segment")
        return values


def _decoded(name: str, text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"the uri's '{name}' is not percent-encoded as it should be")
    try:
        value = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"the uri's '{name}' is not UTF-8") from None
    if "\0" in value:
        raise ValueError(f"the uri's '{name}' holds a NUL")
    return value
