"""The MCP endpoint over the network: status codes, envelopes, errors; each as the reference has it."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.host.support import MCP_PATH, sse_data

if TYPE_CHECKING:
    from tests.integration.host.support import Host

pytestmark = pytest.mark.integration

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
GENERIC = {"code": -32603, "message": "An error occurred."}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_sdk_client_lists_and_calls(host: Host, mode: Any) -> None:
    from mcp import Client

    async def session() -> None:
        async with Client(f"{host.url}{MCP_PATH}", mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools["echo"].output_schema == {"type": "object", "properties": {"text": {"type": "string"}}}
            result = await client.call_tool("echo", {"text": "grüße", "tags": []})
            assert result.structured_content == {"text": "grüße"}
            assert not result.is_error
            resources = await client.list_resources()
            assert [str(resource.uri) for resource in resources.resources] == ["file://readme.md"]
            prompt = await client.get_prompt("review", {"code": "x"})
            assert prompt.messages[0].role == "user"

    asyncio.run(session())


# status codes, in the order of the checks


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH"])
def test_other_verbs_are_405(host: Host, method: str) -> None:
    response = host.client.request(method, MCP_PATH)
    assert (response.status_code, response.content) == (405, b"")


@pytest.mark.parametrize("accept", ["", "application/json", "text/event-stream", "text/html"])
def test_accept_must_match_both(host: Host, accept: str) -> None:
    response = host.client.post(
        MCP_PATH, json=PING, headers={"accept": accept, "mcp-session-id": "malformed"}
    )  # the session would be refused as well, but later
    assert response.status_code == 406
    assert response.headers["content-type"] == "application/json"
    assert response.text == (
        '{"error":{"code":-32000,"message":"Not Acceptable: Client must accept both application/json and '
        'text/event-stream"},"id":"","jsonrpc":"2.0"}'
    )


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json;q=0.5, text/*", "TEXT/EVENT-STREAM, application/*"]
)
def test_accept_wild_cards_match(host: Host, accept: str) -> None:
    assert host.post(PING, accept=accept).status_code == 200


@pytest.mark.parametrize("session", ["x", "a|", "|b", "a|b|c"])
def test_malformed_session_is_400_before_the_body(host: Host, session: str) -> None:
    response = host.post("not json", mcp_session_id=session)
    assert response.status_code == 400
    assert response.text == (
        '{"error":{"code":-32000,"message":"Invalid client state."},"id":"","jsonrpc":"2.0"}'
    )


def test_null_body_is_400(host: Host) -> None:
    response = host.post("null")
    assert response.status_code == 400
    assert response.text == (
        '{"error":{"code":-32000,"message":"Bad Request: The POST body did not contain a valid JSON-RPC '
        'message."},"id":"","jsonrpc":"2.0"}'
    )


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        json.dumps([PING]),
        "5",
        '{"id":1,"method":"ping"}',
        '{"jsonrpc":"1.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1}',
        '{"jsonrpc":"2.0","id":null,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        '{"jsonrpc":"2.0","id":1,"method":5}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}',
        b"\xff\xfe",
        "[" * 100_000,
    ],
)
def test_what_is_no_message_is_an_empty_500(host: Host, body: str | bytes) -> None:
    response = host.post(body)
    assert (response.status_code, response.content) == (500, b"")


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
def test_wrong_content_type_is_an_empty_500(host: Host, kind: str) -> None:
    response = host.post(PING, content_type=kind)
    assert (response.status_code, response.content) == (500, b"")


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
    ],
)
def test_notifications_and_responses_are_202(host: Host, message: Any) -> None:
    response = host.post(message)
    assert (response.status_code, response.content) == (202, b"")
    assert "content-type" not in response.headers


def test_answer_is_one_event_with_the_real_hosts_headers(host: Host) -> None:
    response = host.post({**PING, "id": "é+"}, content_type="application/json; charset=utf-8")
    assert response.content == b'event: message\ndata: {"result":{},"id":"\\u00E9\\u002B","jsonrpc":"2.0"}\n\n'
    expected = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache,no-store",
        "connection": "keep-alive",
        "content-encoding": "identity",
    }
    assert {name: response.headers[name] for name in expected} == expected
    assert "mcp-session-id" not in response.headers
    assert "content-length" not in response.headers


def test_path_is_case_insensitive_and_below_is_the_same(host: Host) -> None:
    headers = {"accept": "*/*"}
    assert host.client.post(MCP_PATH.upper() + "/", json=PING, headers=headers).status_code == 200
    assert host.client.post(MCP_PATH + "/more", json=PING, headers=headers).status_code == 200
    assert host.client.post("/runtime/webhooks/other", json=PING, headers=headers).status_code == 404
    assert host.client.get(MCP_PATH + "/sse").status_code == 501


# methods


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-06-18"),
        ("1999-01-01", "2025-06-18"),
    ],
)
def test_initialize(host: Host, asked: str, given: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    response = host.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert sse_data(response)["result"] == {
        "protocolVersion": given,
        "capabilities": {"logging": {}, "prompts": {}, "resources": {}, "tools": {}},
        "serverInfo": {"name": "fixture server", "version": "2.1.0"},
        "instructions": "Use it in tests.",
    }
    session = response.headers["mcp-session-id"]
    assert re.fullmatch(r"[a-z0-9]{16}\|[a-z0-9]{16}", session)
    assert host.post(PING, mcp_session_id=session).status_code == 200


@pytest.mark.parametrize("params", [None, {}, [], {"protocolVersion": 5}])
def test_initialize_with_wrong_params(host: Host, params: Any) -> None:
    assert host.rpc("initialize", params)["error"] == GENERIC


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", None),
        ("logging/setLevel", {"level": "debug"}),
        ("resources/subscribe", {"uri": "x:y"}),
        ("resources/unsubscribe", {"uri": "x:y"}),
    ],
)
def test_small_methods_answer_an_empty_result(host: Host, method: str, params: Any) -> None:
    assert host.rpc(method, params)["result"] == {}


@pytest.mark.parametrize("method", ["completion/complete", "server/discover", "nothing"])
def test_unknown_methods(host: Host, method: str) -> None:
    assert host.rpc(method)["error"] == {"code": -32601, "message": f"Method '{method}' is not available."}


def test_tools_are_listed_by_function_name(host: Host) -> None:
    tools = host.rpc("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == [
        "payload",  # a_payload
        "boom_tool",
        "no_envelope",
        "submit",
        "typed",
        "wait",
        "property",  # with_property
        "echo",  # z_echo
    ]
    echo = tools[-1]
    assert list(echo) == ["name", "description", "inputSchema", "outputSchema", "_meta"]
    assert echo["inputSchema"] == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Some text."},
            "tags": {"type": "array", "items": {"type": "string"}, "description": ""},
            "mode": {"type": "string", "enum": ["a", "b"], "description": "m"},
        },
        "required": ["text", "tags"],
    }
    assert echo["_meta"] == {"ui": {"icon": "x"}}
    typed = next(tool for tool in tools if tool["name"] == "typed")
    assert typed["inputSchema"]["x-own"] is True
    assert "outputSchema" not in typed


# tools/call


def test_call_without_initialize_and_in_any_case(host: Host) -> None:
    result = host.call("ECHO", text="hi", tags=[])
    assert list(result) == ["content", "structuredContent", "isError"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert result["isError"] is False


def test_payload_is_what_the_real_host_gives(host: Host) -> None:
    params = {"name": "PAYLOAD", "arguments": {"n": 1, "none": None}}
    answer = host.rpc("tools/call", params, mcp_session_id="abc|def", x_own_header="v")
    payload = json.loads(answer["result"]["content"][0]["text"])
    assert list(payload) == ["name", "arguments", "sessionid", "transport"]
    assert payload["name"] == "PAYLOAD"
    assert payload["arguments"] == {"n": 1, "none": None}
    assert payload["sessionid"] == payload["transport"]["sessionId"] == "abc|def"
    assert payload["transport"]["name"] == "http-streamable"
    headers = payload["transport"]["properties"]["headers"]
    assert headers["Host"] == f"127.0.0.1:{host.port}"
    assert headers["X-Own-Header"] == "v"
    bare = json.loads(host.rpc("tools/call", {"name": "payload"})["result"]["content"][0]["text"])
    assert list(bare) == ["name", "transport"]


def test_multi_content_result(host: Host) -> None:
    assert host.call("typed", n=3) == {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
        ],
        "structuredContent": {"n": 3},
    }


def test_property_binding_gives_one_argument_as_text(host: Host) -> None:
    assert host.call("property", value=True)["content"][0]["text"] == "'True'"
    assert host.call("property", value="v")["content"][0]["text"] == "'v'"
    assert host.call("property")["content"][0]["text"] == "None"


@pytest.mark.parametrize("tool", ["boom_tool", "no_envelope", "Boom_Tool"])
def test_failures_hide_their_text(host: Host, tool: str) -> None:
    response = host.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}})
    assert "secret" not in response.text
    assert sse_data(response)["result"] == {
        "content": [{"type": "text", "text": f"An error occurred invoking '{tool}'."}],
        "isError": True,
    }


def test_required_arguments(host: Host) -> None:
    message = "One or more required tool properties are missing values. Please provide: "
    both = host.rpc("tools/call", {"name": "echo"})
    assert both["error"] == {"code": -32602, "message": message + "text, tags"}
    null = host.rpc("tools/call", {"name": "echo", "arguments": {"text": None, "tags": 5}})
    assert null["error"] == {"code": -32602, "message": message + "text"}
    worker = host.rpc("tools/call", {"name": "typed", "arguments": {}})
    assert worker["error"] == {"code": -32602, "message": message + "n"}


def test_wrong_calls(host: Host) -> None:
    unknown = host.rpc("tools/call", {"name": "Nope", "arguments": {}})
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: 'Nope'"}
    wrong: list[Any] = [None, [], {}, {"name": 5}, {"name": "echo", "arguments": []}]
    for params in wrong:
        assert host.rpc("tools/call", params)["error"] == GENERIC


# resources and prompts


def test_resources(host: Host) -> None:
    assert host.rpc("resources/list")["result"]["resources"] == [
        {"uri": "file://readme.md", "name": "readme", "description": "d", "mimeType": "text/plain"}
    ]
    assert host.rpc("resources/templates/list")["result"]["resourceTemplates"] == [
        {"uriTemplate": "item://{id}/part", "name": "item"}
    ]
    static = host.rpc("resources/read", {"uri": "file://readme.md"})["result"]["contents"]
    assert static == [{"uri": "file://readme.md", "mimeType": "text/plain", "text": "read file://readme.md"}]
    blob = host.rpc("resources/read", {"uri": "item://7/part"})["result"]["contents"]
    assert blob == [{"uri": "item://7/part", "mimeType": None, "blob": "aXRlbTovLzcvcGFydA=="}]
    unknown = host.rpc("resources/read", {"uri": "item://7/other"})["error"]
    assert unknown == {"code": -32602, "message": "Unknown resource: 'item://7/other'"}
    assert host.rpc("resources/read", {"uri": "no uri"})["error"] == GENERIC


def test_prompts(host: Host) -> None:
    [entry] = host.rpc("prompts/list")["result"]["prompts"]
    assert entry["arguments"] == [{"name": "code", "description": "The code.", "required": True}]
    prompt = host.rpc("prompts/get", {"name": "review", "arguments": {"code": "x"}})["result"]
    assert prompt == {"messages": [{"role": "user", "content": {"type": "text", "text": "Review x"}}]}
    missing = host.rpc("prompts/get", {"name": "review"})["error"]["message"]
    assert missing.endswith("required prompt arguments are missing values. Please provide: code")
    unknown = host.rpc("prompts/get", {"name": "nope"})["error"]
    assert unknown == {"code": -32602, "message": "Unknown prompt: 'nope'"}
