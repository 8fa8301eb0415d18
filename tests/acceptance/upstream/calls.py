"""Small things that the tests of this folder share."""

from __future__ import annotations

import json
from typing import Any

from tests.acceptance.conftest import App
from tests.support.upstream_app import Folder


def names(folder: Folder, kind: str = "tools") -> dict[str, str]:
    """Qualified name -> published name, as the lock says."""
    own = kind.removesuffix("s")
    return {f"{one['server']}.{one[own]}": one["name"] for one in folder.lock[kind]}


def published(app: App, folder: Folder, qualified: str) -> Any:
    """The tool's entry of tools/list."""
    (entry,) = [
        one for one in app.rpc("tools/list")["result"]["tools"] if one["name"] == names(folder)[qualified]
    ]
    return entry


def text(result: Any) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def slow(server: str, tool: str, seconds: float) -> str:
    return f"Server '{server}' did not answer the call of '{tool}' within {seconds:g} s."


def log_lines(app: App) -> list[Any]:
    """The JSON lines in the app's log."""
    found = []
    for line in app.log.read_text("utf-8", "replace").splitlines():
        start = line.find("{")
        if start >= 0:
            try:
                found.append(json.loads(line[start:]))
            except ValueError:
                continue
    return found
