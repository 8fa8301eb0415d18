"""A stdio server of 2025-06-18 that misbehaves: `odd.py MODE`. Standard library only, so that it starts at
once.

Each mode is one fault; without any it is a plain server. What tests look at afterwards (pids, requests) is
written as JSON lines to the file that ODD_LOG names.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
LOG = os.environ.get("ODD_LOG")
IMAGE_BYTES = 100 * 1024 * 1024
calls = 0
lists = 0


def record(**event: Any) -> None:
    if LOG:
        with Path(LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


def write(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def notify(method: str, params: dict[str, Any] | None = None) -> None:
    write({"method": method, "params": params or {}})


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}}


def list_tools(cursor: str | None) -> dict[str, Any]:
    global lists
    lists += 1
    record(list=cursor, count=lists)
    page = int(cursor or 0)
    if MODE == "pages":
        return {"tools": [tool(f"t{page}")], **({"nextCursor": str(page + 1)} if page < 4 else {})}
    if MODE == "endless-cursor":
        return {"tools": [tool(f"t{page}")], "nextCursor": str(page + 1)}
    if MODE == "cursor-loop":
        return {"tools": [tool(f"t{page}")], "nextCursor": str(1 - page)}
    if MODE == "twice":
        return {"tools": [{**tool("work"), "title": "first"}, {**tool("work"), "title": "second"}, {"name": 5}]}
    if MODE == "notify-in-list":
        notify("notifications/tools/list_changed")
    return {"tools": [tool("work"), *([tool("late")] if calls else [])]}


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def call(request: int | str, params: dict[str, Any]) -> dict[str, Any] | None:  # noqa: C901 - one fault after another
    global calls
    calls += 1
    record(call=params.get("name"), pid=os.getpid())
    arguments = params.get("arguments") or {}
    if MODE == "dies":
        os._exit(9)
    if MODE == "dies-once" and not Path(f"{LOG}.died").exists():
        Path(f"{LOG}.died").touch()
        os._exit(9)
    if MODE == "mute":
        return None
    if MODE == "notify-in-call":
        for _ in range(20):
            notify("notifications/tools/list_changed")
    if MODE == "huge":
        # 100 MB of base64 on one line, written in pieces.
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(request)},"result":{{"content":[{{"type":"image","data":"'
        sys.stdout.buffer.write(head.encode())
        for _ in range(IMAGE_BYTES // 1_000_000):
            sys.stdout.buffer.write(b"A" * 1_000_000)
        sys.stdout.buffer.write(b'","mimeType":"image/png"}]}}\n')
        sys.stdout.buffer.flush()
        return None
    if MODE == "asks":
        write({"id": "s1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}})
        return text(json.dumps(json.loads(sys.stdin.readline()).get("error")))
    if MODE == "unknown-block":
        return {"content": [{"type": "hologram", "data": 1}, {"type": "text", "text": "kept"}]}
    if MODE == "refuses":
        write({"id": request, "error": {"code": -32011, "message": f"no: {os.environ.get('API_KEY')}"}})
        return None
    if MODE == "unknown-tool":
        write({"id": request, "error": {"code": -32602, "message": "Unknown tool: work"}})
        return None
    if MODE == "logs":
        for level in ("debug", "notice", "warning", "emergency"):
            notify("notifications/message", {"level": level, "logger": "odd", "data": {"said": level}})
    if MODE == "sleeps":
        time.sleep(float(arguments.get("seconds", 0)))
    return text(str(arguments.get("text", calls)))


def main() -> None:  # noqa: C901 - one fault after another
    record(started=os.getpid())
    if MODE == "exits":
        sys.stderr.write("cannot find the config\n")
        sys.exit(3)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "silent":
        time.sleep(600)
    if MODE == "slow":
        time.sleep(1.2)
    if MODE == "banner":
        print("Server starting on stdio ...", flush=True)
    if MODE == "bad-utf8":
        sys.stdout.buffer.write(b"\xff\xfe broken\n")
        sys.stdout.buffer.flush()
    if MODE == "stderr-flood":
        key = os.environ["API_KEY"]
        line = f"debug: the key is {key} and this goes on\n"
        sys.stderr.write(line * (5_000_000 // len(line)))
        sys.stderr.write("x" * 300_000 + "\n")
        sys.stderr.write(f"last {key}\n")
        sys.stderr.flush()
    if MODE == "grandchild":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        record(grandchild=child.pid)
    for line in sys.stdin:
        message = json.loads(line)
        method, request = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            record(cancelled=message["params"].get("requestId"))
        if request is None or method is None:
            continue
        if method == "initialize":
            result: dict[str, Any] | None = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        elif method == "tools/list":
            result = list_tools((message.get("params") or {}).get("cursor"))
        elif method == "tools/call":
            result = call(request, message["params"])
        else:
            write({"id": request, "error": {"code": -32601, "message": f"Method not found: {method}"}})
            continue
        if result is not None:
            write({"id": request, "result": result})
        if MODE == "closes" and method == "tools/call":
            sys.exit(0)
    if MODE == "stubborn":
        time.sleep(600)


if __name__ == "__main__":
    main()
