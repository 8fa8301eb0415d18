"""A well-behaved server on the SDK (`sdk`) or on FastMCP (`fastmcp`): `demo.py KIND
stdio|http|sse|legacy-http`.

Over HTTP it listens on a free port of 127.0.0.1 and prints it. `legacy-http` refuses what is newer than
2025-11-25, as servers of last year do. Run it with the project's Python.
"""

import asyncio
import json
import os
import socket
import sys
from typing import Any

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


def sdk() -> Any:  # noqa: C901 - one tool after another
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context, Image

    server = MCPServer("demo", instructions="A server for tests.")
    calls = {"count": 0}

    @server.tool()
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool()
    def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    @server.tool()
    def counter() -> int:
        calls["count"] += 1
        return calls["count"]

    @server.tool()
    def image() -> Image:
        return Image(data=PNG, format="png")

    @server.tool()
    def fail() -> str:
        raise ValueError("oops")

    @server.tool()
    def die() -> str:
        os._exit(9)

    @server.tool()
    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    @server.tool()
    async def steps(count: int, ctx: Context) -> str:
        for step in range(count):
            await ctx.report_progress(step + 1, count, f"step {step + 1}")
            await ctx.log("warning", f"log {step + 1}", logger_name="demo")
        return "done"

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_tool(echo, name="late")
        await ctx.notify_tools_changed()
        if ctx.protocol_version != "2026-07-28":
            await ctx.session.send_tool_list_changed()
        return "grown"

    @server.tool()
    def environment() -> list[str]:
        return sorted(os.environ)

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}."

    return server


def fastmcp() -> Any:
    from fastmcp import Context, FastMCP

    server = FastMCP("demo")

    @server.tool
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @server.tool
    def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    @server.tool
    async def steps(count: int, ctx: Context) -> str:
        for step in range(count):
            await ctx.report_progress(step + 1, count, f"step {step + 1}")
        return "done"

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    return server


class Older:
    """Refuses the newer protocol as older servers do, by its header."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-protocol-version", b"") == b"2026-07-28":
            error = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            body = json.dumps({"jsonrpc": "2.0", "id": "server-error", "error": error}).encode()
            start = {
                "type": "http.response.start",
                "status": 400,
                "headers": [(b"content-type", b"application/json")],
            }
            await send(start)
            await send({"type": "http.response.body", "body": body})
            return
        await self.app(scope, receive, send)


def serve(app: Any) -> None:
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    listener.listen(100)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def main(kind: str, transport: str) -> None:
    server = sdk() if kind == "sdk" else fastmcp()
    if transport == "stdio":
        server.run("stdio") if kind == "sdk" else server.run("stdio", show_banner=False)
    elif kind == "sdk":
        app = server.sse_app() if transport == "sse" else server.streamable_http_app()
        serve(Older(app) if transport == "legacy-http" else app)
    else:
        app = server.http_app(transport="sse" if transport == "sse" else "http")
        serve(Older(app) if transport == "legacy-http" else app)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
