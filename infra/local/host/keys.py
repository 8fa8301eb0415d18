"""Keys: who may call what when ``--auth`` is given. All comparisons take constant time.

This host has no key store; the keys are settings: MCP_EXTENSION_KEY is the system key ``mcp_extension``,
HOST_MASTER_KEY the master key, HOST_FUNCTION_KEY a host-level function key, HOST_FUNCTION_KEY__NAME a key
of one function.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FUNCTION_PREFIX = "HOST_FUNCTION_KEY__"


class AuthLevel(StrEnum):
    """authLevel of an HTTP trigger."""

    ANONYMOUS = "anonymous"
    FUNCTION = "function"
    ADMIN = "admin"


class Verdict(IntEnum):
    """The answer to a key, as an HTTP status."""

    ALLOWED = 200
    UNAUTHORIZED = 401
    FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Keys:
    """The configured keys; ``enforce`` False is ``func start`` without --enableAuth."""

    enforce: bool = False
    system: str = field(default="", repr=False)
    master: str = field(default="", repr=False)
    host: str = field(default="", repr=False)
    functions: Mapping[str, str] = field(default_factory=dict, repr=False)  # lower-case function name -> key

    @classmethod
    def from_settings(cls, environment: Mapping[str, str], *, enforce: bool) -> Keys:
        """Read the keys from settings."""
        return cls(
            enforce=enforce,
            system=environment.get("MCP_EXTENSION_KEY", ""),
            master=environment.get("HOST_MASTER_KEY", ""),
            host=environment.get("HOST_FUNCTION_KEY", ""),
            functions={
                name[len(_FUNCTION_PREFIX) :].lower(): value
                for name, value in environment.items()
                if name.startswith(_FUNCTION_PREFIX)
            },
        )

    def for_mcp(self, key: str | None) -> Verdict:
        """The MCP endpoint: system or master key; a valid key of another kind is 403, anything else 401."""
        if not self.enforce or _same(key, self.system) or _same(key, self.master):
            return Verdict.ALLOWED
        others = [_same(key, other) for other in (self.host, *self.functions.values())]
        return Verdict.FORBIDDEN if any(others) else Verdict.UNAUTHORIZED

    def for_function(self, function: str, level: AuthLevel, key: str | None) -> Verdict:
        """An HTTP trigger: system keys open nothing here and the failure is always 401."""
        if not self.enforce or level is AuthLevel.ANONYMOUS or _same(key, self.master):
            return Verdict.ALLOWED
        if level is AuthLevel.FUNCTION:
            own = _same(key, self.functions.get(function.lower(), ""))
            if _same(key, self.host) or own:
                return Verdict.ALLOWED
        return Verdict.UNAUTHORIZED

    def for_admin(self, key: str | None) -> Verdict:
        """The admin routes: master key only."""
        return Verdict.ALLOWED if not self.enforce or _same(key, self.master) else Verdict.UNAUTHORIZED


def _same(given: str | None, wanted: str) -> bool:
    """Whether a key was given and is the wanted one; a key that is not configured matches nothing."""
    equal = hmac.compare_digest((given or "").encode(), wanted.encode())
    return equal and bool(wanted)
