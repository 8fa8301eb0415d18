"""The HTTP front: guard against foreign hosts and origins, the admin routes, and the way to every other app."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from infra.local.host.asgi import JSON_TYPE, answer, collect_headers, given_key, header
from infra.local.host.keys import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from infra.local.host.asgi import Receive, Scope, Send
    from infra.local.host.keys import Keys

type App = "Callable[[Scope, Receive, Send], Awaitable[None]]"
type Admin = "Callable[[], Mapping[str, Any] | list[Any]]"
type Starter = "Callable[[str], bool]"

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_AUTHORITY: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]@/]+)(?::\d{1,5})?")
_WEBHOOKS: Final = "/runtime/webhooks/"
_WEBHOOK_METHODS: Final = frozenset({"GET", "PUT", "POST", "DELETE", "OPTIONS"})


class Front:
    """The ASGI app that the server runs."""

    def __init__(
        self,
        functions: App,
        webhooks: Mapping[str, App],
        keys: Keys,
        functions_list: Admin,
        start_function: Starter,
    ) -> None:
        self._functions = functions
        self._webhooks = webhooks
        self._keys = keys
        self._list = functions_list
        self._start = start_function
        self._started = time.monotonic()
        self.state = "Running"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not is_local_host(header(scope, b"host")):
            await answer(send, 421)
            return
        origin = header(scope, b"origin")
        if origin is not None and not is_local_origin(origin):
            await answer(send, 403)
            return
        path: str = scope["path"].lower()
        if path.startswith(_WEBHOOKS):
            await self._webhook(path, scope, receive, send)
        elif path == "/admin" or path.startswith("/admin/"):
            await self._admin(path.rstrip("/"), scope, send)
        else:
            await self._functions(scope, receive, send)

    async def _webhook(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._webhooks.get(path[len(_WEBHOOKS) :].partition("/")[0])
        if scope["method"] not in _WEBHOOK_METHODS:
            await answer(send, 405)
        elif self.state != "Running":
            await answer(send, 503)
        elif app is None:
            await answer(send, 404)
        else:
            await app(scope, receive, send)

    async def _admin(self, path: str, scope: Scope, send: Send) -> None:
        method = scope["method"]
        if path == "/admin/host/ping":
            await answer(send, 200 if method in {"GET", "HEAD", "POST"} else 405)
            return
        key = given_key(collect_headers(scope), scope["query_string"])
        if self._keys.for_admin(key) is not Verdict.ALLOWED:
            await answer(send, 401)
        elif path == "/admin/host/status" and method == "GET":
            await _json(send, self._status())
        elif path == "/admin/functions" and method == "GET":
            await _json(send, self._list())
        elif path.startswith("/admin/functions/") and method == "POST":
            await answer(send, 202 if self._start(path.removeprefix("/admin/functions/")) else 404)
        else:
            await answer(send, 404)

    def _status(self) -> dict[str, Any]:
        uptime = int((time.monotonic() - self._started) * 1000)
        return {"id": "local", "state": self.state, "version": "local", "processUptime": uptime}


async def _json(send: Send, body: Any) -> None:
    await answer(send, 200, json.dumps(body).encode(), [JSON_TYPE])


def is_local_host(authority: str | None) -> bool:
    """Whether a Host header names this machine's loopback interface; the defence against DNS rebinding."""
    match = _AUTHORITY.fullmatch(authority or "")
    return match is not None and match[1].lower() in LOOPBACK


def is_local_origin(origin: str) -> bool:
    """Whether an Origin header is a page of this machine; ``null`` is not."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and not parts.path and is_local_host(parts.netloc)
