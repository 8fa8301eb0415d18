"""Every trigger of the app. What they do is in `shared`; the tools are in `tools`."""

from pathlib import Path

import azure.functions as func

from shared.jobs.store import POISON_QUEUE, QUEUE
from shared.runtime import Runtime
from shared.storage import STORAGE_SETTING
from shared.tool.binding import trigger_fields

runtime = Runtime(Path(__file__).parent / "tools")
app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)

# One MCP tool for each tool found. The parameter's name is the binding's.
for entry in runtime.tools:
    declare = app.mcp_tool_trigger(arg_name="payload", **trigger_fields(entry.spec))
    app.function_name(entry.spec.function_name)(declare(runtime.trigger(entry)))

# The same for each resource and each prompt.
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


@app.function_name("job_poison")
@app.queue_trigger(arg_name="message", queue_name=POISON_QUEUE, connection=STORAGE_SETTING)
async def job_poison(message: func.QueueMessage) -> None:
    await runtime.worker.handle_poison(message.get_body().decode("utf-8", "replace"))


# No methods are declared, so that a wrong one is answered by us, with 405 and Allow.
@app.function_name("job")
@app.route(route="mcp/jobs/{jobId}")
async def job(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.status(req)


@app.function_name("job_status")
@app.route(route="mcp/jobs/{jobId}/status")
async def job_status(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.status(req)


@app.function_name("job_cancel")
@app.route(route="mcp/jobs/{jobId}/cancel")
async def job_cancel(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.cancel(req)


@app.function_name("job_artifact")
@app.route(route="mcp/jobs/{jobId}/artifacts/{name}")
async def job_artifact(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.artifact(req)


@app.function_name("job_list")
@app.route(route="mcp/jobs")
async def job_list(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.list(req)


@app.function_name("server_list")
@app.route(route="mcp/servers")
async def server_list(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.servers_api.list(req)


@app.function_name("server")
@app.route(route="mcp/servers/{name}")
async def server(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.servers_api.one(req)


@app.function_name("reaper")
@app.timer_trigger(arg_name="timer", schedule=runtime.settings.reaper_schedule)
async def reaper(timer: func.TimerRequest) -> None:
    await runtime.reap()
