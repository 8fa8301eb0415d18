"""The original's spelling of every public name: `getAll` beside `get_all`."""

from __future__ import annotations

from typing import Any

from shared.apis.naming import near, to_snake


class TwoSpellings:
    """Finds `get_all` under `getAll` too."""

    def __getattr__(self, name: str) -> Any:
        # Only asked for names that are not there as they are written.
        snake = to_snake(name)
        if snake != name and not snake.startswith("_") and snake in self._public():
            return getattr(self, snake)
        raise AttributeError(f"{type(self).__name__} has no '{name}'{near(name, self._public())}")

    def __dir__(self) -> list[str]:
        return sorted(self._public())

    def _public(self) -> set[str]:
        return {name for name in {*vars(self), *dir(type(self))} if not name.startswith("_")}
