"""The ASGI app: token endpoint, Web API, Power Platform API and control API on every port."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from infra.local.dataverse.api import failure, handle
from infra.local.dataverse.authority import POWER_PLATFORM, discovery
from infra.local.dataverse.call import Answer, Call, parse_query
from infra.local.dataverse.control import PREFIX as CONTROL
from infra.local.dataverse.control import handle_control
from infra.local.dataverse.errors import ApiError, bad_query
from infra.local.dataverse.faults import Kind, answer_of
from infra.local.dataverse.values import new_guid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Receive, Scope, Send

    from infra.local.dataverse.authority import Authority
    from infra.local.dataverse.environment import Environment
    from infra.local.dataverse.faults import Faults
    from infra.local.dataverse.powerplatform import PowerPlatform
    from infra.local.dataverse.requests_log import Logged, RequestLog

MAX_URL: Final = 32_768
MAX_BODY: Final = 128 * 1024 * 1024
TRANSPORT: Final = "stand-in.transport"  # key in a scope's extensions
_API: Final = re.compile(r"/api/data/v9\.\d/")
_TOKEN: Final = re.compile(r"/([^/]+)/oauth2/v2\.0/token")
_DISCOVERY: Final = re.compile(r"/([^/]+)/v2\.0/\.well-known/openid-configuration")
_LOCAL: Final = frozenset({"127.0.0.1", "localhost"})


@dataclass(slots=True)
class Site:
    """An environment, the tenant it belongs to, and its address without a slash at the end."""

    environment: Environment
    tenant: str
    url: str


@dataclass(slots=True)
class State:
    """Everything the app answers from. `sites` are by port; one app serves them all."""

    sites: dict[int, Site]
    authority: Authority
    faults: Faults
    log: RequestLog
    power_platform: PowerPlatform


class App:
    """Answers one request after the other; the work itself never awaits, so requests do not interleave."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        site = self._state.sites[scope["server"][1]]
        if (request.url.hostname or "") not in _LOCAL:
            await Response(status_code=421)(scope, receive, send)
            return
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        path: str = scope["raw_path"].decode("ascii")
        query: str = scope["query_string"].decode("latin-1")
        headers = {name.lower(): value for name, value in request.headers.items()}
        if path.startswith(CONTROL):
            await handle_control(self._state, request, body)(scope, receive, send)
            return
        entry = self._state.log.add(site.environment.name, request.method, path, query, headers, body)
        answer = await self._with_faults(entry, site, headers, body)
        if answer is None:
            await _abort(scope, receive)
            return
        entry.status = answer.status
        await _response(answer)(scope, receive, send)

    async def _with_faults(
        self, entry: Logged, site: Site, headers: Mapping[str, str], body: bytes
    ) -> Answer | None:
        """The answer, or None when the connection is to end instead."""
        target = f"{entry.path}?{entry.query_string}" if entry.query_string else entry.path
        fault = self._state.faults.pick(entry.method, target, entry.environment)
        if fault is None:
            return self._answer(entry, site, headers, body)
        entry.fault = fault.kind.value
        await asyncio.sleep(fault.delay)
        if fault.kind is Kind.RESET:
            return None
        if fault.kind is Kind.EXPIRED:
            self._state.authority.expire_tokens()
        replaced = answer_of(fault)
        if replaced is not None:
            return replaced
        answer = self._answer(entry, site, headers, body)
        return None if fault.kind is Kind.LOST else answer

    def _answer(self, entry: Logged, site: Site, headers: Mapping[str, str], body: bytes) -> Answer:
        state, path = self._state, entry.path
        if match := _TOKEN.fullmatch(path):
            if entry.method != "POST":
                return Answer(405)
            return state.authority.grant(match[1], parse_query(body.decode(errors="replace")), site.url + path)
        if match := _DISCOVERY.fullmatch(path):
            return Answer(200, discovery(site.url, match[1]), media="application/json")
        if path == "/msi/token":
            return state.authority.grant_identity(entry.query, headers.get("x-identity-header"))
        if path.startswith("/powerplatform/"):
            root = f"{site.url}/powerplatform/"
            call = Call(entry.method, path.removeprefix("/powerplatform/"), root, entry.query, headers, body)
            return self._authorized(entry, call, None, POWER_PLATFORM) or state.power_platform.handle(call)
        if match := _API.match(path):
            call = Call(entry.method, path[match.end() :], site.url + match[0], entry.query, headers, body)
            return self._web_api(entry, call, site)
        return Answer(404, f"There is nothing at {path}.", media="text/plain")

    def _authorized(self, entry: Logged, call: Call, tenant: str | None, audience: str) -> Answer | None:
        """None, and the caller noted, when the token is good; else the refusal, which has no body."""
        base = call.root.split("/", 3)
        try:
            token = self._state.authority.check(
                call.headers.get("authorization"), tenant, audience, "/".join(base[:3])
            )
        except ApiError as error:
            return Answer(error.status, headers=error.headers)
        entry.app, entry.token = token.app, token.serial
        return None

    def _web_api(self, entry: Logged, call: Call, site: Site) -> Answer:
        refusal = self._authorized(entry, call, site.tenant, site.url)
        if refusal is None:
            try:
                _check(entry, call)
                with site.environment.lock:
                    user_id = site.environment.user_of(entry.app or "")
                answer = handle(site.environment, call, user_id)
            except ApiError as error:
                answer = failure(error, call)
        else:
            answer = refusal
        answer.headers |= {
            "OData-Version": "4.0", "x-ms-service-request-id": new_guid(), "REQ_ID": new_guid(),
            "x-ms-ratelimit-burst-remaining-xrm-requests": "5999",
            "x-ms-ratelimit-time-remaining-xrm-requests": "1,200.00",
        }  # fmt: skip
        return answer


def _check(entry: Logged, call: Call) -> None:
    """What the service looks at before the request itself. Raises ApiError."""
    if len(entry.path) + len(entry.query_string) > MAX_URL:
        raise ApiError(414, "", "The request URL is too long.")
    if call.header("odata-version") not in {None, "4.0"}:
        raise bad_query("The OData-Version header must be 4.0.")
    media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.body and media not in {"application/json", "multipart/mixed"}:
        message = f"The request entity's media type '{media}' is not supported for this resource."
        raise ApiError(415, "", message)


def _response(answer: Answer) -> Response:
    response = Response(answer.content, answer.status, answer.headers)
    if answer.body is not None:
        response.headers["content-type"] = answer.media
    if answer.status in {204, 304} and "content-length" in response.headers:
        del response.headers["content-length"]
    return response


async def _abort(scope: Scope, receive: Receive) -> None:
    """End the connection with a reset."""
    transport: Any = scope["extensions"][TRANSPORT]
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    while (await receive())["type"] != "http.disconnect":
        pass
