"""The app for programs that nobody here wrote: the tools, resources and prompts that the MCP conformance suite
asks for by name, and tools for agents and for property tests.
"""

import sys
from pathlib import Path

import azure.functions as func

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from shared.jobs.store import QUEUE
from shared.runtime import Runtime
from shared.storage import STORAGE_SETTING
from shared.tool.binding import trigger_fields
from tests.apps.conformance.explicit_schema import ExplicitSchemaTool

runtime = Runtime(Path(__file__).parent / "conformance_tools")
app = func.FunctionApp()

for entry in [*runtime.tools, ExplicitSchemaTool()]:
    declare = app.mcp_tool_trigger(arg_name="payload", **trigger_fields(entry.spec))
    app.function_name(entry.spec.function_name)(declare(runtime.trigger(entry)))

for resource in runtime.resources:
    declare = app.mcp_resource_trigger(arg_name="payload", **resource.spec.trigger_fields())
    app.function_name(resource.spec.function_name)(declare(runtime.resource_trigger(resource)))

for prompt in runtime.prompts:
    declare = app.mcp_prompt_trigger(arg_name="payload", **prompt.spec.trigger_fields())
    app.function_name(prompt.spec.function_name)(declare(runtime.prompt_trigger(prompt)))


@app.function_name("job_worker")
@app.queue_trigger(arg_name="message", queue_name=QUEUE, connection=STORAGE_SETTING)
async def job_worker(message: func.QueueMessage) -> None:
    await runtime.worker.handle(message.get_body().decode("utf-8", "replace"))
