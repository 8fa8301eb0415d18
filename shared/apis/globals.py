"""The names that a headless module has without an import, as the original has them on `globalThis`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from shared import apis


class _Late:
    """An API that is loaded when a tool first uses it: most tools use none, and some run in small processes."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(getattr(apis, self._name), attribute)

    def __dir__(self) -> list[str]:
        return dir(getattr(apis, self._name))

    def __repr__(self) -> str:
        return self._name


def api_globals() -> dict[str, Any]:
    """`toolboxAPI`, `dataverseAPI`, `powerplatformAPI`, and `window` and `globalThis` that carry the three."""
    three: dict[str, Any] = {name: _Late(name) for name in apis.__all__}
    carrier = SimpleNamespace(**three)
    return {**three, "window": carrier, "globalThis": carrier}
