"""Upstream servers over HTTP, as their caller's project and policy let them be seen.

    GET  /mcp/servers             {"servers": [...]}, also those whose configuration is faulty
    GET  /mcp/servers/{name}      one with its tools, and for the operator its log

`?project=NAME` looks at another project of the owner's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import azure.functions as func

from shared.errors import CallError, SettingsError
from shared.settings import Settings
from shared.tool.spec import JsonObject
from shared.upstream.status import Servers
from shared.web import answers
from shared.web.params import Params

_LOG = logging.getLogger(__name__)


class ServersApi:
    """The HTTP functions about upstream servers."""

    def __init__(
        self, settings: Settings, servers: Servers, project_of: Callable[[str, str | None], str | None]
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._project_of = project_of

    async def list(self, request: func.HttpRequest) -> func.HttpResponse:
        async def answer(owner: str, project: str | None) -> JsonObject | None:
            return {"servers": await self._servers.all(owner, project)}

        return await self._answer(request, answer)

    async def one(self, request: func.HttpRequest) -> func.HttpResponse:
        async def answer(owner: str, project: str | None) -> JsonObject | None:
            return await self._servers.one(request.route_params.get("name", ""), owner, project)

        return await self._answer(request, answer)

    async def _answer(
        self,
        request: func.HttpRequest,
        answer: Callable[[str, str | None], Awaitable[JsonObject | None]],
    ) -> func.HttpResponse:
        owner = answers.refusal(request, self._settings)
        if isinstance(owner, func.HttpResponse):
            return owner
        refused = answers.method_refusal(request, "GET")
        if refused is not None:
            return refused
        try:
            params = Params(request.params)
            asked = params.text("project")
            params.check()
            body = await answer(owner, self._project_of(owner, asked))
        except CallError as error:
            return answers.error(400, error.message)
        except SettingsError as error:
            return answers.error(503, error.message)
        except Exception:
            _LOG.exception("the servers could not be shown")
            return answers.error(500, "The servers could not be shown; the app's log has the reason.")
        return answers.error(404, "Server not found") if body is None else answers.json_answer(200, body)
