"""The vectors of HoloDeck and Agent Zero, and a configuration built from one entry.

A case without `defect` holds here in meaning. For each one with `defect` a test module says what is done
instead, in a table by id that must name exactly those cases; where another case has another answer here, a
table says why.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.upstream.config.building import Place, build
from shared.upstream.config.faults import ConfigFault, ConfigWarning, Scope
from shared.upstream.config.model import ServerConfig
from shared.upstream.config.scopes import merge, read_scope
from shared.upstream.settings import UpstreamSettings

FOLDER = Path(__file__).resolve().parents[3] / "vectors"


def cases(name: str) -> list[Any]:
    """`name`: `holodeck-env`; the folder is its first word."""
    folder = name.partition("-")[0]
    return list(json.loads((FOLDER / folder / f"{name}.json").read_text("utf-8"))["cases"])


def kept(given: Iterable[Any], without: Collection[str] = ()) -> list[Any]:
    """The cases that hold here too, as parameters. `without`: ids that a table of the module answers."""
    return [
        pytest.param(case, id=case["id"])
        for case in given
        if "defect" not in case and case["id"] not in without
    ]


def defects(given: Iterable[Any]) -> set[str]:
    return {case["id"] for case in given if "defect" in case}


def named(given: Iterable[Any], case_id: str) -> Any:
    return next(case for case in given if case["id"] == case_id)


@dataclass(frozen=True)
class Outcome:
    servers: Mapping[str, ServerConfig]
    faults: tuple[ConfigFault, ...]
    warnings: tuple[ConfigWarning, ...]

    @property
    def only(self) -> ServerConfig:
        """The one server of a configuration without a fault."""
        assert self.faults == ()
        (found,) = self.servers.values()
        return found

    def fields(self) -> set[str]:
        return {fault.field for fault in self.faults}

    def said(self) -> str:
        """All that a person is shown."""
        return "\n".join(map(str, (*self.faults, *self.warnings)))


def read(
    text: str,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path = Path("/nowhere"),
    commands: tuple[str, ...] = (),
) -> Outcome:
    """A global configuration's text, as the app would read it."""
    settings = UpstreamSettings(commands=commands)
    scope = read_scope(text, Scope.GLOBAL)
    place = Place(settings, environ or {}, folder)
    built = {one.key: build(one.entry, one.key, place) for one in merge(scope)}
    return Outcome(
        {key: one.config for key, one in built.items() if one.config is not None},
        (*scope.faults, *(fault for one in built.values() for fault in one.faults)),
        (*scope.warnings, *(warning for one in built.values() for warning in one.warnings)),
    )


def server(entry: Any, name: str = "s", **more: Any) -> Outcome:
    """One entry under `mcpServers`."""
    return read(json.dumps({"mcpServers": {name: entry}}), **more)


def tool(entry: Any, **more: Any) -> Outcome:
    """One entry of HoloDeck's `tools`."""
    return read(json.dumps({"tools": [entry]}), **more)
