"""Paths of requests without what they say: tables and operations stay, keys and names of things go.

/api/data/v9.2/accounts(7d1c…)/contact_customer_accounts   accounts({key})/contact_customer_accounts
/powerapps/environments/Default-1f…/apps/9b…               powerapps/environments/{id}/apps/{id}
"""

from __future__ import annotations

import re
from typing import Final

_API: Final = re.compile(r"^/?api/data/v[0-9.]+/", re.IGNORECASE)
#: A logical name, an entity set, an operation, `$batch`, `Microsoft.Dynamics.CRM.account`.
_SCHEMA_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$]{0,99}")
#: A kind of thing in the Power Platform API.
_WORD: Final = re.compile(r"[A-Za-z]{1,40}")
_SEGMENTS: Final = 8
KEY: Final = "{key}"
ID: Final = "{id}"


def dataverse_route(path: str) -> str:
    """Everything in brackets is a key or an argument; what is left are names of the schema."""
    segments = _without_brackets(_API.sub("", path)).strip("/").split("/")
    return "/".join(_schema_name(segment) for segment in segments[:_SEGMENTS])


def power_platform_route(path: str) -> str:
    """The category, then kinds of things and ids of things in turn."""
    segments = [segment for segment in path.split("/") if segment]
    return "/".join(
        segment.lower() if index == 0 and _WORD.fullmatch(segment)
        else segment if index % 2 and _WORD.fullmatch(segment)
        else ID
        for index, segment in enumerate(segments[:_SEGMENTS])
    )  # fmt: skip


def _schema_name(segment: str) -> str:
    name = segment.removesuffix(f"({KEY})")
    if not _SCHEMA_NAME.fullmatch(name):
        return ID
    return segment


def _without_brackets(path: str) -> str:
    """`accounts(a=(b))/x` -> `accounts({key})/x`; brackets inside quotes are text (OData doubles a quote)."""
    told: list[str] = []
    depth, quoted = 0, False
    for character in path:
        if depth and character == "'":
            quoted = not quoted
        elif not quoted and character == "(":
            depth += 1
            if depth == 1:
                told.append(f"({KEY})")
        elif not quoted and character == ")" and depth:
            depth -= 1
        elif not depth:
            told.append(character)
    return "".join(told)
