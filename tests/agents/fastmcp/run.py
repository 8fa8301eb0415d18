"""fastmcp's Client: lists and calls. Prints what it saw as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError


async def main(endpoint: str) -> dict[str, Any]:
    async with Client(endpoint) as client:
        listed = await client.list_tools()
        inline = await client.call_tool("multiply", {"a": 6, "b": 7})
        job = {"a": 6, "b": 7, "__pptb": {"executionMode": "headless"}}
        headless = await client.call_tool("multiply", job)
        try:
            error = repr(await client.call_tool("multiply", {"a": "six", "b": 7}))
        except ToolError as refused:
            error = str(refused)
        image = await client.call_tool("test_image_content", {})
        resource = await client.read_resource("test://static-text")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    return {
        "tools": [tool.name for tool in listed],
        "inline": inline.structured_content,
        "headless": headless.structured_content,
        "error": error,
        "image": image.content[0].mime_type,
        "resource": resource[0].text,
        "prompt": prompt.messages[0].content.text,
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
