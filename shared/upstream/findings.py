"""What is wrong with the configuration of every scope, as `dev.py upstream`, `dev.py run` and
`POST /mcp/servers/refresh` tell it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from shared.upstream.lock import project_of, scope_of

if TYPE_CHECKING:
    from shared.upstream.config.faults import ConfigFault, ConfigWarning
    from shared.upstream.config.loading import Loaded


class Fault(NamedTuple):
    """What is wrong with a server, in which scope: `global` or `project:NAME`."""

    scope: str
    server: str
    reason: str


@dataclass(slots=True)
class Findings:
    """Every fault and every warning, once."""

    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A line each, as a person reads them, faults first."""
        pairs = [("error", one) for one in self.faults] + [("warning", one) for one in self.warnings]
        return [_line(kind, one) for kind, one in pairs]


def findings_of(loaded: Mapping[str | None, Loaded]) -> Findings:
    """`loaded`: the configuration of each scope, None for the global one (`config.loading.load_all`).

    A project's configuration lies over the global one, whose own turn it is to tell what is wrong with it.
    """
    found = Findings()
    for project, one in loaded.items():
        scope = scope_of(project)
        found.faults += _told(scope, (fault for fault in one.faults if fault.project == project))
        found.warnings += _told(scope, (warning for warning in one.warnings if warning.project == project))
    return found


def _told(scope: str, ones: Iterable[ConfigFault | ConfigWarning]) -> list[Fault]:
    return [Fault(scope, one.name or "configuration", f"{one.field}: {one.message}") for one in ones]


def _line(kind: str, fault: Fault) -> str:
    project = project_of(fault.scope)
    where = f"project {project}: " if project else ""
    return f"{kind:<8} {where}{fault.server}: {fault.reason}"
