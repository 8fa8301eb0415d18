"""What `toolboxAPI` asks of whoever puts the app together: who keeps settings, and who launches tools.

In the app that is storage and the catalogue; in a tool's own process it is the worker, by way of the pipe.
Loads nothing heavy, so that such a process may be told at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from shared.errors import ToolError

if TYPE_CHECKING:
    from shared.tool.context import Context
    from shared.tool.spec import JsonObject


class SettingsStore(Protocol):
    """Keeps one JSON object per owner and tool. All methods block."""

    def read(self, owner: str, tool: str) -> tuple[JsonObject, str]:
        """(the object, its version); ({}, "") when there is none."""

    def write(self, owner: str, tool: str, values: JsonObject, version: str) -> None:
        """Replaces that version. Raises `LostLeaseError` when it is not there any more."""


class Launcher(Protocol):
    """Calls other tools of the app, for a running invocation."""

    async def launch(self, context: Context, tool: str, arguments: JsonObject) -> JsonObject:
        """The structured result. Raises `ToolError` with the tool's own text."""

    def find(self, capabilities: Sequence[str]) -> list[JsonObject]:
        """The tools that declare one: `{toolId, toolName, title, description, capabilities}`. May block."""

    def capabilities(self) -> list[str]:
        """Every capability that a tool of the app declares. May block."""


_open: Callable[[], SettingsStore] | None = None
_launcher: Launcher | None = None


def use_store(make: Callable[[], SettingsStore] | None) -> None:
    """From now on settings are kept there. Called once, by whoever puts the app together."""
    global _open
    _open = make


def use_launcher(launcher: Launcher | None) -> None:
    """From now on tools are launched by it. Called once, by whoever puts the app together."""
    global _launcher
    _launcher = launcher


def settings_store() -> SettingsStore:
    """Raises `ToolError` when there is none."""
    if _open is None:
        raise ToolError("toolboxAPI.settings: this app has no storage for settings")
    return _open()


def launcher() -> Launcher:
    """Raises `ToolError` when there is none."""
    if _launcher is None:
        raise ToolError("toolboxAPI.invocation: other tools cannot be reached from here")
    return _launcher
