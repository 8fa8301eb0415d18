"""What callers are shown of the servers: theirs only, faulty ones too, and never by waiting for one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.upstream.connection.state import ServerState
from shared.upstream.gateway import Gateway
from shared.upstream.lock import Lock, LockedTool, Schemas, hash_of
from shared.upstream.policy import Policy
from shared.upstream.publish import UpstreamEntry
from shared.upstream.settings import UpstreamSettings
from shared.upstream.status import Servers

from .fakes import SCHEMA, Pool, configured, listed

READ = listed("read")


def locked(name: str, *scopes: str, **fields: Any) -> LockedTool:
    schemas = Schemas(hash_of(READ), dict(SCHEMA))
    found = dict.fromkeys(scopes or ("global",), schemas)
    return LockedTool(f"docs_{name}", "docs", name, name, f"Does {name}.", found, 60_000, **fields)


LOCK = Lock(
    tools=(locked("read"), locked("off"), locked("once", disabled=True), locked("own", "project:sales"))
)


def servers(settings: UpstreamSettings, pool: Pool | None = None, policy: str = "") -> Servers:
    gateway = Gateway(settings, Policy.parse(policy))
    used = pool or Pool()
    gateway.pool = lambda: used  # type: ignore[assignment,method-assign,return-value]
    return Servers(gateway, LOCK)


def one(found: Servers, name: str = "docs", owner: str = "default", project: str | None = None) -> Any:
    return asyncio.run(found.one(name, owner, project))


@pytest.fixture
def settings(tmp_path: Path) -> UpstreamSettings:
    entry = {"url": "https://d.example.com", "description": "Pages.", "disabled_tools": ["off"]}
    broken = {"url": "https://d.example.com/${NO_SUCH_VARIABLE}"}
    return configured(
        tmp_path, {"docs": entry, "Bro ken": broken, "off": {"disabled": True}}, {"sales": {"docs": {}}}
    )


def test_an_entry_has_what_the_contract_names(settings: UpstreamSettings) -> None:
    pool = Pool(state=ServerState.CONNECTED, log="said something", session_id="abcd1234…")
    found = asyncio.run(servers(settings, pool).all("default", None))
    assert [entry["name"] for entry in found] == ["docs", "off", "Bro ken"]
    instance = found[0].pop("instance")
    assert len(instance) == 8
    assert found[0] == {
        "name": "docs",
        "scope": "global",
        "type": "http",
        "description": "Pages.",
        "connected": True,
        "tool_count": 1,
        "has_log": True,
        "error": "",
        "state": "connected",
    }
    off, broken = found[1], found[2]
    assert (off["error"], off["connected"], off["tool_count"]) == ("Disabled in config", False, 0)
    assert "NO_SUCH_VARIABLE" in broken["error"]
    assert (broken["connected"], broken["state"], broken["tool_count"]) == (False, "error", 0)


def test_a_cached_error_means_not_connected(settings: UpstreamSettings) -> None:
    pool = Pool(state=ServerState.ERROR, error="Server 'docs' cannot be reached.")
    found = asyncio.run(servers(settings, pool).all("default", None))[0]
    assert (found["connected"], found["state"], found["error"]) == (
        False, "error", "Server 'docs' cannot be reached.",
    )  # fmt: skip


def test_one_server_shows_all_its_tools(settings: UpstreamSettings) -> None:
    pool = Pool(state=ServerState.CONNECTED, session_id="abcd1234…", listing={"read": READ})
    found = one(servers(settings, pool, '{"owners": {"ben": {"deny": ["mcp:docs:read"]}}}'), " DOCS ")
    assert found["session_id"] == "abcd1234…"
    shown = {tool["name"]: (tool["disabled"], tool["allowed"], tool["state"]) for tool in found["tools"]}
    assert shown == {
        "read": (False, True, "locked"),
        "off": (True, True, "gone"),
        "once": (True, True, "gone"),
    }
    first = next(tool for tool in found["tools"] if tool["name"] == "read")
    assert (first["published_name"], first["input_schema"]) == ("docs_read", SCHEMA)
    denied = one(servers(settings, pool, '{"owners": {"ben": {"deny": ["mcp:docs:read"]}}}'), owner="ben")
    assert {tool["name"]: tool["allowed"] for tool in denied["tools"]}["read"] is False
    assert denied["tool_count"] == 0


def test_the_log_is_the_operators(settings: UpstreamSettings) -> None:
    found = servers(settings, Pool(log="of some caller"))
    assert (one(found)["log"], one(found)["has_log"]) == ("of some caller", True)
    assert (one(found, owner="ben")["log"], one(found, owner="ben")["has_log"]) == ("", False)


def test_a_project_has_its_own_view(settings: UpstreamSettings) -> None:
    found = servers(settings)
    own = one(found, owner="ana", project="sales")
    assert (own["scope"], [tool["name"] for tool in own["tools"]]) == ("project", ["own"])
    # Off in the global scope stays off.
    assert own["tool_count"] == 1


def test_a_faulty_one_can_be_looked_at_and_an_unknown_one_cannot(settings: UpstreamSettings) -> None:
    found = servers(settings)
    for name in ("Bro ken", "bro_ken"):
        assert "NO_SUCH_VARIABLE" in one(found, name)["error"]
    for name in ("nothing", "", "\x00", "..", "x" * 500):
        assert one(found, name) is None


def test_a_server_without_its_tools_shows_none(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {"url": "https://d.example.com", "load_tools": False}})
    found = one(servers(settings))
    assert (found["tools"], found["tool_count"]) == ([], 0)
    assert asyncio.run(servers(settings).may_call(UpstreamEntry(LOCK.tools[0], None), "default", None)) is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "owner", "project", "expected"),
    [
        ("read", "default", None, True),
        ("read", "ben", None, False),
        ("off", "default", None, False),
        ("once", "default", None, False),
        ("own", "default", None, False),
        ("own", "ana", "sales", True),
        ("read", "ana", "sales", False),
    ],
)
def test_who_may_call_what(
    settings: UpstreamSettings, name: str, owner: str, project: str | None, expected: bool
) -> None:
    found = servers(settings, policy='{"owners": {"ben": {"deny": ["mcp:docs:*"]}}}')
    entry = UpstreamEntry(next(tool for tool in LOCK.tools if tool.tool == name), None)  # type: ignore[arg-type]
    assert asyncio.run(found.may_call(entry, owner, project)) is expected
    other = UpstreamEntry(replace(entry.locked, server="unknown"), None)  # type: ignore[arg-type]
    assert asyncio.run(found.may_call(other, owner, project)) is False


def test_own_tools_may_be_called(settings: UpstreamSettings) -> None:
    assert asyncio.run(servers(settings).may_call(object(), "ben", None)) is True  # type: ignore[arg-type]
