"""Requests to a service: one connection pool per host, tokens, concurrency, repeats, errors.

Runs on the APIs' event loop (see `bridge`). https only; redirects are not followed, so a token never leaves for
another host. httpx and tenacity are loaded with the first request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shared import telemetry
from shared.apis.environment import Environment
from shared.apis.record import load
from shared.apis.urls import https_origin
from shared.errors import ServiceError, ToolError

if TYPE_CHECKING:
    import httpx

#: Requests under way at once to one host. Dataverse allows a user about 52 on each of its servers.
CONCURRENCY: Final = 16
#: Seconds. Dataverse ends an operation after two minutes by itself.
CONNECT_TIMEOUT: Final = 10.0
READ_TIMEOUT: Final = 130.0
#: Idle connections are closed before the service does it, in seconds.
KEEP_ALIVE: Final = 60.0
#: Characters that httpx takes for an address.
LONGEST_URL: Final = 65_536
USER_AGENT: Final = "toolbox-functions"
#: What may be sent twice without harm.
IDEMPOTENT: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`path`: below `root`, encoded, with its query; `root`: an address that ends with a slash."""

    method: str
    root: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    #: Seconds to wait for the answer; None: until the invocation ends.
    read_timeout: float | None = READ_TIMEOUT

    @property
    def url(self) -> str:
        return self.root + self.path

    @property
    def idempotent(self) -> bool:
        return self.method in IDEMPOTENT


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers`: names in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body, with a `Record` for every object and for an empty body. May raise `ValueError`."""
        return load(self.content or b"{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How one service is spoken of, and what its refusals are."""

    name: str
    error: type[ServiceError]
    request_id_header: str = "x-ms-service-request-id"
    #: What telemetry calls its requests.
    span: str = "dataverse.request"


class Host:
    """What all calls to one host share. Used on the APIs' event loop only."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.gate = asyncio.Semaphore(CONCURRENCY)
        #: What callers keep for the host, such as names from its metadata.
        self.kept: dict[Any, Any] = {}
        #: By connection, on the clock of `time.monotonic()`: its calls wait until then.
        self._resume_at: dict[str, float] = {}

    async def resumed(self, connection: str, until: float) -> bool:
        """Waits as long as that connection's calls are paused; False at once when that goes beyond `until`."""
        while (pause := self.paused(connection)) > 0:  # it may be made longer meanwhile
            if time.monotonic() + pause > until:
                return False
            await asyncio.sleep(pause)
        return True

    def paused(self, connection: str) -> float:
        """Seconds that the connection's calls still have to wait."""
        return max(self._resume_at.get(connection, 0.0) - time.monotonic(), 0.0)

    def pause(self, connection: str, seconds: float) -> None:
        """Holds the calls of one connection. Limits are a user's own: others are not held."""
        resume_at = time.monotonic() + seconds
        self._resume_at[connection] = max(self._resume_at.get(connection, 0.0), resume_at)


class Hosts:
    """The process's hosts, by origin."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._hosts: dict[str, Host] = {}
        self._process = os.getpid()

    def of(self, url: str) -> Host:
        """Raises `ToolError` unless `url` is https, and when the process's proxy settings are no good."""
        origin = origin_of(url)
        if self._process != os.getpid():  # forked: the connections are the parent's
            self._hosts, self._process = {}, os.getpid()
        if origin not in self._hosts:
            self._hosts[origin] = Host(self._client())
        return self._hosts[origin]

    async def close(self) -> None:
        """Closes the connections; new calls make new ones."""
        hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            await host.client.aclose()

    def _client(self) -> httpx.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        quiet = logging.getLogger("httpx")
        if quiet.level == logging.NOTSET:  # at INFO it writes every address, and so what was searched for
            quiet.setLevel(logging.WARNING)
        limits = httpx.Limits(
            max_connections=CONCURRENCY, max_keepalive_connections=CONCURRENCY, keepalive_expiry=KEEP_ALIVE
        )
        try:
            return httpx.AsyncClient(
                transport=self._transport,
                follow_redirects=False,
                # One invocation's cookies would go out with the next one's requests, whoever's token it is.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                headers={"user-agent": USER_AGENT},
                limits=limits,
            )
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
            # httpx reads these by itself. Their values may hold a proxy's password.
            raise ToolError(
                "No request can be made: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY or NO_PROXY is set to what is no "
                "address that can be used, or SSL_CERT_FILE or SSL_CERT_DIR names no certificates that can be "
                f"read ({type(error).__name__})."
            ) from None


def origin_of(url: str) -> str:
    """`https://host[:port]` in lower case, without the default port. Raises `ToolError` unless https."""
    origin = https_origin(url)
    if origin is None:
        raise ToolError("The environment's address must be https://host")
    return origin


def encode(body: Any, default: Any = None) -> bytes:
    """JSON as it is sent. Raises `ToolError` when it cannot be written."""
    try:
        return json.dumps(body, default=default, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"The request body cannot be written as JSON: {error}") from None


async def send(
    host: Host,
    environment: Environment,
    scope: str,
    service: Service,
    request: Request,
    accept: Callable[[Answer], bool] | None = None,
) -> Answer:
    """One request with a bearer token for `scope`, repeated as `retry` says. Raises the service's error.

    `accept`: answers that are no refusals in spite of their status. Raises `ToolError`, before a token is asked
    for, when the address is none that can be sent.
    """
    import httpx

    from shared.apis.retry import Sender

    try:
        httpx.URL(request.url)
    except httpx.InvalidURL:
        length = f"{len(request.url):,} characters of at most {LONGEST_URL:,}"
        raise ToolError(f"{service.name}: the request's address is too long or illegal ({length})") from None
    sender = Sender(host, environment, scope, service, request, accept)
    failed: BaseException | None = None
    with telemetry.request(service.span, request.method, request.url) as span:
        try:
            return await sender.send()
        except BaseException as error:
            failed = error
            raise
        finally:
            telemetry.answered(span, sender.status, sender.sent, failed)
