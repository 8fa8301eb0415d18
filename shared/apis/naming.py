"""The APIs' two spellings of one name: `fetchXmlQuery`, as in the original, and `fetch_xml_query`.

The only place that knows how one becomes the other, for methods and for their arguments.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from typing import Final

#: Words whose capitals no rule could tell.
_WORDS: Final = {"csdl": "CSDL", "odata": "OData"}
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@functools.cache
def to_camel(name: str) -> str:
    """`get_csdl_document` -> `getCSDLDocument`. A first word stays in lower case."""
    first, *others = name.split("_")
    return first + "".join(_WORDS.get(word, word.capitalize()) for word in others)


@functools.cache
def to_snake(name: str) -> str:
    """`getCSDLDocument` -> `get_csdl_document`; a name in snake case stays as it is."""
    for word, spelling in _WORDS.items():
        name = name.replace(spelling, word.capitalize())
    return _BOUNDARY.sub("_", name).lower()


def near(name: str, known: Iterable[str], count: int = 3) -> str:
    """`; did you mean 'a' or 'b'?`, or nothing when no known name is like this one."""
    spellings = {word.lower(): word for word in known}
    found = difflib.get_close_matches(name.lower(), spellings, count, 0.6)
    return f"; did you mean {' or '.join(repr(spellings[word]) for word in found)}?" if found else ""
