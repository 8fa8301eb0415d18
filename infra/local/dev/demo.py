"""The two calls that `dev.py run` always makes, and how it shows what came back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from infra.local.dev import client, paths
from infra.local.dev.console import DevError, headline, paint, say

TOOL = "csv_profile"
SAMPLE = paths.REPO / "tools" / "csv_profile" / "sample.csv"
MCP_PATH = "/runtime/webhooks/mcp"
CALL_SECONDS = 90.0  # above the time that a two-way call waits for its job
_WIDTH = 108
_LEVELS = 2


@dataclass(frozen=True)
class App:
    """Where the app is, and what opens it."""

    url: str
    token: str | None
    extension_key: str | None

    @property
    def mcp_headers(self) -> dict[str, str]:
        keys = {"x-functions-key": self.extension_key, "X-MCP-Auth-Token": self.token}
        return {name: value for name, value in keys.items() if value}

    @property
    def job_headers(self) -> dict[str, str]:
        return {"X-MCP-Auth-Token": self.token} if self.token else {}


def make_calls(app: App) -> str:
    """Call the tool inline and as a headless job, print both results and the job; its id. Raises `DevError`."""
    csv = SAMPLE.read_text("utf-8")
    source = SAMPLE.relative_to(paths.REPO)

    headline(f"Inline call: {TOOL} of {source}")
    show_result(call(app, TOOL, {"csv": csv}))

    headline(f"Headless call, two-way: {TOOL} of {source} as a job")
    result = call(app, TOOL, {"csv": csv, "__pptb": {"executionMode": "headless", "mode": "two-way"}})
    show_result(result)
    job_id = job_of(result, TOOL)

    headline(f"The job, read from GET /mcp/jobs/{job_id}")
    read_job(app, job_id)
    return job_id


def call(app: App, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call through the MCP endpoint; its result. Raises `DevError`."""
    return client.call_tool(app.url + MCP_PATH, tool, arguments, app.mcp_headers, CALL_SECONDS)


def job_of(result: dict[str, Any], tool: str) -> str:
    """The id of the job that a headless call was. Raises `DevError`."""
    job_id = result.get("_meta", {}).get("toolbox/jobId")
    if not isinstance(job_id, str):
        raise DevError(f"The headless call of {tool} did not say which job it was (_meta toolbox/jobId).")
    return job_id


def read_job(app: App, job_id: str) -> bool:
    """Read a job over HTTP and print it; False without a token to do so. Raises `DevError` unless completed."""
    if app.token is None:
        say(
            paint(
                "The job cannot be read: no token is set. Set MCP_AUTH_TOKEN in local.settings.json.", "yellow"
            )
        )
        return False
    job = client.get_json(f"{app.url}/mcp/jobs/{job_id}", app.job_headers, CALL_SECONDS)
    show_job(job)
    if job.get("status") != "completed":
        raise DevError(f"The job is {job.get('status')}, not completed: {job.get('error') or 'it still runs'}.")
    return True


def show_result(result: dict[str, Any]) -> None:
    """Print a tool result's content blocks."""
    for block in result.get("content", []):
        say(_block(block))


def show_job(job: dict[str, Any]) -> None:
    """Print a job's status, progress and log lines."""
    progress = job.get("progress") or {}
    done = f"{progress.get('percent', 0):g} %"
    if progress.get("message"):
        done += f", {progress['message']}"
    say(f"status    {paint(str(job.get('status')), 'bold')} (attempt {job.get('attempt')})")
    say(f"progress  {done}")
    for line in job.get("logs", []):
        say(f"log       {line.get('timestamp')}  {line.get('level', ''):<5} {line.get('message')}")


def _block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        text = str(block.get("text", ""))
        try:
            return compact_json(without_nulls(json.loads(text)))
        except ValueError:
            return text
    if kind in ("image", "audio"):
        size = len(str(block.get("data", ""))) * 3 / 4 / 1024
        return f"({kind}: {block.get('mimeType')}, {size:.1f} KiB)"
    return f"({kind})"


def without_nulls(value: Any) -> Any:
    """The value as a person wants to see it: a property that is null says nothing."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def compact_json(value: Any, width: int = _WIDTH, depth: int = 0) -> str:
    """JSON as a person reads it: if it is long, a line each for the entries of its two outer levels."""
    flat = json.dumps(value, ensure_ascii=False)
    indent = "  " * depth
    if len(indent) + len(flat) <= width or depth == _LEVELS or not isinstance(value, (dict, list)):
        return flat
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {compact_json(item, width, depth + 1)}" for key, item in value.items()]
        opening, closing = "{}"
    else:
        items = [compact_json(item, width, depth + 1) for item in value]
        opening, closing = "[]"
    return f"{opening}\n" + ",\n".join(f"{indent}  {item}" for item in items) + f"\n{indent}{closing}"
