"""Any JSON goes in without breaking anything, and any JSON that a tool returns comes out as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import anyio.from_thread
import mcp
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from infra.local.azurite import Azurite
from tests.acceptance.conftest import MCP_HEADERS, ROOT, App, start_app

pytestmark = pytest.mark.acceptance

FIXTURE = ROOT / "tests" / "apps" / "conformance"
INTERNAL_ERROR: Final = -32603
#: Tool -> its parameters.
PARAMETERS: Final = {
    "echo_any": ("value", "__pptb"),
    "multiply": ("a", "b", "__pptb"),
    "json_schema_2020_12_tool": ("name", "address", "contactMethod", "phone", "__pptb"),
}
#: The options of a call.
ENVELOPE: Final = ("mode", "executionMode", "timeoutMs", "authToken", "connectionName")

type Call = Callable[[Any], Any]


def json_values(text: SearchStrategy[str]) -> SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=12)


# A lone surrogate can be written in JSON (as an escape), so it may come in; nothing may send one out. Integers
# stay below the 4,300 digits that Python reads: the local host takes a longer one for a broken body (500).
ANY_JSON = json_values(st.text(st.characters()))
SENDABLE_JSON = json_values(st.text())


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Any]:
    """A tool, and arguments of which some are its own, with values that may be anything."""
    tool = draw(st.sampled_from(sorted(PARAMETERS)))
    names = st.sampled_from(PARAMETERS[tool]) | st.text(st.characters(), max_size=5)
    values = ANY_JSON | st.dictionaries(st.sampled_from(ENVELOPE), ANY_JSON)
    return tool, draw(st.dictionaries(names, values, max_size=4))


@pytest.fixture(scope="module")
def fixture_app(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    # Without queues: it must not take the jobs of another app on the same storage.
    folder = tmp_path_factory.mktemp("properties")
    running = start_app(folder, azurite.connection_string, "--only-triggers", "http,mcp", app_dir=FIXTURE)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def echo(fixture_app: App) -> Iterator[Call]:
    """Calls `echo_any` in one session of the SDK's client, which checks the answers itself."""
    with anyio.from_thread.start_blocking_portal() as portal:
        client = mcp.Client(fixture_app.endpoint, mode="legacy")
        with portal.wrap_async_context_manager(client):
            yield lambda value: portal.call(client.call_tool, "echo_any", {"value": value})


def exact(value: Any) -> str:
    """Tells 1, 1.0 and true apart."""
    return json.dumps(value, sort_keys=True)


@settings(max_examples=200, deadline=None)
@given(calls())
@example(("echo_any", {"value": "\ud800"}))
@example(("echo_any", {"\udfff": 1}))
@example(("echo_any", {"value": {"\ud800": "\udc00\ud800"}}))
@example(("echo_any", {"value": 10**4000}))
@example(("echo_any", {"__pptb": {"timeoutMs": 10**400}}))
@example(("echo_any", {"value": "\0"}))
@example(("multiply", {"a": 1e308, "b": 10**400}))
def test_any_json_as_an_argument_is_answered(fixture_app: App, call: tuple[str, Any]) -> None:
    name, arguments = call
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    answer = fixture_app.http.post("/runtime/webhooks/mcp", content=body, headers=MCP_HEADERS)
    assert answer.status_code == 200
    message = json.loads(answer.text.removeprefix("event: message\ndata: "))
    if "error" in message:
        assert message["error"]["code"] != INTERNAL_ERROR
    else:
        # Not what the host says in the place of an exception, which it does not show.
        assert "An error occurred invoking" not in json.dumps(message["result"]["content"])


@settings(max_examples=200, deadline=None)
@given(SENDABLE_JSON)
@example(2**53 + 1)
@example(-0.0)
@example(5e-324)
@example({"result": {"type": "call_tool_result", "content": "[]"}})
@example({"": {"\0": ["\u2028", "</script>", "\U0001f600"]}})
def test_any_returned_json_arrives_unchanged(echo: Call, value: Any) -> None:
    result = echo(value)
    assert not result.is_error, result.content
    structured = value if isinstance(value, dict) else {"result": value}
    assert exact(result.structured_content) == exact(structured)
    if value is None:
        assert result.content == []
        return
    (block,) = result.content
    assert value == block.text if isinstance(value, str) else exact(value) == exact(json.loads(block.text))
