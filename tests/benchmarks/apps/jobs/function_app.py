"""The benchmark app of jobs: a few tools that run as jobs, the worker of the queue, and the job's status.

Only these triggers: what others ask of storage would be counted with the jobs.
"""

import sys
from pathlib import Path

import azure.functions as func

# The host puts only the app's own folder on the path; the toolbox is the repository's.
sys.path.append(str(Path(__file__).resolve().parents[4]))

from shared.jobs.store import QUEUE
from shared.runtime import Runtime
from shared.storage import STORAGE_SETTING
from shared.tool.binding import trigger_fields

runtime = Runtime(Path(__file__).parent / "job_tools")
app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)

for entry in runtime.tools:
    declare = app.mcp_tool_trigger(arg_name="payload", **trigger_fields(entry.spec))
    app.function_name(entry.spec.function_name)(declare(runtime.tool_trigger(entry.spec.name)))


@app.function_name("job_worker")
@app.queue_trigger(arg_name="message", queue_name=QUEUE, connection=STORAGE_SETTING)
async def job_worker(message: func.QueueMessage) -> None:
    await runtime.worker.handle(message.get_body().decode())


@app.function_name("job")
@app.route(route="mcp/jobs/{jobId}")
async def job(req: func.HttpRequest) -> func.HttpResponse:
    return await runtime.jobs_api.status(req)
