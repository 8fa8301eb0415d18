"""A small MCP server over streamable HTTP, in the test's process: one tool, and what came with each call."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

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

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    recorder.url = f"http://127.0.0.1:{server.server_port}/mcp"
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
