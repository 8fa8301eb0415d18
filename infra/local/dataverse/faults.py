"""Faults on demand: what goes wrong, at which request."""

from __future__ import annotations

import random
import re
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from infra.local.dataverse.call import Answer
from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.values import new_guid

_LIMIT_TEXT: Final = "Number of requests exceeded the limit of 6000 over time window of 300 seconds."
_GATEWAY_PAGE: Final = (
    "<html><head><title>504 Gateway Time-out</title></head><body>504 Gateway Time-out</body></html>"
)


class Kind(StrEnum):
    """What goes wrong."""

    THROTTLED = "throttled"  # 429 with Retry-After
    UNAVAILABLE = "unavailable"  # 503, with Retry-After if one is given
    GATEWAY_TIMEOUT = "gateway-timeout"  # 504 with a page, as a gateway sends it
    ERROR = "error"  # `status`, `code` and `message`
    RESET = "reset"  # the connection ends before the request is looked at
    LOST = "lost"  # the request is done, and the connection ends instead of the answer
    EXPIRED = "expired"  # all tokens expire; then the request is looked at
    SLOW = "slow"  # `delay` seconds, then as ever


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and when it strikes.

    It looks at requests whose method and environment fit and whose path with query has a match of the pattern
    `path` (without one: the Web API's only). Of these, counted from 1 since it was armed, it strikes the
    numbers `nth`, or each one with `probability` (of a generator with `seed`), or every one; `times` at most.
    """

    kind: Kind
    path: str = r"^/api/data/"
    method: str | None = None
    environment: str | None = None
    nth: tuple[int, ...] = ()
    probability: float | None = None
    seed: int = 0
    times: int | None = None
    retry_after: str | None = None  # seconds or a date; THROTTLED says 1 without it
    delay: float = 0.0
    status: int = 500
    code: str = "0x80040216"
    message: str = "An unexpected error occurred."

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Fault:
        """A fault as the control API takes it. Raises ValueError, TypeError."""
        fields = dict(value)
        if "retry_after" in fields:
            fields["retry_after"] = str(fields["retry_after"])
        nth = fields.get("nth", ())
        fields["nth"] = (nth,) if isinstance(nth, int) else tuple(nth)
        try:
            re.compile(fields.get("path", ""))
        except re.error as error:
            raise ValueError(f"path: {error}") from None
        return cls(**{**fields, "kind": Kind(fields["kind"])})


@dataclass(slots=True)
class Armed:
    """A fault in force: how many requests it looked at, and how many it struck."""

    fault: Fault
    seen: int = 0
    struck: int = 0
    random: random.Random = field(default_factory=random.Random)

    def strikes(self, method: str, target: str, environment: str) -> bool:
        """Whether it strikes this request; to be asked once a request."""
        fault = self.fault
        if fault.method not in {None, method} or fault.environment not in {None, environment}:
            return False
        if re.search(fault.path, target) is None:
            return False
        self.seen += 1
        if fault.times is not None and self.struck >= fault.times:
            return False
        if fault.nth:
            hit = self.seen in fault.nth
        else:
            hit = fault.probability is None or self.random.random() < fault.probability
        self.struck += hit
        return hit


class Faults:
    """The faults in force; the first that strikes a request counts. May be used from any thread."""

    def __init__(self) -> None:
        self._armed: list[Armed] = []
        self._lock = threading.Lock()

    def arm(self, fault: Fault) -> Armed:
        """Put a fault in force."""
        armed = Armed(fault, random=random.Random(fault.seed))  # noqa: S311 - to be the same in every run
        with self._lock:
            self._armed.append(armed)
        return armed

    def clear(self) -> None:
        """Lift all faults."""
        with self._lock:
            self._armed.clear()

    def pick(self, method: str, target: str, environment: str) -> Fault | None:
        """The fault that strikes a request."""
        with self._lock:
            struck = [one.fault for one in self._armed if one.strikes(method, target, environment)]
        return struck[0] if struck else None

    def report(self) -> list[dict[str, Any]]:
        """Each fault with its counts."""
        with self._lock:
            return [
                {"kind": one.fault.kind.value, "seen": one.seen, "struck": one.struck} for one in self._armed
            ]


def answer_of(fault: Fault) -> Answer | None:
    """The answer that a fault puts in place of the real one; None when it puts none."""
    wait = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
    match fault.kind:
        case Kind.THROTTLED:
            error = ApiError(429, "0x80072322", _LIMIT_TEXT, {"Retry-After": "1"} | wait)
        case Kind.UNAVAILABLE:
            error = ApiError(503, "0x80044a07", "The service is temporarily unavailable.", wait)
        case Kind.ERROR:
            error = ApiError(fault.status, fault.code, fault.message, wait)
        case Kind.GATEWAY_TIMEOUT:
            return Answer(504, _GATEWAY_PAGE, media="text/html")
        case _:
            return None
    ids = {"x-ms-service-request-id": new_guid(), "REQ_ID": new_guid()}
    return Answer(error.status, error.body(), error.headers | ids)
