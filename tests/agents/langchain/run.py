"""langchain-mcp-adapters, on mcp 1.x as older clients are. Prints what it saw as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(endpoint: str) -> dict[str, Any]:
    client = MultiServerMCPClient({"toolbox": {"url": endpoint, "transport": "streamable_http"}})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def call(name: str, **arguments: Any) -> Any:
        """The message that a model is given."""
        return await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})

    inline = await call("multiply", a=6, b=7)
    headless = await call("multiply", a=6, b=7, __pptb={"executionMode": "headless"})
    refused = await call("multiply", a="six", b=7)
    image = await call("test_image_content")
    resources = await client.get_resources("toolbox", uris="test://static-text")
    return {
        "tools": list(tools),
        "inline": inline.artifact["structured_content"],
        "headless": headless.artifact["structured_content"],
        "error": refused.content,
        "status": refused.status,
        "image": image.content,
        "resource": resources[0].as_string(),
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
