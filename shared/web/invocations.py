"""Invocations over HTTP, as their owner sees them.

    GET  /mcp/invocations       newest first; `limit`, `cursor`, `tool`, `status`, `mode`, `executionMode`
    GET  /mcp/invocations/{id}  one of them, as the list has it

`{"invocations": [...], "cursor"?}`, with an ETag and 304: a page that polls gets a body when something changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import azure.functions as func

from shared import ids, storage
from shared.contract.envelope import longest_window_ms
from shared.errors import SettingsError
from shared.invocations.store import InvocationReader
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.settings import Settings
from shared.tool.json_form import dumps
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from shared.web import answers, history
from shared.web.entries import Filter
from shared.web.history import History, Position
from shared.web.params import Params

_LONGEST_CURSOR: Final = 4_000
_NOT_FOUND: Final = "Invocation not found"
_NO_CURSOR: Final = "Older invocations cannot be listed: TOOLBOX_SEAL_KEY is not set."


class InvocationsApi:
    """The HTTP functions about invocations."""

    def __init__(
        self,
        settings: Settings,
        sealer: Sealer,
        records: Callable[[], InvocationReader],
        jobs: Callable[[], JobStore],
    ) -> None:
        self._settings = settings
        self._sealer = sealer
        longest = longest_window_ms(settings.window_timeout_ms, settings.max_timeout_ms)
        self._history = History(records, jobs, longest)

    async def list(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with a page, 304 when it is still what If-None-Match names."""

        async def answer(owner: str) -> func.HttpResponse:
            params = Params(request.params)
            limit = params.whole("limit", history.DEFAULT_LIMIT, 1, history.MOST)
            cursor = params.text("cursor", _LONGEST_CURSOR)
            wanted = Filter(
                params.text("tool"),
                params.choice("status", history.STATUSES),
                params.choice("mode", [str(known) for known in Mode]),
                params.choice("executionMode", [str(known) for known in ExecutionMode]),
            )
            params.check()
            at = Position()
            if cursor is not None:
                at = Position.of_text(self._sealer.token(owner, cursor), wanted)
            page = await storage.run(self._history.page, owner, wanted, at, limit)
            following = None if page.following is None else page.following.text(wanted)
            # A sealed cursor is never twice the same, so the tag is of what it stands for, and weak.
            visible = dumps([page.entries, following]).encode()
            tag = hashlib.sha256(visible).hexdigest()[:32]
            headers = {"ETag": f'W/"{tag}"'}
            if answers.is_known(request, tag):
                return answers.not_modified(headers)
            body: JsonObject = {"invocations": page.entries}
            if following is not None:
                body |= self._cursor(owner, following)
            return answers.json_answer(200, body, headers)

        return await answers.for_owner(request, self._settings, answer, "GET")

    async def one(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the entry, 304 when it is what If-None-Match names; 404: none that the owner may see."""

        async def answer(owner: str) -> func.HttpResponse:
            identifier = request.route_params.get("id", "")
            if not ids.is_id(identifier):
                return answers.error(404, _NOT_FOUND)
            Params(request.params).check()
            found = await storage.run(self._history.one, owner, identifier)
            if found is None:
                return answers.error(404, _NOT_FOUND)
            tag = hashlib.sha256(dumps(found).encode()).hexdigest()[:32]
            headers = {"ETag": f'"{tag}"'}
            if answers.is_known(request, tag):
                return answers.not_modified(headers)
            return answers.json_answer(200, found, headers)

        return await answers.for_owner(request, self._settings, answer, "GET")

    def _cursor(self, owner: str, text: str) -> JsonObject:
        try:
            return {"cursor": self._sealer.cursor(owner, text)}
        except SettingsError:
            # Without a key there are no jobs, but calls all the same.
            return {"incomplete": _NO_CURSOR}
