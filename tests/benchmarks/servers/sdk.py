"""The `mcp` SDK's low-level server with the tool `echo`: stateless, SSE. Argument: the port."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from starlette.applications import Starlette
from starlette.routing import Mount

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


manager = StreamableHTTPSessionManager(
    Server("sdk", on_list_tools=list_tools, on_call_tool=call_tool), stateless=True
)


@contextlib.asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with manager.run():
        yield


app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
