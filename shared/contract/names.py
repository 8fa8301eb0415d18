"""From a tool's display name and description to what agents see.

The slug rule is the original's: lower case, every run of other characters than a-z and 0-9 becomes one `-`,
nothing is trimmed. Where its result is no legal name here, or says nothing of the tool, that is a fault: a name
that is made up would change when another tool comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from shared.errors import DeclarationError
from shared.tool.spec import Mode, check_name

MAX_LENGTH: Final = 64
_OTHER = re.compile(r"[^a-z0-9]+")


def slug(display_name: str) -> str:
    """The original's rule, whatever comes out of it."""
    return _OTHER.sub("-", display_name.lower())


def tool_name(display_name: str, source: str) -> str:
    """The name that agents call. `source`: where the display name stands.

    Raises `DeclarationError` that names the display name and what to change.
    """
    name = slug(display_name)
    shown = f"the display name '{display_name[:80]}'"
    if not name.strip("-"):
        raise DeclarationError(
            f"{shown} has no letter a-z and no digit, so no name can be made of it; change {source}"
        )
    if len(name) > MAX_LENGTH:
        raise DeclarationError(
            f"{shown} makes a name of {len(name)} characters, and {MAX_LENGTH} are allowed; shorten {source}"
        )
    return check_name(name)


def described(description: str, modes: Iterable[Mode], default: Mode, *, returns_data: bool) -> str:
    """The description with what an agent must know of the modes, in the original's form."""
    answer = "yes" if returns_data else "no"
    return f"{description} [modes: {', '.join(modes)}; default: {default}; returnsData: {answer}]"
