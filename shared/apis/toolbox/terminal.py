"""`toolboxAPI.terminal`: present, and says why it cannot serve."""

from __future__ import annotations

from typing import Any, NoReturn

from shared.apis.toolbox.spelling import TwoSpellings
from shared.errors import ToolError

_REASON = (
    "a hosted function has no terminal that a person could see or type into, and a shell command of an agent's "
    "would run as the app itself. Use subprocess in the tool's own code, or context.logger."
)


class TerminalApi(TwoSpellings):
    """Every method raises `ToolError`."""

    def create(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("create")

    def execute(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("execute")

    def close(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("close")

    def get(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("get")

    def list(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("list")

    def set_visibility(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse("setVisibility")


def _refuse(method: str) -> NoReturn:
    raise ToolError(f"toolboxAPI.terminal.{method} is not available here: {_REASON}")
