"""What dev.py asks of the app over HTTP: call a tool, read a job, read a job's file."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from infra.local.dev.console import DevError

# An http_proxy of the environment is not for loopback addresses.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MCP_ACCEPT = "application/json, text/event-stream"


def call_tool(
    endpoint: str, name: str, arguments: dict[str, Any], headers: dict[str, str], timeout: float
) -> dict[str, Any]:
    """One `tools/call` at an MCP endpoint (streamable HTTP, no session); the result. Raises `DevError`."""
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    all_headers = {"Content-Type": "application/json", "Accept": _MCP_ACCEPT, **headers}
    text = _fetch(urllib.request.Request(endpoint, body, all_headers), timeout)
    try:
        answer = json.loads(last_event(text))
    except ValueError as error:
        raise DevError(f"The MCP endpoint's answer to tools/call is not JSON: {text[:500]!r}") from error
    if "error" in answer:
        raise DevError(f"The call of {name} was refused: {answer['error'].get('message')}")
    result: dict[str, Any] = answer["result"]
    if result.get("isError"):
        raise DevError(f"The call of {name} failed: {_texts(result)}")
    return result


def get_json(url: str, headers: dict[str, str], timeout: float) -> dict[str, Any]:
    """GET a JSON object. Raises `DevError`."""
    text = _fetch(urllib.request.Request(url, headers=headers), timeout)
    try:
        document: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise DevError(f"GET {url} did not answer JSON: {text[:500]!r}") from error
    return document


def get_text(url: str, headers: dict[str, str], timeout: float) -> str:
    """GET a text. Raises `DevError`."""
    return _fetch(urllib.request.Request(url, headers=headers), timeout)


def last_event(text: str) -> str:
    """The data of the last event of an SSE body; the text itself if it is a plain JSON answer."""
    data = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    return data[-1] if data else text


def _texts(result: dict[str, Any]) -> str:
    blocks = result.get("content", [])
    return " ".join(block.get("text", "") for block in blocks if block.get("type") == "text")


def _fetch(request: urllib.request.Request, timeout: float) -> str:
    what = f"{request.get_method()} {request.full_url}"
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            body: bytes = response.read()
    except urllib.error.HTTPError as error:
        with error:
            answer = error.read().decode("utf-8", "replace")
        raise DevError(f"{what} answered {error.code} {error.reason}: {answer[:500]}") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise DevError(f"{what} failed: {reason}") from error
    return body.decode("utf-8", "replace")
