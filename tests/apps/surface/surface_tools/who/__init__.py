from __future__ import annotations

from typing import Any

from shared.tool import Context, ToolCall, tool


@tool(name="%WHO_NAME%", execution_modes=("inline", "headless"))
async def who(*, call: ToolCall, context: Context) -> dict[str, Any]:
    """Says who is calling."""
    call.logger.info("asked")
    return {
        **call.to_json(),
        "tool": context.tool_name,
        "mode": context.execution_mode,
        "job": bool(context.job_id),
    }
