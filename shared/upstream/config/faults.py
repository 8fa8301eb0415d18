"""What is wrong with a configuration, as a value. Nothing here repeats a value of the configuration."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared.errors import ConfigError, MCPConfigError

_SHOWABLE = re.compile(r"[\w.@/+-]{1,64}")


class Scope(StrEnum):
    """Where an entry stands."""

    GLOBAL = "global"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault. `name`: the server's, or the place of the entry (`[2]`); empty when it is the whole text's.

    `field`: the key that is wrong, as a path (`env.PORT`). `key`: the server's, empty where it has none.
    `project`: the one whose configuration it stands in. `error`: the same as an exception, for callers that
    want one server or nothing.
    """

    name: str
    scope: Scope
    field: str
    message: str
    key: str = ""
    project: str | None = None
    error: ConfigError | None = dataclasses.field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        server = f"server '{self.name}'" if self.name else "configuration"
        return f"{server} ({self.scope}): {self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """Something that was read, but perhaps not as it was meant."""

    name: str
    scope: Scope
    field: str
    message: str
    key: str = ""
    project: str | None = None

    def __str__(self) -> str:
        server = f"server '{self.name}'" if self.name else "configuration"
        return f"{server} ({self.scope}): {self.field}: {self.message}"


@dataclass(slots=True)
class Notes:
    """Collects what is found about one entry; the name and scope are added at the end."""

    errors: list[ConfigError] = dataclasses.field(default_factory=list)
    warnings: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def fault(self, field: str, message: str) -> None:
        self.errors.append(MCPConfigError(field, message))

    def warn(self, field: str, message: str) -> None:
        self.warnings.append((field, message))

    def faults_of(
        self, name: str, scope: Scope, project: str | None = None, key: str = ""
    ) -> tuple[ConfigFault, ...]:
        return tuple(fault_of(error, name, scope, project, key) for error in self.errors)

    def warnings_of(
        self, name: str, scope: Scope, project: str | None = None, key: str = ""
    ) -> tuple[ConfigWarning, ...]:
        return tuple(
            ConfigWarning(name, scope, field, message, key, project) for field, message in self.warnings
        )


def fault_of(
    error: ConfigError, name: str, scope: Scope, project: str | None = None, key: str = ""
) -> ConfigFault:
    return ConfigFault(name, scope, error.field, error.reason, key, project, error)


def shown(text: str) -> str:
    """A key or a program's name for a message. What does not look like one is not repeated."""
    return text if _SHOWABLE.fullmatch(text) else "…"


def listed(names: Iterable[str]) -> str:
    return ", ".join(names)
