"""What tests of streamable HTTP share."""

from __future__ import annotations

from typing import Any

from shared.upstream.config.model import ServerConfig
from tests.support.upstream import INITIALIZED, Answer, Seen, error_of, json_answer, result_of, scripted, server


def said(result: Any) -> str:
    return str(result.content[0].text)


def at(url: str, **fields: Any) -> ServerConfig:
    return server(transport="http", url=url, **fields)


async def plain(seen: Seen) -> Answer | None:
    """A server without sessions that answers JSON; 405 to anything but POST."""
    if seen.method != "POST":
        return 405, {}, b""
    answer = scripted(seen.message)
    return (202, {}, b"") if answer is None else json_answer(answer)


def sessions(forget: int) -> Any:
    """A server with sessions that forgets each after so many calls; 0: before the first."""
    state = {"ids": 0, "calls": 0}

    async def handler(seen: Seen) -> Answer | None:
        if seen.method != "POST":
            return (200 if seen.method == "DELETE" else 405), {}, b""
        message = seen.message
        if message["method"] == "initialize":
            state["ids"] += 1
            state["calls"] = 0
            return json_answer(result_of(message, INITIALIZED), headers={"mcp-session-id": f"s{state['ids']}"})
        if message["method"] == "tools/call":
            state["calls"] += 1
            if state["calls"] > forget:
                return json_answer(error_of(message, -32600, "Session not found"), 404)
        return await plain(seen)

    return handler
