"""When a request is sent again, and when that has to end. (Loads httpx and tenacity.)

| what happened | sent again |
|---|---|
| 401 | once, at once, with a renewed token |
| 429, 503 | always: the service has done nothing |
| 504, a connection lost on the way | GET, HEAD, PUT and DELETE only: something may have been done |
| no connection at all | always: nothing was sent |

The wait is what `Retry-After` says, or else grows from half a second to 30 s, with jitter. A 429 holds the
connection's other calls to that host too, whichever invocation they are of, but for a minute at most: what one
answer says must not keep every job from trying. Nothing waits beyond the invocation's deadline, or for over
five minutes when it has none; a `Retry-After` that goes beyond it ends the call at once.
"""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Callable
from typing import Final, NoReturn

import httpx
import tenacity

from shared import telemetry
from shared.apis.environment import Environment
from shared.apis.http import CONNECT_TIMEOUT, Answer, Host, Request, Service
from shared.errors import ServiceError

ATTEMPTS: Final = 8
#: Seconds that one call may take with all its repeats when its invocation has no deadline.
WITHOUT_DEADLINE: Final = 300.0
FIRST_WAIT: Final = 0.5
LONGEST_WAIT: Final = 30.0
#: Seconds that one 429 holds the connection's other calls at most. Each of them then hears for itself.
LONGEST_PAUSE: Final = 60.0
#: Seconds that stay for telling the caller.
_MARGIN: Final = 0.25
#: Characters of a refusal's body that its error repeats.
_BODY_LIMIT: Final = 2000
_BUSY: Final = frozenset({429, 503})


class _RetryError(Exception):
    def __init__(self, error: ServiceError) -> None:
        self.error = error


class Sender:
    """One request until it is answered, refused, or out of time."""

    def __init__(
        self,
        host: Host,
        environment: Environment,
        scope: str,
        service: Service,
        request: Request,
        accept: Callable[[Answer], bool] | None = None,
    ) -> None:
        self._host = host
        self._environment = environment
        self._scope = scope
        self._service = service
        self._request = request
        self._accept = accept
        self._token = ""
        #: On the clock of `time.monotonic()`: nothing waits beyond it.
        self._until = 0.0
        self._last: ServiceError | None = None
        #: How often the request went out, and the status of its last answer.
        self.sent = 0
        self.status: int | None = None
        #: An answer got lost: a DELETE may have been done already.
        self._lost = False

    async def send(self) -> Answer:
        deadline = self._environment.deadline()
        left = WITHOUT_DEADLINE if deadline is None else deadline - time.monotonic() - _MARGIN
        self._until = time.monotonic() + left
        retrying = tenacity.AsyncRetrying(
            sleep=asyncio.sleep,
            retry=tenacity.retry_if_exception_type(_RetryError),
            wait=self._wait,
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_before_delay(max(left, 0.0)),
            reraise=True,
        )
        try:
            # Without a deadline a long answer may take its time: only the repeats are limited.
            async with asyncio.timeout(max(left, 0.0) if deadline is not None else None) as limit:
                return await retrying(self._attempt)
        except _RetryError as given_up:
            raise self._too_long(given_up.error) from given_up.__cause__
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._out_of_time() from None

    async def _attempt(self) -> Answer:
        answer = await self._exchange(renew=False)
        if answer.status == 401:
            answer = await self._exchange(renew=True)
        if answer.ok or (self._accept is not None and self._accept(answer)):
            return answer
        if answer.status == 404 and self._lost and self._request.method == "DELETE":
            return Answer(204, answer.headers, b"")
        error = self._refusal(answer)
        if answer.status == 429 and error.retry_after is not None:
            self._host.pause(self._environment.id, min(error.retry_after, LONGEST_PAUSE))
        if answer.status in _BUSY or (answer.status == 504 and self._request.idempotent):
            self._last = error
            self._lost |= answer.status == 504
            raise _RetryError(error)
        raise error

    async def _exchange(self, *, renew: bool) -> Answer:
        if not await self._host.resumed(self._environment.id, self._until):
            pause = self._host.paused(self._environment.id)
            raise self._service.error(
                f"{self._service.name} asks this connection to wait for {pause:.0f} s more, and {self._rest()}",
                retry_after=pause,
            )
        self._token = await self._environment.token(self._scope, renew=renew)
        request = self._request
        headers = {**telemetry.headers(), **request.headers, "authorization": f"Bearer {self._token}"}
        timeout = httpx.Timeout(request.read_timeout, connect=CONNECT_TIMEOUT, pool=None)
        try:
            async with self._host.gate:
                self.sent, self.status = self.sent + 1, None
                response = await self._host.client.request(
                    request.method, request.url, headers=headers, content=request.body, timeout=timeout
                )
        except httpx.HTTPError as error:
            self._failed(error)
        names = {name.lower(): value for name, value in response.headers.items()}
        self.status = response.status_code
        return Answer(response.status_code, names, response.content)

    def _failed(self, error: httpx.HTTPError) -> NoReturn:
        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        text = f"{self._service.name} cannot be reached" if unsent else f"{self._service.name} did not answer"
        found = self._service.error(
            self._clean(
                f"{text}: {self._request.method} failed with {type(error).__name__}: {error}".rstrip(": ")
            )
        )
        hopeless = "CERTIFICATE_VERIFY_FAILED" in str(error)
        if not hopeless and (unsent or (self._request.idempotent and isinstance(error, httpx.TransportError))):
            self._last = found
            self._lost |= not unsent
            raise _RetryError(found) from error
        raise found from error

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Seconds before the next attempt."""
        if self._last is not None and self._last.retry_after:  # 0 s would be a storm of requests
            return self._last.retry_after
        growing = tenacity.wait_exponential_jitter(multiplier=FIRST_WAIT, max=LONGEST_WAIT, jitter=FIRST_WAIT)
        return growing(state)

    def _refusal(self, answer: Answer) -> ServiceError:
        return refusal(self._service, answer, self._clean)

    def _too_long(self, error: ServiceError) -> ServiceError:
        """The last refusal; when it asks for more time than there is, with words that say so."""
        wait = error.retry_after
        if wait is not None and time.monotonic() + wait >= self._until:
            error.args = (f"{error.message}; it asks to wait for {wait:.0f} s, and {self._rest()}",)
        return error

    def _rest(self) -> str:
        left = max(self._until - time.monotonic(), 0.0)
        return f"this call has {left:.0f} s left"

    def _out_of_time(self) -> ServiceError:
        text = f"{self._service.name} did not answer before the invocation's time was up"
        last = self._last
        if last is None:
            return self._service.error(f"{text}.")
        return self._service.error(
            f"{text}; its last answer was: {last.message}",
            service_code=last.service_code,
            service_message=last.service_message,
            status=last.status,
            request_id=last.request_id,
            retry_after=last.retry_after,
        )

    def _clean(self, text: str) -> str:
        """The text without the token, should a service or a proxy have repeated it."""
        return text.replace(self._token, "[redacted]") if self._token else text


def refusal(service: Service, answer: Answer, tidy: Callable[[str], str] = str) -> ServiceError:
    """`<code>: <message>`, or `HTTP <status>: <body>`, and by what id the request is found."""
    code, message = _own_words(answer)
    message = None if message is None else tidy(message)[:_BODY_LIMIT]
    if message is not None:
        text = f"{code}: {message}" if code else message
    elif 300 <= answer.status < 400:
        text = f"HTTP {answer.status}: redirects are not followed"
    else:
        text = f"HTTP {answer.status}: {tidy(answer.text).strip()[:_BODY_LIMIT] or 'no text'}"
    request_id = answer.headers.get(service.request_id_header)
    details = [f"HTTP {answer.status}"] if message is not None else []
    details += [f"request id {request_id}"] if request_id else []
    return service.error(
        text + (f" ({', '.join(details)})" if details else ""),
        service_code=code,
        service_message=message,
        status=answer.status,
        request_id=request_id,
        retry_after=retry_after(answer.headers.get("retry-after")),
    )


def retry_after(value: str | None) -> float | None:
    """Seconds from now: the header holds seconds or a date. None when it holds neither."""
    if not value:
        return None
    value = value.strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def _own_words(answer: Answer) -> tuple[str | None, str | None]:
    """The service's code and message: `{"error": {"code", "message"}}`, or the inner object alone."""
    try:
        body = answer.json()
    except ValueError:
        return None, None
    found = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("message"), str):
        return None, None
    code = found.get("code")
    return (str(code) if code not in (None, "") else None), found["message"]
