"""The benchmark app: `echo` as a tool, sync and async, beside a bare trigger that does nothing."""

import json
import sys
from pathlib import Path

import azure.functions as func

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[4]))

from shared.runtime import Runtime
from shared.tool.binding import trigger_fields

runtime = Runtime(Path(__file__).parent / "bench_tools")
app = func.FunctionApp()

for entry in runtime.tools:
    declare = app.mcp_tool_trigger(arg_name="payload", **trigger_fields(entry.spec))
    app.function_name(entry.spec.name)(declare(runtime.tool_trigger(entry.spec.name)))

ANSWER = json.dumps(
    {
        "type": "call_tool_result",
        "content": json.dumps(
            {"content": [{"type": "text", "text": "hello"}], "structuredContent": {"result": "hello"}}
        ),
    }
)


@app.function_name("bare")
@app.mcp_tool_trigger(
    arg_name="payload",
    tool_name="bare",
    description="A constant.",
    tool_properties="[]",
    use_result_schema=True,
)
def bare(payload: str) -> str:
    return ANSWER
