"""Upstream servers over HTTP, as their caller's project and policy let them be seen.

    GET  /mcp/servers             {"servers": [...]}, also those whose configuration is faulty
    GET  /mcp/servers/{name}      one with its tools, and for the operator its log
    POST /mcp/servers/refresh     the configuration is read and built anew; for owner `default` only

`?project=NAME` looks at another project of the owner's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import azure.functions as func

from shared.errors import CallError, SettingsError
from shared.settings import DEFAULT_OWNER, Settings
from shared.upstream.status import Servers
from shared.web import answers
from shared.web.params import Params

_LOG = logging.getLogger(__name__)

#: What a POST does; a GET of it is about the server of that name, if there is one.
REFRESH: Final = "refresh"

type Answer = func.HttpResponse


class ServersApi:
    """The HTTP functions about upstream servers."""

    def __init__(
        self, settings: Settings, servers: Servers, project_of: Callable[[str, str | None], str | None]
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._project_of = project_of

    async def list(self, request: func.HttpRequest) -> Answer:
        async def answer(owner: str, project: str | None) -> Answer:
            return answers.json_answer(200, {"servers": await self._servers.all(owner, project)})

        return await self._answer(request, self._seen(request, answer), "GET")

    async def one(self, request: func.HttpRequest) -> Answer:
        """A server, or for a POST to `refresh` the whole configuration anew."""
        name = request.route_params.get("name", "")

        async def answer(owner: str, project: str | None) -> Answer:
            body = await self._servers.one(name, owner, project)
            return answers.error(404, "Server not found") if body is None else answers.json_answer(200, body)

        legal = ("GET", "POST") if name == REFRESH else ("GET",)
        handle = self._refresh if request.method == "POST" else self._seen(request, answer)
        return await self._answer(request, handle, *legal)

    async def _refresh(self, owner: str) -> Answer:
        if owner != DEFAULT_OWNER:
            return answers.error(403, f"Only the operator, owner '{DEFAULT_OWNER}', may ask for this")
        return answers.json_answer(200, await self._servers.refresh())

    def _seen(
        self, request: func.HttpRequest, answer: Callable[[str, str | None], Awaitable[Answer]]
    ) -> Callable[[str], Awaitable[Answer]]:
        """The answer in the project that the request asks for."""

        async def for_owner(owner: str) -> Answer:
            params = Params(request.params)
            asked = params.text("project")
            params.check()
            return await answer(owner, self._project_of(owner, asked))

        return for_owner

    async def _answer(
        self, request: func.HttpRequest, answer: Callable[[str], Awaitable[Answer]], *methods: str
    ) -> Answer:
        owner = answers.refusal(request, self._settings)
        if isinstance(owner, func.HttpResponse):
            return owner
        refused = answers.method_refusal(request, *methods) or answers.foreign_refusal(request)
        if refused is not None:
            return refused
        try:
            return await answer(owner)
        except CallError as error:
            return answers.error(400, error.message)
        except SettingsError as error:
            return answers.error(503, error.message)
        except Exception:
            _LOG.exception("the servers could not be shown")
            return answers.error(500, "The servers could not be shown; the app's log has the reason.")
