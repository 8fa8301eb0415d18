"""The Power Platform API: fifteen categories that echo requests, or answer what a test told them to."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.call import Answer
from infra.local.dataverse.values import new_guid

if TYPE_CHECKING:
    from infra.local.dataverse.call import Call

CATEGORIES: Final = frozenset(
    {"analytics", "appmanagement", "authorization", "connectivity", "copilotstudio", "dynamics",
     "environmentmanagement", "governance", "licensing", "powerapps", "powerautomate", "powerpages",
     "resourcequery", "usermanagement", "workflowagents"}
)  # fmt: skip
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_JSON: Final = "application/json; charset=utf-8"


class PowerPlatform:
    """Answers by method and path; a path that ends in `/empty`, `/no-content`, `/text` or `/error` does so."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], Answer] = {}
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: Any, status: int = 200) -> None:
        """Let a path (`licensing/reports`) answer a body from now on: JSON, or text as it is."""
        media = "text/plain" if isinstance(body, str) else _JSON
        with self._lock:
            self._answers[method, path.strip("/")] = Answer(status, body, media=media)

    def handle(self, call: Call) -> Answer:
        """Answer a call; its path begins with the category. Each answer has an `x-ms-request-id` of its own."""
        answer = self._answer(call)
        answer.headers["x-ms-request-id"] = new_guid()
        return answer

    def _answer(self, call: Call) -> Answer:
        path = call.path.strip("/")
        category = path.partition("/")[0]
        if category not in CATEGORIES or call.method not in _METHODS:
            status = 404 if call.method in _METHODS else 405
            return _error(status, "ResourceNotFound", f"There is no {call.method} {path}.")
        with self._lock:
            scripted = self._answers.get((call.method, path))
        if scripted is not None:
            return Answer(scripted.status, scripted.body, dict(scripted.headers), scripted.media)
        match path.rpartition("/")[2]:
            case "empty":
                return Answer(200)
            case "no-content":
                return Answer(204)
            case "text":
                return Answer(200, "plain text", media="text/plain")
            case "error":
                return _error(400, "InvalidRequest", "This path always fails.")
        return Answer(200, _echo(call, category, path), media=_JSON)


def _echo(call: Call, category: str, path: str) -> dict[str, Any]:
    try:
        body = json.loads(call.body) if call.body else None
    except ValueError:
        body = call.body.decode(errors="replace")
    rest = path.removeprefix(category).lstrip("/")
    return {"category": category, "method": call.method, "path": rest, "query": dict(call.query), "body": body}


def _error(status: int, code: str, message: str) -> Answer:
    return Answer(status, {"error": {"code": code, "message": message}}, media=_JSON)
