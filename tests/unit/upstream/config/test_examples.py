"""The four examples of HoloDeck's data model (010-mcp-tool-operations), as they are written there."""

from __future__ import annotations

from shared.upstream.config.model import TransportType
from tests.unit.upstream.config.vectors import read

STDIO = """
tools:
  - name: filesystem
    type: mcp
    server: "@modelcontextprotocol/server-filesystem"
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem"]
    config:
      allowed_directories: ["/workspace/data"]
"""
SSE = """
tools:
  - name: remote_api
    type: mcp
    server: "my-mcp-server"
    transport: sse
    url: "https://mcp.example.com/sse"
    headers:
      Authorization: "Bearer ${API_TOKEN}"
    timeout: 30
    sse_read_timeout: 120
"""
WEBSOCKET = """
tools:
  - name: realtime
    type: mcp
    server: "realtime-server"
    transport: websocket
    url: "wss://mcp.example.com/ws"
"""
HTTP = """
tools:
  - name: streaming_api
    type: mcp
    server: "streaming-server"
    transport: http
    url: "https://mcp.example.com/stream"
    terminate_on_close: true
"""


def test_stdio() -> None:
    config = read(STDIO).only
    assert (config.name, config.transport) == ("filesystem", TransportType.STDIO)
    assert (config.command, config.args) == ("npx", ("-y", "@modelcontextprotocol/server-filesystem"))
    assert config.environment() == {"MCP_CONFIG": '{"allowed_directories": ["/workspace/data"]}'}


def test_sse() -> None:
    config = read(SSE, environ={"API_TOKEN": "abc"}).only
    assert (config.transport, config.url) == (TransportType.SSE, "https://mcp.example.com/sse")
    assert config.headers == {"Authorization": "Bearer abc"}
    assert (config.timeout, config.sse_read_timeout) == (30, 120)


def test_sse_without_its_token() -> None:
    (fault,) = read(SSE).faults
    assert (fault.name, fault.field) == ("remote_api", "API_TOKEN")


def test_websocket() -> None:
    config = read(WEBSOCKET).only
    assert (config.transport, config.url) == (TransportType.WEBSOCKET, "wss://mcp.example.com/ws")


def test_http() -> None:
    config = read(HTTP).only
    assert (config.transport, config.terminate_on_close) == (TransportType.HTTP, True)


def test_all_in_one_file_among_tools_of_other_types() -> None:
    entries = [text.split("tools:\n")[1] for text in (STDIO, SSE, WEBSOCKET, HTTP)]
    other = "  - name: search\n    type: function\n    file: x.py\n"
    outcome = read("name: my-agent\ntools:\n" + "".join([other, *entries]), environ={"API_TOKEN": "abc"})
    assert list(outcome.servers) == ["filesystem", "remote_api", "realtime", "streaming_api"]
    assert outcome.faults == ()
    assert [warning.field for warning in outcome.warnings] == ["tools[0]"]
