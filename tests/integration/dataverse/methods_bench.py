"""Every method of an API, called as a tool calls it, against the stand-in over https.

Each case runs twice in an invocation with two connections: awaited, under the original's name, in the primary
environment; and blocking, on a thread, in snake case, in the `secondary` one with additional headers. Nothing
may reach the other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.stand_in import TENANT, EnvironmentSpec, StandIn
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.naming import to_snake
from shared.tool.context import Context, running
from shared.tool.spec import ExecutionMode, Mode
from tests.integration.dataverse.methods_cases import APPS, NAMES, ROOT, Case, Place, Plan, Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.dataverse.requests_log import Logged
    from shared.tool.spec import JsonObject

#: How the client asks for what it keeps of a table.
LOOKUP: Final = "LogicalName,EntitySetName,PrimaryIdAttribute"
ALWAYS: Final = {"odata-version": "4.0", "odata-maxversion": "4.0"}
#: What the second run of a case adds.
ADDITIONAL: Final = {"MSCRMCallerID": "00000000-0000-0000-0000-00000000c0de", "x-ms-sample": "a, b"}
#: Accounts that an environment starts with.
ACCOUNTS: Final = {"dev": 12, "uat": 12}


class Bench:
    """An invocation with two connections to the stand-in: `primary` is dev, `secondary` is uat."""

    def __init__(self, dataverse: StandIn, environments: Environments) -> None:
        self.dataverse = dataverse
        self.environments = environments

    def place(self, name: str) -> Place:
        return Place(name, self.dataverse.url(name), self.dataverse.environment(name))

    def context(self, *names: str, timeout_ms: int = 30_000) -> Context:
        return Context(
            tool_id="sample", tool_name="sample", invocation_mode=Mode.TWO_WAY,
            execution_mode=ExecutionMode.HEADLESS, correlation_id="mcp-1", timeout_ms=timeout_ms,
            owner="default", connections=self.environments.named(names or NAMES, "default", "sample"),
            deadline=time.monotonic() + timeout_ms / 1000,
        )  # fmt: skip

    def run(self, work: Callable[[], Any], *names: str, timeout_ms: int = 30_000) -> Any:
        """What an awaited `work()` gives in an invocation with the connections of these names."""

        async def main() -> Any:
            context = self.context(*names, timeout_ms=timeout_ms)
            running(lambda: context)
            return await work()

        return asyncio.run(main())

    def check(self, api: Any, case: Case) -> None:
        """Runs a case in both forms."""
        self._check(case, "dev", lambda plan: self.run(lambda: _awaited(getattr(api, case.method), plan)))
        blocking = getattr(api, to_snake(case.method))

        def on_a_thread(plan: Plan) -> Any:
            to = {"connection_target": "secondary", "additional_headers": ADDITIONAL} if plan.network else {}
            return self.run(lambda: asyncio.to_thread(_waited_for, blocking, plan, to))

        self._check(case, "uat", on_a_thread, ADDITIONAL)

    def _check(
        self, case: Case, name: str, run: Callable[[Plan], Any], additional: Mapping[str, str] | None = None
    ) -> None:
        plan = case.plan(self.place(name))
        self.dataverse.clear_requests()
        found = run(plan)
        asked = self.asked()
        assert {request.environment for request in asked} <= {name}
        assert {request.app for request in asked} <= {APPS[name].client_id}
        assert [one.method for one in asked] == [one.method for one in plan.sent]
        for request, sent in zip(asked, plan.sent, strict=True):
            _arrived(request, sent, additional or {})
        if callable(plan.result):
            plan.result(found)
        else:
            assert found == plan.result

    def asked(self) -> list[Logged]:
        """The requests to the Web API, without those for entity sets' names."""
        found = [one for one in self.dataverse.requests() if one.path.startswith(ROOT)]
        return [one for one in found if one.query.get("$select") != LOOKUP]


def _arrived(request: Logged, sent: Sent, additional: Mapping[str, str]) -> None:
    if callable(sent.target):
        sent.target(target_of(request))
    else:
        assert target_of(request) == sent.target
    if callable(sent.body):
        sent.body(request.body)
    else:
        assert (request.json() if request.body else None) == sent.body
    media = request.headers.get("content-type")
    assert (media and media.partition(";")[0]) == (sent.media if request.body else None)
    wanted: dict[str, str | None] = {"accept": "application/json", **ALWAYS, "mscrmcallerid": None}
    wanted |= dict.fromkeys(("prefer", "if-match", "if-none-match", "consistency"))
    wanted |= {"mscrm.solutionuniquename": None, "mscrm.mergelabels": None}
    wanted |= {header.lower(): value for header, value in additional.items()} | dict(sent.headers)
    assert {header: request.headers.get(header) for header in wanted} == wanted
    assert request.status is not None
    assert request.status < 400


async def _awaited(method: Callable[..., Any], plan: Plan) -> Any:
    found = method(*plan.arguments)
    if hasattr(found, "__aiter__"):
        return [row async for row in found]
    return await found if plan.network else found


def _waited_for(method: Callable[..., Any], plan: Plan, to: Mapping[str, Any]) -> Any:
    found = method(*plan.arguments, **to)
    return list(found) if hasattr(found, "__aiter__") else found


def target_of(request: Logged) -> str:
    """Path and query below the root, as they were sent."""
    mark = "?" if request.query_string else ""
    return f"{request.path.removeprefix(ROOT)}{mark}{request.query_string}"


def connections_to(dataverse: StandIn) -> list[JsonObject]:
    """The two connections, as the setting has them."""
    found: list[JsonObject] = []
    for name in NAMES:
        auth = {"type": "clientSecret", "tenantId": TENANT, "clientId": APPS[name].client_id}
        auth |= {"secretSetting": f"SECRET_OF_{name.upper()}", "authority": dataverse.authority_url}
        found.append(
            {"id": name, "name": name, "url": dataverse.url(name), "auth": auth,
             "powerPlatformUrl": dataverse.power_platform_url}
        )  # fmt: skip
    return found


def settings_for(dataverse: StandIn) -> dict[str, str]:
    """Environment variables: what the connections name, and whom to trust (azure-identity, and the APIs)."""
    secrets = {f"SECRET_OF_{name.upper()}": app.secret for name, app in APPS.items()}
    return {**secrets, "REQUESTS_CA_BUNDLE": str(dataverse.ca_file), "SSL_CERT_FILE": str(dataverse.ca_file)}


@contextmanager
def started(accounts: Mapping[str, int] = ACCOUNTS) -> Iterator[StandIn]:
    """A stand-in with both environments, each for its own app."""
    specs = [EnvironmentSpec(name, apps=(APPS[name].client_id,), accounts=accounts[name]) for name in NAMES]
    with StandIn.start(specs, list(APPS.values())) as dataverse:
        yield dataverse


def environments_of(dataverse: StandIn, extra: Iterable[JsonObject] = ()) -> Environments:
    return Environments(ConnectionBook(json.dumps([*connections_to(dataverse), *extra])))
