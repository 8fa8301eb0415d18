"""One call: scope, policy, time, drift, what it tells; on a pool that is only told of."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.errors import (
    EnvelopeError,
    MCPConnectionError,
    MCPError,
    MCPTimeoutError,
    MCPToolNotFoundError,
    ToolError,
)
from shared.invoke import Invoker
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool.call import caller
from shared.tool.execution import _home
from shared.tool.result import ToolResult
from shared.upstream import watching
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.gateway import Drift, Gateway
from shared.upstream.lock import Lock, LockedPrompt, LockedTool, Schemas, hash_of
from shared.upstream.policy import Policy
from shared.upstream.publish import UpstreamEntry
from shared.upstream.settings import UpstreamSettings
from shared.upstream.status import Servers
from tests.support.upstream import until
from tests.unit.jobs.bench import SEALER, SETTINGS

from .fakes import SCHEMA, Heard, Pool, configured, context, listed, write

READ = listed("read")
TOOL = LockedTool(
    "docs_read", "docs", "read", "Read", "Does read.", {"global": Schemas(hash_of(READ), dict(SCHEMA))}, 60_000
)
PROMPT = LockedPrompt("docs_ask", "docs", "ask", "Ask", "Asks.", (), {"global": "h"})


def gateway(settings: UpstreamSettings, pool: Pool, policy: str = "") -> Gateway:
    made = Gateway(settings, Policy.parse(policy))
    made.pool = lambda: pool  # type: ignore[assignment,method-assign,return-value]
    return made


def call(
    settings: UpstreamSettings, pool: Pool, tool: LockedTool = TOOL, policy: str = "", **how: Any
) -> ToolResult:
    return asyncio.run(gateway(settings, pool, policy).call(tool, {"text": "x"}, context(**how)))


@pytest.fixture
def settings(tmp_path: Path) -> UpstreamSettings:
    return configured(tmp_path, {"docs": {}})


def test_a_call_goes_through_and_tells_what_it_hears(settings: UpstreamSettings) -> None:
    pool, heard = Pool(), Heard()
    result = call(settings, pool, sink=heard)
    assert result.content[0] == {"type": "text", "text": "done"}
    (made,) = pool.calls
    assert (made["server"], made["tool"], made["arguments"]) == ("docs", "read", {"text": "x"})
    assert 59 < made["timeout"] <= 60
    assert heard.told == [("progress", 25.0, "a quarter"), ("progress", None, "5"), ("warn", "careful")]


@pytest.mark.parametrize(
    "error",
    [
        MCPConnectionError("It cannot be reached.", "docs"),
        MCPTimeoutError("It was not ready.", "docs", timeout=5),
        DeadConnectionError("It is gone.", "docs", sent=True),
        MCPToolNotFoundError("read", "docs"),
    ],
)
def test_only_the_operator_is_told_what_a_server_says_of_its_failure(
    settings: UpstreamSettings, error: MCPError
) -> None:
    error.log = "no such file: /srv/private"
    plain = error.message
    pool = Pool(answer=error)

    def told(owner: str) -> MCPError:
        with pytest.raises(type(error)) as caught:
            call(replace(settings, projects={}), pool, owner=owner)
        return caught.value

    assert plain in told("ana").message
    assert "private" not in told("ana").message
    if not isinstance(error, MCPToolNotFoundError):  # that one is told anew, with what to do about it
        full = told("default")
        assert full.message == f"{plain} The end of its log: no such file: /srv/private"
        assert full.server == "docs"
    assert error.message == plain


def test_start_and_end_are_logged_with_the_calls_correlation_id(
    settings: UpstreamSettings, caplog: pytest.LogCaptureFixture
) -> None:
    pool = Pool()
    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        call(settings, pool)
        pool.answer = MCPToolNotFoundError("read", "docs")
        with pytest.raises(MCPToolNotFoundError):
            call(settings, pool)
        pool.answer = {"isError": True, "content": []}
        call(settings, pool)
    lines = [json.loads(record.message) for record in caplog.records]
    assert [line["event"] for line in lines] == ["upstream.start", "upstream.end"] * 3
    assert {(line["correlationId"], line["server"], line["tool"]) for line in lines} == {
        ("mcp-1", "docs", "read")
    }
    assert [line.get("outcome") for line in lines[1::2]] == ["completed", "failed", "failed"]


@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
def test_only_a_call_that_does_no_harm_may_be_repeated(settings: UpstreamSettings, hint: str) -> None:
    pool = Pool()
    call(settings, pool)
    call(settings, pool, replace(TOOL, annotations={hint: True}))
    call(settings, pool, replace(TOOL, annotations={hint: "yes"}))
    assert [one["repeatable"] for one in pool.calls] == [False, True, False]


def test_time_is_what_was_asked_for_else_what_is_configured(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {"url": "https://d.example.com", "tool_timeout": 2}})
    pool = Pool()
    call(settings, pool)
    call(settings, pool, timeout_ms=30_000, timeout_asked=True)
    call(settings, pool, timeout_ms=30_000)  # no caller's word: a limit of the app's has cut it
    call(settings, pool, timeout_ms=60_000, timeout_asked=True)  # as long as was locked, and asked for
    call(settings, pool, timeout_ms=90_000)  # of a row that does not say who: nobody else gives that much
    assert [round(one["timeout"]) for one in pool.calls] == [2, 30, 2, 60, 90]


@pytest.mark.parametrize(
    ("envelope", "seconds"),
    [
        ({}, 2),
        ({"timeoutMs": 30_000}, 30),
        ({"timeoutMs": 600_000}, 210),
        ({"executionMode": "headless"}, 2),
        ({"executionMode": "headless", "timeoutMs": 30_000}, 30),
        ({"executionMode": "headless", "timeoutMs": 600_000}, 600),
    ],
)
def test_whether_time_was_asked_for_reaches_the_server_from_the_call_and_through_a_job(
    tmp_path: Path, envelope: dict[str, Any], seconds: float
) -> None:
    """Locked with 600 s, of which an inline call has 210 at most; configured since are 2."""
    settings = configured(tmp_path, {"docs": {"url": "https://d.example.com", "tool_timeout": 2}})
    pool, store = Pool(), MemoryJobStore()
    entry = UpstreamEntry(replace(TOOL, timeout_ms=600_000), gateway(settings, pool))
    invoker = Invoker(SETTINGS, SEALER, lambda: store)
    worker = Worker({entry.spec.name: entry}, store, SEALER, SETTINGS)

    async def answer() -> ToolResult:
        payload = json.dumps({"name": entry.spec.name, "arguments": {"text": "x", "__pptb": envelope}})
        answering = asyncio.create_task(invoker.answer(entry, payload))
        while not answering.done():
            while store.messages:
                await worker.handle(store.messages.popleft())
            await asyncio.sleep(0.001)
        return await answering

    assert asyncio.run(answer()).text == "done"
    (made,) = pool.calls
    assert made["timeout"] == pytest.approx(seconds, abs=1)


def test_a_timeout_names_the_server_and_the_calls_own_time(settings: UpstreamSettings) -> None:
    pool = Pool(MCPTimeoutError("inside", "docs", timeout=0.05))
    with pytest.raises(
        MCPTimeoutError, match=r"^Server 'docs' did not answer the call of 'read' within 0\.15 s\.$"
    ):
        call(settings, pool, timeout_ms=150)


def test_a_timeout_names_the_server_though_the_calls_own_limit_comes_first(
    settings: UpstreamSettings,
) -> None:
    """A loop that was busy for a while finds both limits passed at once, and sees to the outer one."""

    class Silent(Pool):
        async def call(self, *args: Any, **how: Any) -> Any:
            asyncio.get_running_loop().call_soon(time.sleep, 0.2)
            async with asyncio.timeout(how["timeout"]):
                await asyncio.Event().wait()

    async def in_time() -> None:
        async with asyncio.timeout(0.15):
            await gateway(settings, Silent()).call(TOOL, {"text": "x"}, context(timeout_ms=150))

    with pytest.raises(MCPTimeoutError, match=r"did not answer the call of 'read' within 0\.15 s\.$"):
        asyncio.run(in_time())


def test_a_call_that_is_cancelled_before_its_time_is_over_is_just_that(settings: UpstreamSettings) -> None:
    class Silent(Pool):
        async def call(self, *args: Any, **how: Any) -> Any:
            await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(gateway(settings, Silent()).call(TOOL, {"text": "x"}, context()))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_a_connection_that_is_too_slow_says_so_itself(settings: UpstreamSettings) -> None:
    pool = Pool(MCPTimeoutError("Server 'docs' was not ready within 10 s (init_timeout).", "docs", timeout=10))
    with pytest.raises(MCPTimeoutError, match="was not ready within 10 s"):
        call(settings, pool)


# Scope and policy.


def test_the_callers_project_decides_which_server(tmp_path: Path) -> None:
    settings = configured(
        tmp_path, {"docs": {}}, {"sales": {"Docs": {}}, "lab": {}}, granted={"ana": ("sales", "lab")}
    )
    both = replace(TOOL, scopes={**TOOL.scopes, "project:sales": TOOL.scopes["global"]})
    pool = Pool()
    for owner, project in (("default", None), ("ana", None), ("ana", "lab")):
        call(settings, pool, both, owner=owner, project=project)
    assert [(one["server"], one["scope"]) for one in pool.calls] == [
        ("docs", "global"), ("Docs", "project"), ("docs", "global"),
    ]  # fmt: skip
    for owner, project in (("ben", "sales"), ("ana", "nowhere")):
        with pytest.raises(EnvelopeError, match="there is no such project for you"):
            call(settings, pool, both, owner=owner, project=project)


@pytest.mark.parametrize(
    ("servers", "project", "scopes", "owner", "said"),
    [
        ({}, {}, ["global"], "default", "its server 'docs' is not configured any more"),
        ({}, {"docs": {}}, ["project:sales"], "default", "its server 'docs' is not in your project"),
        ({"docs": {}}, {"docs": {}}, ["global"], "ana", "it is not in your project"),
        ({"docs": {}}, {"docs": {}}, ["project:sales"], "default", "it is not in your project"),
        ({"docs": {}}, {"docs": {"disabled": True}}, ["global"], "ana", "its server 'docs' is switched off"),
        ({"docs": {"url": "ftp://d"}}, {}, ["global"], "default", "its server 'docs' is wrong: url"),
        ({"docs": {"url": "https://d.org", "load_tools": False}}, {}, ["global"], "default", "without its"),
        (
            {"docs": {"url": "https://d.example.com", "disabled_tools": ["read"]}},
            {}, ["global"], "default", "Tool read is disabled for server docs",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_called_says_why(
    tmp_path: Path, servers: Any, project: Any, scopes: list[str], owner: str, said: str
) -> None:
    settings = configured(tmp_path, servers, {"sales": project})
    tool = replace(TOOL, scopes=dict.fromkeys(scopes, TOOL.scopes["global"]))
    pool = Pool()
    with pytest.raises(ToolError) as caught:
        call(settings, pool, tool, owner=owner)
    assert said in caught.value.message
    assert pool.calls == []


def test_policy_is_asked_at_each_call(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}}, {"sales": {}})
    policy = '{"owners": {"ben": {"deny": ["mcp:docs:*"]}}, "projects": {"sales": {"deny": ["mcp:docs:read"]}}}'
    pool = Pool()
    call(settings, pool, policy=policy)
    for owner in ("ben", "ana"):
        with pytest.raises(ToolError, match=r"'docs\.read' is blocked for you by this app's policy"):
            call(settings, pool, policy=policy, owner=owner)
    assert len(pool.calls) == 1


# Results and drift.


@pytest.mark.parametrize(
    ("listing", "drift"),
    [
        (None, Drift.UNKNOWN),
        ({"read": READ}, Drift.NONE),
        ({"read": replace(READ, description="Other.")}, Drift.CHANGED),
        ({}, Drift.GONE),
    ],
)
def test_drift(settings: UpstreamSettings, listing: Any, drift: Drift) -> None:
    made = gateway(settings, Pool(listing=listing))
    config = asyncio.run(made.loaded(None)).servers["docs"]
    assert made.drift(TOOL, config) is drift
    result = call(settings, Pool({"structuredContent": {"a": 1}}, listing=listing))
    changed = drift is Drift.CHANGED
    assert result.structured == {"a": 1}
    assert result.meta.get("toolbox/upstreamChanged", False) is changed
    note = "(The tool has changed at its server since it was published here; `python3 dev.py upstream sync`"
    texts = [block["text"].removesuffix(" publishes what is there now.)") for block in result.content]
    assert texts == (['{"a":1}', note] if changed else [])


def test_a_tool_that_is_gone_says_what_to_do(settings: UpstreamSettings) -> None:
    with pytest.raises(MCPToolNotFoundError, match=r"Tool 'read' not found on server 'docs'; .*upstream sync"):
        call(settings, Pool(MCPToolNotFoundError("read", "docs")))


def test_what_is_published_under_result_is_put_there(settings: UpstreamSettings) -> None:
    wraps = replace(TOOL, scopes={"global": replace(TOOL.scopes["global"], wraps=True)})
    for sent, structured in (({"a": 1}, {"result": {"a": 1}}), ([1], {"result": [1]})):
        assert call(settings, Pool({"structuredContent": sent}), wraps).structured == structured
    assert call(settings, Pool({"structuredContent": {"a": 1}, "isError": True}), wraps).structured == {"a": 1}


# Prompts.


def prompt(settings: UpstreamSettings, pool: Pool, policy: str = "", owner: str = "default") -> Any:
    async def ask() -> Any:
        caller.set(owner)
        return await gateway(settings, pool, policy).prompt(PROMPT, {"q": "why", "left_out": None})

    return [message.to_wire() for message in asyncio.run(ask())]


def test_a_prompt_is_forwarded(settings: UpstreamSettings) -> None:
    blocks = [
        {"type": "text", "text": "hi"},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]
    pool = Pool(prompt_answer={"messages": [{"role": "user", "content": block} for block in blocks]})
    found = prompt(settings, pool)
    assert [(one["role"], one["content"]["type"]) for one in found] == [("user", "text"), ("user", "image")]
    assert pool.calls == [{"server": "docs", "prompt": "ask", "arguments": {"q": "why"}}]


@pytest.mark.parametrize(
    "answer", [{}, {"messages": "x"}, {"messages": [5]}, {"messages": [{"role": "system"}]}]
)
def test_a_prompt_that_is_none_is_told_of(settings: UpstreamSettings, answer: Mapping[str, Any]) -> None:
    with pytest.raises(ToolError, match="Server 'docs' sent a prompt"):
        prompt(settings, Pool(prompt_answer=answer))


def test_prompts_follow_scope_policy_and_configuration(tmp_path: Path) -> None:
    settings = configured(tmp_path, {"docs": {}}, {"sales": {"docs": {}}})
    with pytest.raises(ToolError, match="not in your project"):
        prompt(settings, Pool(), owner="ana")
    with pytest.raises(ToolError, match=r"'docs\.ask' is blocked for you"):
        prompt(settings, Pool(), '{"owners": {"ben": {"deny": ["*"]}}}', owner="ben")
    without = configured(tmp_path, {"docs": {"url": "https://d.example.com", "load_prompts": False}})
    with pytest.raises(ToolError, match="without its prompts"):
        prompt(without, Pool())


# Configuration that changes; loops.


def test_a_changed_configuration_closes_what_is_gone_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FRESH", 0.0)
    settings = configured(tmp_path, {"docs": {}, "old": {}})
    pool = Pool()
    may_close = asyncio.Event()

    async def keep(configs: Any) -> None:
        await may_close.wait()
        pool.kept.append({config.key for config in configs})

    async def main() -> None:
        made = gateway(settings, pool)
        made._pool = (asyncio.get_running_loop(), pool)  # type: ignore[assignment]
        pool.keep = keep  # type: ignore[method-assign]
        await made.call(TOOL, {}, context())
        assert pool.kept == []
        write(tmp_path, {"docs": {}, "new": {}})
        await made.call(TOOL, {}, context())
        assert len(pool.calls) == 2  # though nothing has been closed yet
        may_close.set()
        await made.close()
        assert pool.kept == [{"docs", "new"}]

    asyncio.run(main())


def test_servers_of_a_project_that_nobody_asks_for_any_more_are_not_kept_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "FRESH", 0.0)
    settings = configured(tmp_path, {"docs": {}}, {"sales": {"crm": {}}, "lab": {"rig": {}}})
    kept: list[set[str]] = []

    async def main() -> None:
        watched = watching.Configurations(
            settings, lambda configs: kept.append({config.key for config in configs})
        )
        for project in (None, "sales", "lab"):
            await watched.of(project)
        write(tmp_path / "projects" / "sales", {})
        write(tmp_path / "projects" / "lab", {})
        await watched.of(None)
        assert kept == []  # a scope is not forgotten at once
        monkeypatch.setattr(watching, "FORGOTTEN", 0.0)
        await watched.of(None)
        await until(lambda: bool(kept) and kept[-1] == {"docs"})
        monkeypatch.setattr(watching, "FORGOTTEN", 60.0)

    asyncio.run(main())


def test_callers_at_once_share_one_reading(settings: UpstreamSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    real = watching._load

    def counted(*arguments: Any) -> Any:
        nonlocal read
        read += 1
        return real(*arguments)

    monkeypatch.setattr(watching, "_load", counted)

    async def main() -> None:
        made = gateway(settings, Pool())
        await asyncio.gather(*(made.call(TOOL, {}, context()) for _ in range(20)))

    asyncio.run(main())
    assert read == 1


def test_a_tool_with_a_loop_of_its_own_uses_the_apps_connections(settings: UpstreamSettings) -> None:
    loops = []

    class Watched(Pool):
        async def call(self, *arguments: Any, **how: Any) -> Any:
            loops.append(asyncio.get_running_loop())
            return await super().call(*arguments, **how)

    pool = Watched()
    made = gateway(settings, pool)

    def synchronous() -> list[Any]:
        async def inside() -> Any:
            await made.call(TOOL, {}, context())
            return await Servers(made, Lock(tools=(TOOL,))).all("default", None)

        return asyncio.run(inside())

    async def main() -> None:
        home = asyncio.get_running_loop()
        _home.set(home)
        found = await asyncio.to_thread(synchronous)
        assert loops == [home]
        assert found[0]["name"] == "docs"
        real = Gateway(settings, Policy())
        assert await asyncio.to_thread(lambda: asyncio.run(_pool_of(real))) is real.pool()
        await real.close()

    asyncio.run(main())


async def _pool_of(made: Gateway) -> Any:
    return made.pool()
