"""A job whose every step a test decides on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from shared.tool import Context, ToolAnnotations, tool


@tool(
    title="Steps",
    execution_modes=("headless",),
    modes=("one-way", "two-way"),
    default_mode="one-way",
    annotations=ToolAnnotations(read_only=True),
)
async def steps(
    folder: Annotated[str, Field(description="Where the steps are left, as files 1.json, 2.json and so on.")],
    context: Context,
) -> dict[str, Any]:
    """Does what the next file says, until one says that it is the end.

    A step: {"log": [level, text]?, "progress": [percent, text]?, "fail": text?, "end": result?}.
    """
    number = 1
    while True:
        path = Path(folder) / f"{number}.json"
        if not path.exists():
            await asyncio.sleep(0.02)
            continue
        step = json.loads(path.read_text())
        if "log" in step:
            level, text = step["log"]
            getattr(context.logger, level)(text)
        if "progress" in step:
            context.update_progress(*step["progress"])
        if "fail" in step:
            raise RuntimeError(step["fail"])
        if "end" in step:
            return {"result": step["end"]}
        number += 1
