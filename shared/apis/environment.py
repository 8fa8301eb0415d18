"""The seam between the APIs and the connections: what a running call may reach, and by whose leave.

The APIs know an environment's address, its tokens and the invocation's deadline; which connection that is, and
how its tokens are got, is the affair of whoever implements `Environment`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from shared.errors import NoConnectionError

#: `primary`, `secondary`, or the slot's number, counted from 0. None means `primary`.
type Target = str | int | None

PRIMARY: Final = "primary"


@dataclass(frozen=True, slots=True)
class PowerPlatform:
    """The Power Platform API of an environment's cloud."""

    #: https, without a slash at its end.
    url: str = "https://api.powerplatform.com"
    #: What tokens for it are asked with.
    scope: str = "https://api.powerplatform.com/.default"


class Environment(Protocol):
    """One environment, as one invocation reaches it."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str:
        """`https://org.crm.dynamics.com`, without a slash at the end."""

    @property
    def power_platform(self) -> PowerPlatform: ...

    async def token(self, scope: str, *, renew: bool = False) -> str:
        """A bearer token for `scope`, cached; `renew` asks for a new one after the old one was refused.

        Awaited on the thread of the APIs' event loop, in the context of the call: must not block.
        """

    def deadline(self) -> float | None:
        """When the invocation ends, on the clock of `time.monotonic()` (seconds); None: never."""


#: Asked in the calling code's context, before anything runs elsewhere.
type Resolver = Callable[[Target], Environment]

_resolver: Resolver | None = None


def use_resolver(resolver: Resolver | None) -> None:
    """From now on `environment` asks this function. Called once, by whoever provides connections."""
    global _resolver
    _resolver = resolver


def environment(target: Target = None) -> Environment:
    """The environment that the running invocation has in this slot.

    Raises `NoConnectionError` or `NoInvocationError` when there is none.
    """
    if _resolver is None:
        raise NoConnectionError(
            f"No {target if target is not None else PRIMARY} connection is available: only a running app "
            "provides connections."
        )
    return _resolver(target)
