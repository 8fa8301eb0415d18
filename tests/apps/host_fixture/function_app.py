"""A Functions app for the tests of the local host: one function for each behaviour that a test looks at.

Functions that nobody calls over HTTP append a JSON line to the file that FIXTURE_LOG names.
"""

import asyncio
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, List  # noqa: UP035

import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)

LOG = os.environ.get("FIXTURE_LOG", "")


def record(**event: Any) -> None:
    """Append an event for the test to read."""
    with Path(LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def envelope(kind: str, content: Any, structured: Any = None) -> str:
    """What a tool with useResultSchema returns."""
    data = {"type": kind, "content": json.dumps(content)}
    if structured is not None:
        data["structuredContent"] = json.dumps(structured)
    return json.dumps(data)


# HTTP


@app.route(route="echo/{id}", methods=["GET", "POST"])
def echo(req: func.HttpRequest) -> func.HttpResponse:
    """Everything the function was given."""
    seen = {
        "method": req.method,
        "url": req.url,
        "headers": dict(req.headers),
        "params": dict(req.params),
        "route": dict(req.route_params),
        "body": req.get_body().decode(),
    }
    headers = {"X-Fixture": "yes", "Set-Cookie": "a=b; Path=/x; Max-Age=5; Secure; HttpOnly; SameSite=Lax"}
    return func.HttpResponse(json.dumps(seen), status_code=201, mimetype="application/json", headers=headers)


@app.route()
async def any_method(req: func.HttpRequest) -> str:
    """No route and no methods declared; a plain string as the answer."""
    return str(req.method)


@app.route(route="number/{x:int}")
async def number(req: func.HttpRequest) -> str:
    """A constrained parameter."""
    return f"int {req.route_params['x']}"


@app.route(route="number/{x}")
async def not_number(req: func.HttpRequest) -> str:
    """What the constrained route leaves."""
    return f"any {req.route_params['x']}"


@app.route(route="files/{*rest}")
async def files(req: func.HttpRequest) -> str:
    """A catch-all parameter."""
    return f"rest={req.route_params.get('rest', '')}"


@app.route(route="{ignored:maxlength(0)?}")
async def root(req: func.HttpRequest) -> str:
    """The root of the route prefix."""
    return "root"


@app.route()
def boom(req: func.HttpRequest) -> str:
    """Raises."""
    raise ValueError("secret detail")


@app.route()
async def disabled_one(req: func.HttpRequest) -> str:
    """Switched off by a setting in some tests."""
    return "on"


@app.route(route="keyed", auth_level=func.AuthLevel.FUNCTION)
async def keyed(req: func.HttpRequest) -> str:
    """Needs a function key."""
    return "keyed"


@app.route(route="owner", auth_level=func.AuthLevel.ADMIN)
async def owner_only(req: func.HttpRequest) -> str:
    """Needs the master key."""
    return "owner"


@app.route()
async def slow(req: func.HttpRequest) -> str:
    """Takes its time without blocking."""
    record(event="slow started")
    await asyncio.sleep(float(req.params["seconds"]))
    return "done"


@app.route()
def block(req: func.HttpRequest) -> str:
    """Takes its time on a thread."""
    record(event="block started")
    time.sleep(float(req.params["seconds"]))
    return "done"


@app.route()
async def block_loop(req: func.HttpRequest) -> str:
    """Takes its time on the event loop, which nobody should do."""
    record(event="block_loop started")
    time.sleep(float(req.params["seconds"]))
    return "done"


@app.route()
async def surroundings(req: func.HttpRequest) -> str:
    """What the app can see of the process it is in."""
    seen = {
        "cwd": str(Path.cwd()),
        "first_path": sys.path[0],
        "host_visible": importlib.util.find_spec("infra") is not None,
        "host_modules": sorted(name for name in sys.modules if name.split(".")[0] == "infra"),
        "main": sorted(name for name in vars(sys.modules["__main__"]) if not name.startswith("__")),
        "setting": os.environ.get("FIXTURE_SETTING", ""),
        "hostname": os.environ.get("WEBSITE_HOSTNAME", ""),
    }
    return json.dumps(seen)


@app.route(route="enqueue/{queue}", methods=["POST"])
@app.queue_output(arg_name="out", queue_name="{queue}", connection="AzureWebJobsStorage")
async def enqueue(
    req: func.HttpRequest,
    out: func.Out[List[str]],  # noqa: UP006 - the worker refuses list[str]
) -> str:
    """Sends each item of the JSON body as a message."""
    out.set(req.get_json())
    return "sent"


# MCP tools

PROPERTIES = json.dumps(
    [
        {"propertyName": "text", "propertyType": "string", "description": "Some text.", "isRequired": True},
        {"propertyName": "tags", "propertyType": "string", "isArray": True, "isRequired": True},
        {"propertyName": "mode", "propertyType": "string", "description": "m", "enumValues": ["a", "b"]},
    ]
)
SCHEMA = json.dumps(
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"], "x-own": True}
)


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="echo",
    description="Says it again.",
    tool_properties=PROPERTIES,
    use_result_schema=True,
    output_schema=json.dumps({"type": "object", "properties": {"text": {"type": "string"}}}),
    metadata=json.dumps({"ui": {"icon": "x"}}),
)
async def z_echo(context: str) -> str:
    """The usual result: a call_tool_result."""
    text = json.loads(context)["arguments"]["text"]
    return envelope(
        "call_tool_result",
        {"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}, "isError": False},
    )


@app.mcp_tool_trigger(
    arg_name="context", tool_name="payload", description="Its own payload.", tool_properties="[]"
)
def a_payload(context: str) -> str:
    """A sync function without a result schema."""
    return context


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="typed",
    description="Has a schema of its own.",
    use_result_schema=True,
    use_worker_input_schema=True,
    input_schema=SCHEMA,
)
async def typed(context: str) -> str:
    """A multi_content_result with structured content."""
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "data": "AQID", "mimeType": "image/png"}]
    return envelope("multi_content_result", blocks, json.loads(context)["arguments"])


@app.mcp_tool_trigger(arg_name="context", tool_name="boom_tool", description="Raises.", tool_properties="[]")
async def boom_tool(context: str) -> str:
    """Its message must not reach the client."""
    raise ValueError("secret detail")


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="no_envelope",
    description="Returns what is no envelope.",
    tool_properties="[]",
    use_result_schema=True,
)
async def no_envelope(context: str) -> str:
    """Fails in the host, not in the function."""
    return "hello"


@app.generic_trigger(
    arg_name="context", type="mcpToolTrigger", toolName="property", description="d", toolProperties="[]"
)
@app.generic_input_binding(arg_name="value", type="mcpToolProperty", propertyName="value")
async def with_property(context: str, value: str) -> str:
    """One argument through an input binding."""
    return f"{value!r}"


@app.mcp_tool_trigger(arg_name="context", tool_name="submit", description="Enqueues.", tool_properties="[]")
@app.queue_output(arg_name="out", queue_name="{mcptoolargs.queue}", connection="AzureWebJobsStorage")
async def submit(context: str, out: func.Out[str]) -> str:
    """A queue output beside the result."""
    out.set(json.dumps({"from": "submit"}))
    return "submitted"


@app.mcp_tool_trigger(arg_name="context", tool_name="wait", description="Waits.", tool_properties="[]")
async def wait(context: str) -> str:
    """Takes its time."""
    await asyncio.sleep(float(json.loads(context)["arguments"]["seconds"]))
    return "waited"


# MCP resources and prompts


@app.mcp_resource_trigger(
    arg_name="context", uri="file://readme.md", resource_name="readme", description="d", mime_type="text/plain"
)
def readme(context: str) -> str:
    """A static resource."""
    return f"read {json.loads(context)['uri']}"


@app.mcp_resource_trigger(arg_name="context", uri="item://{id}/part", resource_name="item")
async def item(context: str) -> bytes:
    """A template; bytes become a blob."""
    return str(json.loads(context)["uri"]).encode()


@app.mcp_prompt_trigger(
    arg_name="context",
    prompt_name="review",
    description="Reviews code.",
    prompt_arguments=[func.PromptArgument("code", "The code.", required=True)],
)
def review(context: func.PromptInvocationContext) -> str:
    """A prompt."""
    return f"Review {(context.arguments or {})['code']}"


# Queue and timer


@app.queue_trigger(arg_name="msg", queue_name="%FIXTURE_QUEUE%", connection="AzureWebJobsStorage")
@app.queue_output(arg_name="out", queue_name="{reply}", connection="AzureWebJobsStorage")
async def worker(msg: func.QueueMessage, out: func.Out[str]) -> None:
    """Does what the message says: {"do": "ok" | "fail" | "slow", "seconds": n, "reply": queue}."""
    text = msg.get_body().decode()
    record(
        event="message",
        body=text,
        id=msg.id,
        dequeue_count=msg.dequeue_count,
        pop_receipt=msg.pop_receipt,
        insertion=str(msg.insertion_time),
        expiration=str(msg.expiration_time),
        next_visible=str(msg.time_next_visible),
        time=time.time(),
    )
    try:
        order = json.loads(text)
    except ValueError:
        return
    if order["do"] == "fail":
        raise ValueError("told to fail")
    if order["do"] == "slow":
        await asyncio.sleep(order["seconds"])
        record(event="slow done", time=time.time())
    if order["do"] == "reply":
        out.set(f"answer to {msg.id}")


@app.timer_trigger(arg_name="timer", schedule="%FIXTURE_SCHEDULE%", run_on_startup=True)
def tick(timer: func.TimerRequest) -> None:
    """Runs longer than its schedule's interval in the test."""
    seen: Any = timer  # the abstract class does not declare everything
    known = {"past_due": seen.past_due, "status": seen.schedule_status, "schedule": seen.schedule}
    record(event="tick", **known, time=time.time())
    time.sleep(float(os.environ.get("FIXTURE_TICK_SECONDS", "0")))
    record(event="tock", time=time.time())
