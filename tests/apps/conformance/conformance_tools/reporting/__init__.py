"""Tools that fail, log and report progress, with the names that the conformance suite asks for."""

import asyncio
from typing import Final

from shared.tool import Context, ToolError, tool

#: Seconds; the suite asks for a pause between notifications.
_PAUSE: Final = 0.05


@tool
def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_logging(*, context: Context) -> str:
    """Writes three log lines."""
    context.logger.info("Tool execution started")
    await asyncio.sleep(_PAUSE)
    context.logger.info("Tool processing data")
    await asyncio.sleep(_PAUSE)
    context.logger.info("Tool execution completed")
    return "Tool with logging executed successfully"


@tool
async def test_tool_with_progress(*, context: Context) -> str:
    """Reports progress three times."""
    context.update_progress(0)
    await asyncio.sleep(_PAUSE)
    context.update_progress(50)
    await asyncio.sleep(_PAUSE)
    context.update_progress(100)
    return "Tool with progress executed successfully"
