"""`upstream sync` on servers that are only told of: every scope, faults that spare the others, one text."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_types import jsonrpc_message_adapter

from shared.errors import MCPProtocolError
from shared.upstream import lock
from shared.upstream.findings import Fault
from shared.upstream.lock import Lock, LockedTool
from shared.upstream.model import UpstreamPrompt
from shared.upstream.settings import PublishedNames, UpstreamSettings
from shared.upstream.sync import Synced, differs, read_before, sync, write

from .fakes import World, configured, listed, unreachable

SECRET = "sk-live-5f4dcc3b5aa765d6"


def run(settings: UpstreamSettings, world: World, before: Lock | None = None, taken: Any = ()) -> Synced:
    done = asyncio.run(sync(settings, before or Lock(), taken, connect=world.connect))
    assert sorted(world.closed) == sorted(world.asked)
    return done


def tools(made: Lock) -> dict[str, LockedTool]:
    return {one.qualified: one for one in made.tools}


def test_everything_a_server_says_is_locked(tmp_path: Path) -> None:
    tool = listed(
        "read",
        title="Read it",
        output_schema={"type": "object"},
        annotations={"readOnlyHint": True, "title": "Other", "odd": 1, "idempotentHint": "yes"},
        icons=({"src": "https://example.com/i.png", "sizes": ["48x48"], "odd": 1},),
        meta={"vendor/key": 1, "toolbox/upstream": {"server": "not ours"}},
    )
    prompt = UpstreamPrompt("ask", "Ask", "Asks.", ({"name": "q", "required": True},))
    settings = configured(tmp_path, {"docs": {"url": "https://d.example.com", "tool_timeout": 2.5}})
    done = run(settings, World({"docs": [tool]}, {"docs": [prompt]}))
    (made,) = done.lock.tools
    assert (made.name, made.title, made.timeout_ms) == ("docs_read_6e32feee", "Read it", 2_500)
    assert made.annotations == {"readOnlyHint": True}
    assert made.icons == ({"src": "https://example.com/i.png", "sizes": ["48x48"]},)
    assert made.meta == {"vendor/key": 1}
    assert made.scopes["global"].hash == lock.hash_of(tool)
    (asked,) = done.lock.prompts
    assert (asked.qualified, asked.title, asked.arguments) == (
        "docs.ask",
        "Ask",
        ({"name": "q", "required": True},),
    )
    assert [str(change) for change in done.changes] == ["added    docs.ask", "added    docs.read"]


def test_what_a_server_leaves_out_is_filled_in(tmp_path: Path) -> None:
    world = World(
        {"docs": [listed("read", description=None), listed("find", annotations={"title": "Find it"})]}
    )
    made = tools(run(configured(tmp_path, {"docs": {}}), world).lock)
    assert made["docs.read"].description == "The tool 'read' of the MCP server 'docs'."
    assert (made["docs.read"].title, made["docs.find"].title) == ("read", "Find it")
    assert made["docs.read"].timeout_ms == 120_000


def test_the_text_is_the_same_whatever_the_order(tmp_path: Path) -> None:
    names = ["b", "a", "C", "a.b"]
    texts = set()
    for turn, order in enumerate((names, names[::-1])):
        settings = configured(tmp_path / str(turn), {name: {} for name in order})
        world = World({name: [listed(tool) for tool in order] for name in order})
        texts.add(run(settings, world).lock.to_text())
    assert len(texts) == 1


def test_no_secret_is_in_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    servers = {
        "web": {
            "url": f"https://d.example.com/mcp?key={SECRET}",
            "headers": {"Authorization": "Bearer ${API_TOKEN}"},
        },
        "child": {"command": "npx", "args": ["-y", "pkg", f"--key={SECRET}"], "env": {"KEY": SECRET}},
    }
    said = f"Use the key {SECRET}."
    talkative = listed(
        "a",
        title=said,
        description=said,
        input_schema={
            "type": "object",
            "properties": {"key": {"type": "string", "description": said, "default": SECRET}},
        },
        output_schema={"type": "object", "properties": {SECRET: {"type": "string"}}},
        annotations={"title": said, "readOnlyHint": True},
        icons=({"src": f"https://i.test/a.png?key={SECRET}"}, {"src": "https://i.test/b.png"}),
        meta={"vendor/key": {"token": [said]}, "kept": 1},
    )
    prompt = UpstreamPrompt("ask", said, said, ({"name": "q", "description": said, "required": True},))
    world = World({"web": [talkative], "child": [listed("b", input_schema={"enum": [SECRET]})]},
                  {"web": [prompt]})  # fmt: skip
    done = run(configured(tmp_path, servers), world)
    text = done.lock.to_text()
    assert len(done.lock.tools) == 2
    assert SECRET not in text
    assert "example.com" not in text
    assert SECRET not in str(done.warnings)
    made = tools(done.lock)["web.a"]
    assert made.title == made.description == "Use the key [redacted]."
    assert made.scopes["global"].input_schema["properties"] == {
        "key": {"type": "string", "description": "Use the key [redacted]."}
    }
    # What would mean something else without the value is left out, and the server alone checks.
    assert made.scopes["global"].output_schema is None
    assert tools(done.lock)["child.b"].scopes["global"].input_schema == {"type": "object"}
    assert made.icons == ({"src": "https://i.test/b.png"},)
    assert made.meta == {"vendor/key": {"token": ["Use the key [redacted]."]}, "kept": 1}
    (asked,) = done.lock.prompts
    assert asked.description == "Use the key [redacted]."
    assert asked.arguments == ({"name": "q", "description": "Use the key [redacted].", "required": True},)
    # The hashes are of what was said, so a secret is no drift.
    assert made.scopes["global"].hash == lock.hash_of(talkative)
    told = [":".join(one.reason.split(":")[:2]) for one in done.warnings if one.server == "web"]
    assert told == [
        *("a: input schema", "a: output schema", "a: title", "a: description", "a: icons", "a: _meta"),
        *("prompt ask: title", "prompt ask: description", "prompt ask: argument 'q'"),
    ]


def test_words_of_a_schema_are_no_secrets(tmp_path: Path) -> None:
    """An `env` may hold any word; a schema's own words give none away, and a name that holds one stays."""
    servers = {"child": {"command": "npx", "args": ["-y", "pkg"], "env": {"KIND": "string", "MODE": "search"}}}
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    done = run(configured(tmp_path, servers), World({"child": [listed("search", input_schema=schema)]}))
    (made,) = done.lock.tools
    assert (made.tool, made.scopes["global"].input_schema) == ("search", schema)
    assert [fault.reason.partition(":")[0] for fault in done.warnings] == ["[redacted]", "[redacted]"]
    assert "is kept: the server is called by it" in done.warnings[0].reason


def test_what_is_as_deep_as_the_wire_lets_it_be_is_looked_through(tmp_path: Path) -> None:
    deep: Any = {"description": f"Like {SECRET}."}
    for _ in range(95):
        deep = {"type": "object", "properties": {"in": deep}}
    wire = b'{"jsonrpc": "2.0", "id": 1, "result": ' + b'{"a":' * 200 + b"1" + b"}" * 201
    with pytest.raises(ValueError, match="recursion"):
        jsonrpc_message_adapter.validate_json(wire)
    servers = {"child": {"command": "npx", "args": ["-y", "pkg"], "env": {"KEY": SECRET}}}
    done = run(
        configured(tmp_path, servers), World({"child": [listed("a", output_schema=deep, meta={"deep": deep})]})
    )
    assert SECRET not in done.lock.to_text()
    (made,) = done.lock.tools
    assert "Like [redacted]." in json.dumps(made.meta)


def test_prompts_that_cannot_be_listed_stay_as_they_were(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}})
    asked: dict[Any, Any] = {"docs": [UpstreamPrompt("ask")]}
    before = run(settings, World({"docs": [listed("read")]}, asked)).lock
    refusal = MCPProtocolError("Server 'docs' refused prompts/list: busy (code -32000).", "docs", -32000)
    done = run(settings, World({"docs": [listed("find")]}, {"docs": refusal}), before)
    assert [one.qualified for one in done.lock.prompts] == ["docs.ask"]
    assert tools(done.lock).keys() == {"docs.find"}
    assert done.faults == [Fault("global", "docs", refusal.message)]
    assert [str(change) for change in done.changes] == ["added    docs.find", "removed  docs.read"]
    # Those that it can list and does not have any more go.
    assert run(settings, World({"docs": []}, {"docs": []}), before).lock.prompts == ()


def test_a_server_that_cannot_be_reached_keeps_what_was_locked(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"up": {}, "down": {}})
    before = run(settings, World({"up": [listed("a")], "down": [listed("b"), listed("c")]},
                                 {"down": [UpstreamPrompt("ask")]})).lock  # fmt: skip
    done = run(settings, World({"up": [listed("a2")], "down": unreachable()}), before)
    assert tools(done.lock).keys() == {"up.a2", "down.b", "down.c"}
    assert [one.qualified for one in done.lock.prompts] == ["down.ask"]
    assert done.faults == [Fault("global", "down", "Server 'down' cannot be reached.")]
    assert [str(change) for change in done.changes] == ["removed  up.a", "added    up.a2"]
    # What nobody configures any more goes.
    assert tools(run(configured(tmp_path, {"up": {}}), World({"up": []}), before).lock) == {}


def test_a_server_whose_configuration_is_wrong_keeps_what_was_locked(tmp_path: Path) -> None:
    before = run(
        configured(tmp_path, {"web": {}, "up": {}}), World({"web": [listed("a")], "up": [listed("b")]})
    ).lock
    broken = configured(tmp_path, {"web": {"url": "https://d.example.com/${NO_SUCH_VARIABLE}"}, "up": {}})
    done = run(broken, World({"up": [listed("b")]}), before)
    assert tools(done.lock).keys() == {"web.a", "up.b"}
    assert [(fault.server, "NO_SUCH_VARIABLE" in fault.reason) for fault in done.faults] == [("web", True)]
    (tmp_path / "mcp_servers.json").write_text("[[[")
    done = run(broken, World({}), before)
    assert tools(done.lock).keys() == {"web.a", "up.b"}
    assert [fault.server for fault in done.faults] == ["configuration"]


def test_what_nobody_foresaw_is_one_servers_fault(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"odd": {}, "up": {}})
    done = run(settings, World({"odd": RuntimeError(f"with {SECRET}"), "up": [listed("a")]}))
    assert tools(done.lock).keys() == {"up.a"}
    assert done.faults == [Fault("global", "odd", "it could not be asked (RuntimeError)")]
    stuck = run(settings, World({"odd": [], "up": [listed("a")]}, stuck=OSError()))
    assert {fault.server for fault in stuck.faults} == {"odd", "up"}
    assert tools(stuck.lock).keys() == {"up.a"}


def test_every_scope_is_asked_and_one_name_stands_for_all(tmp_path: Path) -> None:
    """What scopes promise differently is promised only where they agree."""
    settings = configured(
        tmp_path, {"docs": {"url": "https://d.example.com", "tool_timeout": 5}, "off": {}},
        {"sales": {"Docs": {}, "own": {}, "off": {"disabled": True}}},
    )  # fmt: skip
    harmless = listed("read", annotations={"readOnlyHint": True, "openWorldHint": False})
    other = listed("read", annotations={"readOnlyHint": False, "openWorldHint": False},
                   input_schema={"type": "object", "properties": {"n": {"type": "integer"}}})  # fmt: skip
    world = World(
        {
            ("docs", None): [harmless],
            ("Docs", "sales"): [other, listed("more")],
            "own": [listed("a")],
            "off": [listed("x")],
        }
    )
    made = tools(run(settings, world).lock)
    assert {name: sorted(one.scopes) for name, one in made.items()} == {
        "docs.read": ["global", "project:sales"],
        "docs.more": ["project:sales"],
        "own.a": ["project:sales"],
        "off.x": ["global"],
    }
    read = made["docs.read"]
    assert read.annotations == {"openWorldHint": False}
    assert read.timeout_ms == 120_000
    assert read.scopes["global"].input_schema != read.scopes["project:sales"].input_schema
    assert sorted(world.asked) == ["Docs", "docs", "off", "own"]


def test_disabled_servers_are_not_asked_and_disabled_tools_are_locked(tmp_path: Path) -> None:
    servers = {
        "off": {"disabled": True},
        "docs": {"url": "https://d.example.com", "disabled_tools": ["read", "gone"]},
    }
    world = World({"docs": [listed("read"), listed("find")]})
    done = run(configured(tmp_path, servers), world)
    assert world.asked == ["docs"]
    assert {name: one.disabled for name, one in tools(done.lock).items()} == {
        "docs.read": True,
        "docs.find": False,
    }
    project: Any = {"sales": {"docs": {}}}
    # Off in the global scope stays off in the project's.
    assert tools(run(configured(tmp_path, servers, project), world).lock)["docs.read"].disabled is True


def test_what_is_not_to_be_loaded_is_not_locked(tmp_path: Path) -> None:
    entry = {"url": "https://d.example.com"}
    world = World({"docs": [listed("read")]}, {"docs": [UpstreamPrompt("ask")]})
    before = run(configured(tmp_path, {"docs": entry}), world).lock
    assert len(before.tools) == len(before.prompts) == 1
    settings = configured(tmp_path, {"docs": {**entry, "load_tools": False, "load_prompts": False}})
    for now in (world, World({"docs": unreachable()})):
        made = run(settings, now, before).lock
        assert (made.tools, made.prompts) == ((), ())


def test_names_of_the_apps_own_are_not_taken(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}}, names=PublishedNames.DOTTED)
    world = World({"docs": [listed("read"), listed("find")]})
    made = tools(run(settings, world, taken={"docs_read"}).lock)
    assert made["docs.find"].name == "docs.find"
    assert made["docs.read"].name == "docs_read_6e32feee"


def test_what_had_to_be_changed_is_noted_and_told(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}})
    done = run(settings, World({"docs": [listed("read", output_schema={"$ref": "https://example.com"})]}))
    (made,) = done.lock.tools
    assert made.scopes["global"].output_schema is None
    assert "output schema: left out" in made.notes[0]
    assert done.warnings == [Fault("global", "docs", f"read: {made.notes[0]}")]


def test_changes_name_what_of_a_tool_is_different(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}})
    before = run(settings, World({"docs": [listed("read")]})).lock
    done = run(settings, World({"docs": [listed("read", description="Other.")]}), before)
    assert [str(change) for change in done.changes] == ["changed  docs.read (description, scopes)"]
    assert run(settings, World({"docs": [listed("read")]}), before).changes == []


def test_the_file_is_written_whole_and_only_when_it_differs(tmp_path: Path) -> None:
    path = tmp_path / lock.LOCK_FILE
    made = run(configured(tmp_path, {"docs": {}}), World({"docs": [listed("read")]})).lock
    assert differs(path, Lock()) is False
    assert differs(path, made) is True
    assert write(path, made) is True
    assert (write(path, made), differs(path, made)) == (False, False)
    assert differs(path, replace(made, names="dotted")) is True
    assert lock.read(path) == made
    path.write_bytes(b"\xff\xfe")
    assert differs(path, made) is True
    faults: list[Fault] = []
    assert read_before(path, faults) == Lock()
    assert faults[0].server == lock.LOCK_FILE
    assert [one.name for one in tmp_path.iterdir()].count(f"{lock.LOCK_FILE}.new") == 0


def test_half_a_character_is_no_crash(tmp_path: Path) -> None:
    odd = json.loads('"half \\ud83d"')
    made = run(configured(tmp_path, {"docs": {}}), World({"docs": [listed("read", description=odd)]})).lock
    assert write(tmp_path / lock.LOCK_FILE, made) is True
    assert lock.read(tmp_path / lock.LOCK_FILE).tools[0].description == "half ?"
