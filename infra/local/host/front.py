"""The HTTP front: guard against foreign hosts and origins, the admin routes, and the way to every other app.

A plain composition of ASGI apps (a Starlette response is one too) and no Starlette router: that one minds the
case of paths and answers other methods with 405 by itself, and the host does neither.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from infra.local.host.asgi import given_key, header
from infra.local.host.keys import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from infra.local.host.keys import Keys

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
        functions: ASGIApp,
        webhooks: Mapping[str, ASGIApp],
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
        await self._app_for(Request(scope))(scope, receive, send)

    def _app_for(self, request: Request) -> ASGIApp:
        if not is_local_host(header(request, "host")):
            return Response(status_code=421)
        path: str = request.scope["path"].lower()
        is_admin = path == "/admin" or path.startswith("/admin/")
        is_own = is_admin or path.startswith(_WEBHOOKS)
        origin = header(request, "origin")
        if origin is not None and not is_local_origin(origin):
            # A sandboxed frame of an app's own page asks for its scripts so. What it may read of an answer, the
            # app says; reading without a named origin is open to every page anyway.
            is_sandboxed_read = origin == "null" and request.method in {"GET", "HEAD"}
            if is_own or not is_sandboxed_read:
                return Response(status_code=403)
        if is_admin:
            return self._admin(path.rstrip("/"), request)
        if is_own:
            return self._webhook(path, request.method)
        return self._functions

    def _webhook(self, path: str, method: str) -> ASGIApp:
        app = self._webhooks.get(path[len(_WEBHOOKS) :].partition("/")[0])
        if method not in _WEBHOOK_METHODS:
            return Response(status_code=405)
        if self.state != "Running":
            return Response(status_code=503)
        return app or Response(status_code=404)

    def _admin(self, path: str, request: Request) -> Response:
        method = request.method
        if path == "/admin/host/ping":
            return Response(status_code=200 if method in {"GET", "HEAD", "POST"} else 405)
        if self._keys.for_admin(given_key(request)) is not Verdict.ALLOWED:
            return Response(status_code=401)
        if path == "/admin/host/status" and method == "GET":
            return JSONResponse(self._status())
        if path == "/admin/functions" and method == "GET":
            return JSONResponse(self._list())
        if path.startswith("/admin/functions/") and method == "POST":
            started = self._start(path.removeprefix("/admin/functions/"))
            return Response(status_code=202 if started else 404)
        return Response(status_code=404)

    def _status(self) -> dict[str, Any]:
        uptime = int((time.monotonic() - self._started) * 1000)
        return {"id": "local", "state": self.state, "version": "local", "processUptime": uptime}


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
