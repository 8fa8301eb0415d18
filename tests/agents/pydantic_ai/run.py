"""pydantic-ai: agents whose model is a function, or a test double. Prints what they saw as one line of JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from pydantic_ai import Agent, BinaryContent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

# What the model asks for, one call an answer: wrong arguments, right ones, the same as a job, an image.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("multiply", {"a": "six", "b": 7}),
    ("multiply", {"a": 6, "b": 7}),
    ("multiply", {"a": 6, "b": 7, "__pptb": {"executionMode": "headless"}}),
    ("test_image_content", {}),
]


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn == len(CALLS):
        return ModelResponse(parts=[TextPart("done")])
    name, arguments = CALLS[turn]
    assert name in [tool.name for tool in info.function_tools]
    return ModelResponse(parts=[ToolCallPart(name, arguments)])


def results(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """What the tools answered, as the model saw it."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


def image_type(content: Any) -> str:
    found = content if isinstance(content, list) else [content]
    return next(str(item.media_type) for item in found if isinstance(item, BinaryContent))


async def main(endpoint: str) -> dict[str, Any]:
    toolset = MCPToolset(endpoint)
    async with toolset:
        listed = [tool.name for tool in await toolset.list_tools()]
        agent = Agent(FunctionModel(model), toolsets=[toolset])
        run = await agent.run("How much is six times seven?")
        refused, inline, headless, image = results(run.all_messages())
        # This model makes up arguments from the published schema, the envelope's included.
        made_up = await Agent(TestModel(call_tools=["multiply"]), toolsets=[toolset]).run("Multiply.")
        (guess,) = results(made_up.all_messages())
    return {
        "tools": listed,
        "inline": inline.content,
        "headless": headless.content,
        "error": refused.content,
        "error_outcome": refused.outcome,
        "image": image_type(image.content),
        "answer": run.output,
        "made_up": guess.content,
    }


print(json.dumps(asyncio.run(main(sys.argv[1]))))
