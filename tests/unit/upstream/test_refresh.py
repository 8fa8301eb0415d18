"""A configuration that changes while the app runs: by itself, and because the operator asks for it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shared.upstream import watching
from shared.upstream.config.loading import load
from shared.upstream.gateway import Gateway
from shared.upstream.lock import Lock
from shared.upstream.policy import Policy
from shared.upstream.settings import UpstreamSettings
from shared.upstream.status import INSTANCE, Servers

from .fakes import Pool, configured, write

PROGRAM = {"command": "npx", "args": ["-y", "pkg"], "env_file": "vars.env"}


class Connections(Pool):
    """Remembers which connections were to be kept, by the server's key and its variables."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[dict[str, dict[str, str]]] = []

    async def keep(self, configs: Any) -> None:
        self.wanted.append({config.key: config.env_file_values for config in configs})


def app_of(settings: UpstreamSettings, pool: Pool) -> tuple[Gateway, Servers]:
    """Belongs to the running event loop."""
    gateway = Gateway(settings, Policy())
    gateway._pool = (asyncio.get_running_loop(), pool)  # type: ignore[assignment]
    return gateway, Servers(gateway, Lock())


def test_a_change_in_an_env_file_is_noticed_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FRESH", 0.0)
    (tmp_path / "vars.env").write_text("TOKEN=one")
    settings = configured(tmp_path, {"docs": PROGRAM, "other": {}})

    async def main() -> None:
        pool = Connections()
        gateway, _ = app_of(settings, pool)
        first = await gateway.loaded(None)
        assert await gateway.loaded(None) is first
        (tmp_path / "vars.env").write_text("TOKEN=two")
        second = await gateway.loaded(None)
        assert second.servers["docs"].env_file_values == {"TOKEN": "two"}
        # The connection of the other one is found again by its fingerprint.
        assert second.servers["docs"].fingerprint != first.servers["docs"].fingerprint
        assert second.servers["other"].fingerprint == first.servers["other"].fingerprint
        await gateway.close()
        assert pool.wanted == [{"docs": {"TOKEN": "two"}, "other": {}}]

    asyncio.run(main())


def test_a_refresh_builds_anew_and_closes_what_is_configured_otherwise(tmp_path: Path) -> None:
    """Within the second in which the configuration would be taken as it was, and for every project."""
    settings = configured(tmp_path, {"docs": {}, "old": {}}, {"sales": {"crm": {}}})

    async def main() -> None:
        pool = Connections()
        gateway, servers = app_of(settings, pool)
        for project in (None, "sales"):
            await gateway.loaded(project)
        write(tmp_path, {"docs": {}, "new": {}, "wrong": {"command": "bash"}})
        write(tmp_path / "projects" / "sales", {"crm": {"url": "ftp://example.com"}})
        assert set((await gateway.loaded(None)).servers) == {"docs", "old"}

        told = await servers.refresh()
        assert set((await gateway.loaded(None)).servers) == {"docs", "new"}
        await gateway.close()
        assert pool.wanted[-1].keys() == {"docs", "new"}
        assert told.pop("instance") == INSTANCE
        assert [(one["scope"], one["server"]) for one in told.pop("faults")] == [
            ("global", "wrong"), ("project:sales", "crm"),
        ]  # fmt: skip
        assert told == {"servers": 2, "warnings": []}

    asyncio.run(main())


def test_a_refresh_looks_again_at_what_no_file_says(tmp_path: Path) -> None:
    """What docker may mount depends on where links lead, which no text of the configuration tells."""
    link = tmp_path / "data"
    inside = tmp_path / "inside"
    inside.mkdir()
    link.symlink_to("/etc")
    mount = {"command": "docker", "args": ["run", "-i", "--rm", "-v", f"{link}:/data:ro", "org/image"]}
    settings = configured(tmp_path, {"docs": mount})

    async def main() -> None:
        gateway, servers = app_of(settings, Pool())
        assert (await gateway.loaded(None)).servers == {}
        link.unlink()
        link.symlink_to(inside)
        assert load(settings).servers == {}
        assert (await servers.refresh())["faults"] == []
        assert set((await gateway.loaded(None)).servers) == {"docs"}
        await gateway.close()

    asyncio.run(main())


def test_a_refresh_that_changes_nothing_leaves_every_connection(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}})

    async def main() -> None:
        pool = Connections()
        gateway, servers = app_of(settings, pool)
        before = (await gateway.loaded(None)).servers["docs"]
        await servers.refresh()
        assert (await gateway.loaded(None)).servers["docs"].fingerprint == before.fingerprint
        await gateway.close()
        assert all(wanted.keys() == {"docs"} for wanted in pool.wanted)

    asyncio.run(main())
