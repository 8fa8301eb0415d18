"""The `mcp` SDK's low-level server with the tool `echo`: of the SDK's servers the quickest.

sdk.py PORT     stateless, over HTTP on that port of 127.0.0.1
sdk.py http     with sessions, over HTTP on a free port, which it prints
sdk.py stdio
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

ECHO = Tool(
    name="echo",
    description="Gives back what it was given.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    output_schema={"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]},
)


async def list_tools(context: Any, params: Any) -> ListToolsResult:
    return ListToolsResult(tools=[ECHO])


async def call_tool(context: Any, params: Any) -> CallToolResult:
    text = params.arguments["text"]
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content={"result": text})


server: Server[Any] = Server("sdk", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(listener: socket.socket, *, stateless: bool) -> None:
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(server, stateless=stateless)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


def main(how: str) -> None:
    if how == "stdio":
        asyncio.run(over_stdio())
        return
    port = 0 if how == "http" else int(how)
    with socket.create_server(("127.0.0.1", port)) as listener:
        if port == 0:
            sys.stdout.write(f"{listener.getsockname()[1]}\n")
            sys.stdout.flush()
        over_http(listener, stateless=port != 0)


if __name__ == "__main__":
    main(sys.argv[1])
