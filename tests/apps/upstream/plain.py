"""A server of 2025-06-18 whose tools stand in a file: `plain.py FILE` over stdio, `plain.py FILE websocket`.

The file is read at each list: `{"tools": [...], "prompts": [...]}` in the form of the wire. A call of `hang` is
never answered, one of `die` ends the process, `say` tells of progress and writes a log line first; any other
answers with its arguments, and with the process's id. STAY=1: over stdio it outlives its standard input, and a
polite request to end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])
VERSION = "2025-06-18"

type Message = dict[str, Any]


def listed(kind: str) -> list[Message]:
    found: list[Message] = json.loads(FILE.read_text()).get(kind, [])
    return found


def called(params: Message) -> list[Message] | None:
    """The notifications and the result, without their envelope; None: no answer."""
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "hang":
        return None
    if name == "die":
        os._exit(9)
    told: list[Message] = []
    if name == "say":
        token = params.get("_meta", {}).get("progressToken")
        log = {"level": "warning", "logger": "plain", "data": "as it was said"}
        told.append({"method": "notifications/message", "params": log})
        if token is not None:
            progress = {"progressToken": token, "progress": 1, "total": 4, "message": "a quarter"}
            told.append({"method": "notifications/progress", "params": progress})
    data = {"arguments": arguments, "pid": os.getpid()}
    result = {"content": [{"type": "text", "text": json.dumps(data)}], "structuredContent": data}
    return [*told, {"result": result}]


def answers(message: Message) -> list[Message]:
    """What to send for a message."""
    if "id" not in message or "method" not in message:
        return []
    method, params = message["method"], message.get("params") or {}
    told: list[Message]
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "prompts": {}, "logging": {}}
        info = {"name": "plain", "version": "1"}
        told = [{"result": {"protocolVersion": VERSION, "capabilities": capabilities, "serverInfo": info}}]
    elif method in ("tools/list", "prompts/list"):
        kind = method.partition("/")[0]
        told = [{"result": {kind: listed(kind)}}]
    elif method == "prompts/get":
        text = {"type": "text", "text": f"{params['name']}: {json.dumps(params.get('arguments', {}))}"}
        told = [{"result": {"messages": [{"role": "user", "content": text}]}}]
    elif method == "tools/call":
        told = called(params) or []
    elif method in ("ping", "logging/setLevel"):
        told = [{"result": {}}]
    else:
        told = [{"error": {"code": -32601, "message": f"Method not found: {method}"}}]
    return [{"jsonrpc": "2.0", **({} if "method" in one else {"id": message["id"]}), **one} for one in told]


def stdio() -> None:
    stay = os.environ.get("STAY") == "1"
    if stay:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("a plain server speaks", file=sys.stderr, flush=True)
    for line in sys.stdin:
        for one in answers(json.loads(line)):
            sys.stdout.write(json.dumps(one) + "\n")
            sys.stdout.flush()
    while stay:
        time.sleep(60)


def websocket() -> None:
    from websockets.sync.server import ServerConnection, serve
    from websockets.typing import Subprotocol

    def speak(socket: ServerConnection) -> None:
        for text in socket:
            for one in answers(json.loads(text)):
                socket.send(json.dumps(one))

    with serve(speak, "127.0.0.1", 0, subprotocols=[Subprotocol("mcp")]) as server:
        print(server.socket.getsockname()[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    websocket() if sys.argv[2:] == ["websocket"] else stdio()
