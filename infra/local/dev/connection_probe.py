"""Does a connection work? Signs in and asks WhoAmI, by the app's own code, within a time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.apis import bridge
from shared.apis.connections.credentials import TokenSource
from shared.apis.connections.environments import Slot
from shared.apis.connections.model import Connection
from shared.apis.connections.reasons import Kind, Reason, reason_of
from shared.apis.dataverse import DataverseApi
from shared.apis.http import Hosts
from shared.errors import ServiceError, ToolboxError


@dataclass(frozen=True)
class Outcome:
    """Ids are of the environment; times are seconds. `reason`: None when all went well."""

    seconds: float
    signed_in: bool = False
    token_seconds: float | None = None
    user_id: str = ""
    organization_id: str = ""
    business_unit_id: str = ""
    reason: Reason | None = None

    @property
    def ok(self) -> bool:
        return self.reason is None

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"ok": self.ok, "signedIn": self.signed_in, "seconds": round(self.seconds, 2)}
        if self.token_seconds is not None:
            shown["tokenExpiresInSeconds"] = int(self.token_seconds)
        if self.reason is not None:
            return {**shown, "reason": str(self.reason.kind), "error": self.reason.text}
        return {
            **shown,
            "userId": self.user_id,
            "organizationId": self.organization_id,
            "businessUnitId": self.business_unit_id,
        }


def probe(connection: Connection, environ: Mapping[str, str], timeout: float) -> Outcome:
    """`environ`: the settings that secrets are read from; `timeout`: seconds for all of it."""
    began = time.monotonic()
    deadline = began + timeout
    source = TokenSource(connection, environ)
    scope = f"{connection.url}/.default"
    if (reason := _sign_in(source, scope, timeout)) is not None:
        return Outcome(time.monotonic() - began, reason=reason)
    ends = source.expires_on(scope)
    lasts = None if ends is None else max(ends - time.time(), 0.0)
    hosts = Hosts()
    api = DataverseApi(lambda _target: Slot(connection, source, deadline), hosts)
    try:
        who = api.execute({"operationName": "WhoAmI", "operationType": "function"})
        user, organization, unit = (str(who[name]) for name in ("UserId", "OrganizationId", "BusinessUnitId"))
    except KeyError:
        reason = Reason(Kind.URL, "what answers at this url is no Dataverse environment")
        return Outcome(time.monotonic() - began, True, lasts, reason=reason)
    except ToolboxError as error:
        return Outcome(time.monotonic() - began, True, lasts, reason=_of_request(error))
    finally:
        bridge.call(hosts.close)
    return Outcome(time.monotonic() - began, True, lasts, user, organization, unit)


def _sign_in(source: TokenSource, scope: str, timeout: float) -> Reason | None:
    """On a thread of its own, which nothing waits for when the time is up: a library may not keep to it."""
    done: queue.SimpleQueue[Reason | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            source.get(scope)
        except Exception as error:
            done.put(reason_of(error))
        else:
            done.put(None)

    threading.Thread(target=work, name="sign-in", daemon=True).start()
    try:
        return done.get(timeout=timeout)
    except queue.Empty:
        return Reason(Kind.TIMEOUT, f"the sign-in service did not answer within {timeout:g} s")


def _of_request(error: ToolboxError) -> Reason:
    if isinstance(error, ServiceError):
        return reason_of(error)
    return Reason(Kind.URL, error.message.rstrip("."))
