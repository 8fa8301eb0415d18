"""The formats that are checked in a contract's schemas.

jsonschema checks `date`, `email`, `ipv4`, `ipv6`, `regex` and `uuid` by itself; the others stand here, with the
standard library. Formats that neither knows only describe.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from shared.tool.validation import SchemaCheck, draft, no_registry

if TYPE_CHECKING:
    from jsonschema import FormatChecker
    from jsonschema.protocols import Validator

_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_TIME_ONLY = re.compile(_TIME)
_DATE_TIME = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]{_TIME}")
_DURATION = re.compile(
    r"P(?!$)([0-9]+W|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?)"
)
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\"<>\\^`{|}]+")


class FormatCheck(SchemaCheck):
    """A schema check for which `format` counts."""

    @functools.cached_property
    def _validator(self) -> Validator:
        validator: Validator = draft()(self.schema, registry=no_registry(), format_checker=_checker())
        return validator


@functools.cache
def _checker() -> FormatChecker:
    from jsonschema import Draft202012Validator, FormatChecker

    checker = FormatChecker(())
    checker.checkers = {**Draft202012Validator.FORMAT_CHECKER.checkers}
    for name, fits in FORMATS.items():
        checker.checkers[name] = (_texts_only(fits), ())
    return checker


def _texts_only(fits: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or fits(value)


def is_date_time(text: str) -> bool:
    """RFC 3339, with a zone."""
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return False
    try:
        dt.date.fromisoformat(found[1])
    except ValueError:
        return False
    return True


def is_uri(text: str) -> bool:
    """With a scheme, and without characters that no URI holds."""
    if _SCHEME.fullmatch(text) is None:
        return False
    try:
        # A port that is no number is found when it is asked for.
        return urlsplit(text).port is not None or True
    except ValueError:
        return False


def is_hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": is_date_time,
    "time": lambda text: _TIME_ONLY.fullmatch(text) is not None,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "uri": is_uri,
    "hostname": is_hostname,
}
