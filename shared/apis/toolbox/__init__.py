"""`toolboxAPI`: what a tool may ask of its host. One object for every tool; each call sees its own invocation.

Names are the original's; each has a snake_case twin. Methods that the original awaits are awaited in
asynchronous code here too, and give their value at once in synchronous code.
"""

from __future__ import annotations

from shared.apis.toolbox.connections import ConnectionsApi
from shared.apis.toolbox.events import EventsApi
from shared.apis.toolbox.files import FileSystemApi
from shared.apis.toolbox.invocation import InvocationApi, tool_context
from shared.apis.toolbox.ready import Ready
from shared.apis.toolbox.settings import SettingsApi
from shared.apis.toolbox.spelling import TwoSpellings
from shared.apis.toolbox.terminal import TerminalApi
from shared.apis.toolbox.utils import UtilsApi


class ToolboxApi(TwoSpellings):
    """The API as tools see it."""

    def __init__(self) -> None:
        self.connections = ConnectionsApi()
        self.events = EventsApi()
        self.file_system = FileSystemApi()
        self.invocation = InvocationApi()
        self.settings = SettingsApi()
        self.terminal = TerminalApi()
        self.utils = UtilsApi()

    def get_tool_context(self) -> Ready:
        """Which tool runs, how, and where. Raises `NoInvocationError` outside of an invocation."""
        return tool_context()


toolboxAPI = ToolboxApi()  # noqa: N816 - the contract's own spelling

__all__ = ["ToolboxApi", "toolboxAPI"]
