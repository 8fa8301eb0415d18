"""A small MCP server over streamable HTTP, in the test's process: one tool, and what came with each call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.loopback import QuietHandler, serving

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


@dataclass
class Recorder:
    url: str = ""
    #: (headers with names in lower case, params) of each `tools/call`.
    calls: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)


@contextmanager
def recording() -> Iterator[Recorder]:
    """A server that listens at `url`."""
    recorder = Recorder()

    def answer(message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        params = message.get("params") or {}
        match message["method"]:
            case "initialize":
                return {
                    "result": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "recorder", "version": "1"},
                    }
                }
            case "tools/list":
                return {"result": {"tools": [TOOL]}}
            case "tools/call":
                recorder.calls.append((headers, params))
                text = str(params["arguments"].get("text"))
                return {"result": {"content": [{"type": "text", "text": text}]}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message:
                self._answer(202, b"")
                return
            told = answer(message, {name.lower(): value for name, value in self.headers.items()})
            self._answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}).encode())

        def do_GET(self) -> None:
            self._answer(405, b"")

        do_DELETE = do_GET

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with serving(Handler) as address:
        recorder.url = f"{address}/mcp"
        yield recorder
