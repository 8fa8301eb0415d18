"""The upstream of `upstream_call`: the `mcp` SDK's low-level server with the tool `echo`. It keeps sessions.

`upstream_echo.py stdio`, or `upstream_echo.py http`: on a free port of 127.0.0.1, which it prints. Of the SDK's
servers it is the quickest, so that what stands before it shows the most.
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


server: Server[Any] = Server("upstream-echo", on_list_tools=list_tools, on_call_tool=call_tool)


async def over_stdio() -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http() -> None:
    import uvicorn
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Mount

    manager = StreamableHTTPSessionManager(server)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(over_stdio()) if sys.argv[1] == "stdio" else over_http()
