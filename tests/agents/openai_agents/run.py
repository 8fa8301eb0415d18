"""openai-agents: the Runner with a scripted model. Prints what it saw as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from agents.testing import ScriptedModel, assistant_message, function_call

# What the model asks for, one call an answer: wrong arguments, right ones, the same as a job, an image.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("multiply", {"a": "six", "b": 7}),
    ("multiply", {"a": 6, "b": 7}),
    ("multiply", {"a": 6, "b": 7, "__pptb": {"executionMode": "headless"}}),
    ("test_image_content", {}),
]


async def main(endpoint: str) -> dict[str, Any]:
    steps = [
        [function_call(name, json.dumps(arguments), call_id=f"call-{number}")]
        for number, (name, arguments) in enumerate(CALLS)
    ]
    model = ScriptedModel([*steps, [assistant_message("done")]])
    async with MCPServerStreamableHttp(
        {"url": endpoint}, client_session_timeout_seconds=60, use_structured_content=True
    ) as server:
        listed = [tool.name for tool in await server.list_tools()]
        agent = Agent(name="reckoner", model=model, mcp_servers=[server])
        run = await Runner.run(agent, "How much is six times seven?")
    model.assert_complete()
    outputs = [item.raw_item["output"] for item in run.new_items if item.type == "tool_call_output_item"]
    return {"tools": listed, "outputs": outputs, "answer": run.final_output}


set_tracing_disabled(True)
print(json.dumps(asyncio.run(main(sys.argv[1]))))
