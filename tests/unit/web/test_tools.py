"""`GET /mcp/tools` and `POST /mcp/tools/{name}`: what the page shows and calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import azure.functions as func
import pytest

from shared.invocations.log import InvocationLog
from shared.invoke import Invoker
from shared.jobs.testing import MemoryJobStore
from shared.tool import Context, McpTextContent, McpToolResponse, ToolAnnotations, ToolCall, ToolError, tool
from shared.tool.binding import ENVELOPE_KEY, trigger_fields
from shared.tool.decorator import DecoratedTool, declared
from shared.tool.discovery import Fault
from shared.tool.handler import ToolEntry
from shared.tool.resolving import resolver
from shared.web import tools
from shared.web.tools import ToolsApi
from tests.unit.invocations.test_log import Memory
from tests.unit.jobs.bench import SEALER
from tests.unit.web.support import OTHER, SETTINGS, TOKEN, body

FAULTS = (Fault("zeta", "no name"), Fault("broken", "first"), Fault("zeta", "no result"))
JSON_HEADERS = {"Content-Type": "application/json"}


class Tools:
    """The HTTP functions around some tools."""

    def __init__(self, *functions: Callable[..., Any], aliases: Mapping[str, str] | None = None) -> None:
        self.entries: dict[str, DecoratedTool] = {}
        for function in functions:
            entry = declared(function)
            assert entry is not None
            self.entries[entry.spec.name] = entry
        self.jobs = MemoryJobStore()
        self.stored = Memory()
        self.log = InvocationLog(lambda: self.stored, flush_every=60)
        invoker = Invoker(SETTINGS, SEALER, lambda: self.jobs, self.log)
        find = resolver(self.entries, aliases or {"server.echo": "echo"})
        homes = dict.fromkeys(self.entries, "samples")
        self.api = ToolsApi(SETTINGS, self.entries, FAULTS, homes, invoker, find)

    def send(
        self,
        name: str | None = None,
        content: bytes = b"",
        *,
        method: str | None = None,
        token: str | None = TOKEN,
        headers: dict[str, str] | None = None,
        **params: str,
    ) -> func.HttpResponse:
        given = dict(headers or ({} if name is None else JSON_HEADERS))
        if token is not None:
            given["X-MCP-Auth-Token"] = token
        request = func.HttpRequest(
            method=method or ("GET" if name is None else "POST"),
            url="http://localhost/mcp/tools",
            headers=given,
            params=params,
            route_params={} if name is None else {"name": name},
            body=content,
        )
        return asyncio.run(self.api.list(request) if name is None else self.api.call(request))

    def call(self, name: str, arguments: Any, **options: Any) -> Any:
        answer = self.send(name, json.dumps(arguments).encode(), **options)
        assert answer.status_code == 200, answer.get_body()
        return body(answer)


@tool
def echo(text: str, times: int = 1) -> dict[str, str]:
    """Gives a text back."""
    return {"text": text * times}


@tool(execution_modes=("inline", "headless"), modes=("one-way", "two-way"), default_mode="two-way")
def slow(context: Context, secret: str = "") -> McpToolResponse:
    """May be a job."""
    return McpToolResponse(content=[McpTextContent(text=context.owner)])


@tool(
    title="Look",
    annotations=ToolAnnotations(read_only=True),
    capabilities=("fetchxml",),
    icons=[{"src": "data:,"}],
    timeout_ms=5_000,
)
def look(call: ToolCall) -> dict[str, Any]:
    """Tells what it knows of its call."""
    return {"owner": call.owner, "headers": dict(call.headers), "transport": call.transport}


@tool
def fails() -> None:
    """Fails."""
    raise ToolError(f"no: {TOKEN}")


def some() -> Tools:
    return Tools(slow, look, echo, fails)


def test_tools_that_the_owner_may_not_call_are_not_listed() -> None:
    @tool(description="Open to all.")
    def open_one() -> str:
        return "x"

    @tool(description="Not for everybody.")
    def closed_one() -> str:
        return "x"

    async def may_call(entry: ToolEntry, owner: str) -> bool:
        return entry.spec.name != "closed_one" or owner == "ana"

    tools = Tools(open_one, closed_one)
    api = ToolsApi(SETTINGS, tools.entries, (), {}, tools.api._invoker, tools.api._find, may_call)
    tools.api = api
    assert [one["name"] for one in body(tools.send())["tools"]] == ["open_one"]


class TestList:
    def test_every_tool_with_what_mcp_clients_get_and_more(self) -> None:
        listed = some()
        found = body(listed.send())["tools"]
        assert [entry["name"] for entry in found] == ["echo", "fails", "look", "slow"]
        for entry in found:
            fields = trigger_fields(listed.entries[entry["name"]].spec)
            assert entry["inputSchema"] == json.loads(fields["input_schema"])
            assert entry.get("outputSchema") == json.loads(fields.get("output_schema", "null"))
            assert (entry["description"], entry["folder"]) == (fields["description"], "samples")
        _, _, looks, slows = found
        assert (looks["title"], looks["annotations"]) == ("Look", {"readOnlyHint": True})
        assert (looks["capabilities"], looks["icons"]) == (["fetchxml"], [{"src": "data:,"}])
        assert (looks["timeoutMs"], looks["maxAttempts"]) == (5_000, 3)
        assert (slows["modes"], slows["defaultMode"]) == (["one-way", "two-way"], "two-way")
        assert (slows["executionModes"], slows["defaultExecutionMode"]) == (["inline", "headless"], "inline")

    def test_broken_folders_come_with_all_their_reasons(self) -> None:
        assert body(some().send())["faults"] == [
            {"folder": "broken", "reasons": ["first"]},
            {"folder": "zeta", "reasons": ["no name", "no result"]},
        ]

    def test_what_the_client_has_is_not_sent_again(self) -> None:
        listed = some()
        tag = listed.send().headers["ETag"]
        answer = listed.send(headers={"If-None-Match": tag})
        assert (answer.status_code, answer.get_body(), answer.headers["ETag"]) == (304, b"", tag)
        assert Tools(slow).send(headers={"If-None-Match": tag}).status_code == 200

    def test_a_token_is_needed_and_get_only(self) -> None:
        assert some().send(token=None, method="POST").status_code == 401
        answer = some().send(method="POST")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
        assert some().send(limit="5").status_code == 400


class TestCall:
    def test_a_result_as_an_mcp_client_gets_it(self) -> None:
        told = some().call("echo", {"text": "ab", "times": 2})
        assert told == {
            "content": [{"type": "text", "text": '{"text":"abab"}'}],
            "structuredContent": {"text": "abab"},
            "isError": False,
        }

    @pytest.mark.parametrize("name", ["ECHO", "Echo", "server.echo", "SERVER.ECHO"])
    def test_names_are_found_as_the_mcp_front_finds_them(self, name: str) -> None:
        assert some().call(name, {"text": "x"})["structuredContent"] == {"text": "x"}

    @pytest.mark.parametrize("published", ["docs_read_1", "nothing"])
    @pytest.mark.parametrize("name", ["docs.read", "Docs.Read"])
    def test_a_tool_of_a_server_never_stands_in_for_an_own_one(self, published: str, name: str) -> None:
        """Also where that one is switched off, and so is no tool."""

        @tool(name="docs.read", description="The app's own.")
        def own() -> str:
            return "own"

        @tool(name="docs_read_1", description="The server's.")
        def theirs() -> str:
            return "theirs"

        told = Tools(own, theirs, aliases={"docs.read": published}).call(name, {})
        assert told["content"] == [{"type": "text", "text": "own"}]

    def test_the_caller_is_the_tokens_owner(self) -> None:
        for token, owner in ((TOKEN, "default"), (OTHER, "ana")):
            assert some().call("slow", {}, token=token)["content"] == [{"type": "text", "text": owner}]

    def test_a_tool_sees_of_the_request_what_it_may(self) -> None:
        headers = {**JSON_HEADERS, "user-agent": "page", "cookie": "a=b", "x-functions-key": "key"}
        told = some().call("look", {}, headers=headers)["structuredContent"]
        assert told == {"owner": "default", "headers": {"user-agent": "page"}, "transport": "http"}

    def test_a_failing_tool_is_an_answer_and_names_no_secret(self) -> None:
        told = some().call("fails", {})
        assert told["isError"] is True
        assert "no: " in told["content"][0]["text"]
        assert TOKEN not in json.dumps(told)

    def test_arguments_are_checked(self) -> None:
        told = some().call("echo", {"times": 2})
        assert (told["isError"], "text" in told["content"][0]["text"]) == (True, True)

    def test_a_job_is_accepted(self) -> None:
        used = some()
        envelope = {ENVELOPE_KEY: {"executionMode": "headless", "mode": "one-way"}}
        told = used.call("slow", {"secret": "sentinel", **envelope}, token=OTHER)
        job = used.jobs.get(told["structuredContent"]["jobId"])
        assert job is not None
        assert (job.owner, str(job.execution_mode), str(job.mode)) == ("ana", "headless", "one-way")
        assert told["meta"]["toolbox/jobId"] == job.job_id
        assert "sentinel" not in repr(used.jobs.rows)

    def test_it_is_recorded_like_a_call_over_mcp(self) -> None:
        used = some()
        used.call("echo", {"text": "x"}, token=OTHER)
        used.call("echo", {})
        used.log.flush()
        ((done, refused),) = used.stored.batches
        assert (done.tool_name, done.owner, done.outcome, done.mode) == ("echo", "ana", "completed", "two-way")
        assert (done.execution_mode, done.prefill_summary) == ("inline", '{"text":"x"}')
        assert (refused.owner, refused.outcome) == ("default", "rejected")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "body: is not JSON (line 1, column 1)"),
            (b'{"text": }', "body: is not JSON (line 1, column 10)"),
            (b"[1]", "body: expected object, got array"),
            (b"null", "body: expected object, got null"),
            (b'{"text": NaN}', "body: nested too deeply, or a number"),
            (b'{"times": ' + b"1" * 5_000 + b"}", "body: nested too deeply, or a number"),
            (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "body: nested too deeply"),
            (b'{"text": "\xff"}', "body: is not UTF-8"),
            ('{"text": "x"}'.encode("utf-16"), "body: is not UTF-8"),
            (b'{"text":"x"}, "name": "look"', "body: is not JSON"),
        ],
    )
    def test_a_body_that_is_no_json_object_is_refused(self, content: bytes, said: str) -> None:
        used = some()
        answer = used.send("echo", content)
        assert answer.status_code == 400
        assert body(answer)["error"].startswith(said)
        used.log.flush()
        assert used.stored.batches == []

    @pytest.mark.parametrize(
        "kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"]
    )
    def test_a_form_cannot_call_a_tool(self, kind: str) -> None:
        answer = some().send("echo", b'{"text": "x"}', headers={"Content-Type": kind, "X-Other": "1"})
        assert (answer.status_code, "application/json" in body(answer)["error"]) == (415, True)

    def test_json_with_its_charset_is_json(self) -> None:
        headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}
        assert some().send("echo", '{"text": "ä"}'.encode(), headers=headers).status_code == 200

    @pytest.mark.parametrize(
        ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200)]
    )
    def test_another_sites_page_cannot_call_a_tool(self, site: str, status: int) -> None:
        """Where a cookie of the platform's sign-in names the owner, no token stands in its way."""
        used = some()
        answer = used.send("echo", b'{"text": "x"}', headers={**JSON_HEADERS, "Sec-Fetch-Site": site})
        assert answer.status_code == status
        used.log.flush()
        assert len(used.stored.batches) == (status == 200)

    def test_a_body_that_is_too_large_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tools, "MOST_BYTES", 13)
        assert some().send("echo", b'{"text": "x"}').status_code == 200
        assert some().send("echo", b'{"text": "xy"}').status_code == 413

    def test_what_a_form_holds_is_taken_and_a_load_for_the_process_is_not(self) -> None:
        used = some()
        large = b'{"text": "' + b"x" * (1024 * 1024) + b'"}'
        assert used.send("echo", large).status_code == 200
        answer = used.send("echo", b'{"text": "' + b"x" * tools.MOST_BYTES + b'"}')
        assert answer.status_code == 413
        assert str(tools.MOST_BYTES) in body(answer)["error"]

    def test_the_body_is_parsed_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        loads = json.loads

        def counted(text: str, **options: Any) -> Any:
            if "sentinel" in text:
                read.append(text)
            return loads(text, **options)

        monkeypatch.setattr("json.loads", counted)
        answer = some().send("slow", b'{"secret": "sentinel"}')
        assert (answer.status_code, read) == (200, ['{"secret": "sentinel"}'])

    def test_unknown_tools_tokens_verbs_and_parameters(self) -> None:
        used = some()
        answer = used.send("nothing", b"{}")
        assert (answer.status_code, body(answer)["error"]) == (404, "There is no tool 'nothing'")
        assert used.send("nothing", b"{}", token=None).status_code == 401
        assert used.send("echo", b"{}", token="wrong").status_code == 401
        answer = used.send("echo", method="GET")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        assert used.send("echo", b"{}", wait="5").status_code == 400
