"""Which execution modes a contract tool has: what it declares, checked against what stands in its folder.

Undeclared, they follow what there is: an entry gives headless, `ui/index.html` gives windowed. `executionModes`
wins over `headless`, and windowed is the default where there is one, both as in the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shared.contract.config import Agents
from shared.contract.findings import Findings, listed
from shared.tool.spec import ExecutionMode

PAGE: Final = "ui/index.html"
#: What an entry offers where the contract names no execution modes. Inline is offered by who declares it.
ENTRY_MODES: Final = (ExecutionMode.HEADLESS,)
_NEED_ENTRY: Final = (ExecutionMode.HEADLESS, ExecutionMode.INLINE)
_PATH: Final = "$.agents.executionModes"


@dataclass(frozen=True, slots=True)
class Folder:
    """What of a tool's folder matters here."""

    #: Also where an error says what is wrong with the entry.
    has_entry: bool
    has_page: bool
    #: An entry for the original that stands there instead.
    foreign_entry: str | None = None


def execution_modes(
    agents: Agents, folder: Folder, found: Findings
) -> tuple[tuple[ExecutionMode, ...], ExecutionMode] | None:
    """(the modes, the one of a call that names none); None: errors say why there is none."""
    modes = agents.execution_modes
    if modes == ():
        return None
    if modes is None:
        modes = _assumed(agents, folder)
        if not modes:
            found.error("$.agents", *_nothing(folder, only_page=agents.headless is False))
            return None
    _check(modes, agents, folder, found)
    default = agents.default_execution_mode
    if default is None:
        default = ExecutionMode.WINDOWED if ExecutionMode.WINDOWED in modes else modes[0]
    elif default not in modes:
        place = "$.agents.defaultExecutionMode"
        found.error(
            place, f"must be one of the tool's execution modes, {listed(modes)}, got string '{default}'"
        )
    return modes, default


def _assumed(agents: Agents, folder: Folder) -> tuple[ExecutionMode, ...]:
    windowed = (ExecutionMode.WINDOWED,) if folder.has_page else ()
    if agents.headless is None:
        return (*windowed, *ENTRY_MODES) if folder.has_entry else windowed
    return (*windowed, ExecutionMode.HEADLESS) if agents.headless else windowed


def _check(modes: tuple[ExecutionMode, ...], agents: Agents, folder: Folder, found: Findings) -> None:
    needing = [mode for mode in modes if mode in _NEED_ENTRY]
    if needing and not folder.has_entry:
        text, hint = _nothing(folder, only_page=False)
        found.error("$.agents.headless" if agents.execution_modes is None else _PATH, text, hint)
    if ExecutionMode.WINDOWED in modes:
        if not folder.has_page:
            found.error(_PATH, f"'windowed' needs a page, and there is no {PAGE}")
    elif agents.window is not None:
        found.warn("$.agents.window", "has no effect: the tool has no execution mode 'windowed'")
    if agents.execution_modes is None or agents.headless is None:
        return
    if agents.headless != (ExecutionMode.HEADLESS in modes):
        what = "true, and executionModes leave 'headless' out" if agents.headless else "false"
        found.warn("$.agents.headless", f"has no effect: it is {what}; executionModes count", "make them agree")


def _nothing(folder: Folder, *, only_page: bool) -> tuple[str, str]:
    if only_page:
        return f"headless is false, and there is no {PAGE}: nothing can be run", "set headless, or add the page"
    if folder.foreign_entry:
        hint = f"{folder.foreign_entry} cannot run here: entries are Python, provide headless.py"
    else:
        hint = "add agents.headlessEntry in pptb.config.json or provide dist/headless.py or headless.py"
    return "No headless runtime entry found", hint
