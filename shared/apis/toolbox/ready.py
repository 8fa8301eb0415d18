"""Values that are there at once, and may be awaited all the same: a port of the original's code awaits them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Self

from shared.apis.record import Record, wrap


class Ready(Record):
    """A record that awaits to itself."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()  # nothing to wait for
        return self


def ready(value: dict[str, Any]) -> Ready:
    return Ready({key: wrap(item) for key, item in value.items()})
