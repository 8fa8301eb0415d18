"""Every trigger of the app. What they do is in `shared`; the tools are in `tools`.

The host knows each function by its name here.
"""

from pathlib import Path

import azure.functions as func

from shared.account import STORAGE_SETTING
from shared.jobs.queues import POISON_QUEUE, QUEUE
from shared.toolbox import App, Toolbox

toolbox = Toolbox(Path(__file__).parent / "tools")
# It has one function for each MCP tool, resource and prompt that was found, besides the triggers below.
app = App(toolbox)


@app.queue_trigger(arg_name="message", queue_name=QUEUE, connection=STORAGE_SETTING)
async def job_worker(message: func.QueueMessage, context: func.Context) -> None:
    await toolbox.runtime.worker.handle(message.get_body().decode("utf-8", "replace"), context)


@app.queue_trigger(arg_name="message", queue_name=POISON_QUEUE, connection=STORAGE_SETTING)
async def job_poison(message: func.QueueMessage) -> None:
    await toolbox.runtime.worker.handle_poison(message.get_body().decode("utf-8", "replace"))


# No methods are declared, so that a wrong one is answered by us, with 405 and Allow.
@app.route(route="mcp/jobs/{jobId}")
async def job(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.jobs_api.status(req)


@app.route(route="mcp/jobs/{jobId}/status")
async def job_status(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.jobs_api.status(req)


@app.route(route="mcp/jobs/{jobId}/cancel")
async def job_cancel(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.jobs_api.cancel(req)


@app.route(route="mcp/jobs/{jobId}/artifacts/{name}")
async def job_artifact(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.jobs_api.artifact(req)


@app.route(route="mcp/jobs")
async def job_list(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.jobs_api.list(req)


@app.route(route="mcp/servers")
async def server_list(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.servers_api.list(req)


@app.route(route="mcp/servers/{name}")
async def server(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.servers_api.one(req)


@app.route(route="mcp/invocations")
async def invocation_list(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.invocations_api.list(req)


@app.route(route="mcp/invocations/{id}")
async def invocation(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.invocations_api.one(req)


@app.route(route="mcp/tools")
async def list_tools(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.tools_api.list(req)


@app.route(route="mcp/tools/{name}")
async def run_tool(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.tools_api.call(req)


# Windows: a person gives the result of a windowed call in the tool's own page.
@app.route(route="mcp/windows/{jobId}/session")
async def window_session(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.windows_api.session(req)


@app.route(route="mcp/windows/{jobId}/page/{*path}")
async def window_page(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.windows_api.page(req)


@app.route(route="mcp/windows/{jobId}/call")
async def window_call(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.windows_api.call(req)


@app.route(route="mcp/windows/{jobId}/return")
async def window_return(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.windows_api.give(req)


@app.route(route="mcp/windows/{jobId}/close")
async def window_close(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.windows_api.close(req)


# For probes and monitors.
@app.route(route="healthz")
async def healthz(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.health_api.alive(req)


@app.route(route="mcp/health")
async def health(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.health_api.health(req)


# The page. Its route is the root: a parameter that must be empty.
@app.route(route="{ignored:maxlength(0)?}")
async def page(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.page_api.index(req)


@app.route(route="assets/{file}")
async def page_asset(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.page_api.asset(req)


@app.route(route="favicon.ico")
async def page_icon(req: func.HttpRequest) -> func.HttpResponse:
    return await toolbox.runtime.page_api.icon(req)


@app.timer_trigger(arg_name="timer", schedule=toolbox.settings.reaper_schedule)
async def reaper(timer: func.TimerRequest) -> None:
    await toolbox.runtime.reap()
