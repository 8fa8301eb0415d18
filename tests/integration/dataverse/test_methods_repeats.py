"""What is sent again, how long is waited for, and who waits, on the wire to the stand-in."""

from __future__ import annotations

import time
import uuid
from typing import Any, Final

import pytest

from infra.local.dataverse.faults import Fault, Kind
from shared.apis import dataverseAPI
from shared.apis.environment import use_resolver
from shared.errors import DataverseError
from tests.integration.dataverse.methods_bench import Bench, connections_to, environments_of

ACCOUNTS: Final = "^/api/data/v9.2/accounts"
QUERY: Final = "accounts?$select=name&$top=1"


def _statuses(invocation: Bench) -> list[int | None]:
    return [request.status for request in invocation.asked()]


def _create(name: str) -> Any:
    return dataverseAPI.create("account", {"name": name})


@pytest.mark.parametrize(
    ("kind", "status"), [(Kind.THROTTLED, 429), (Kind.UNAVAILABLE, 503)], ids=["429", "503"]
)
def test_busy_is_waited_out_as_long_as_it_asks(invocation: Bench, kind: Kind, status: int) -> None:
    invocation.dataverse.arm(Fault(kind, path=ACCOUNTS, nth=(1, 2), retry_after="0.3"))
    invocation.dataverse.clear_requests()
    began = time.monotonic()
    made = invocation.run(lambda: _create(f"After {status}"))
    assert time.monotonic() - began >= 0.6
    assert _statuses(invocation) == [status, status, 201]
    stored = invocation.place("dev").environment
    assert [one for one in stored.ids("account") if (stored.record("account", one) or {})["name"] == made.name]


@pytest.mark.parametrize("kind", [Kind.GATEWAY_TIMEOUT, Kind.LOST, Kind.RESET])
def test_what_may_have_been_done_is_done_once(invocation: Bench, kind: Kind) -> None:
    environment = invocation.place("dev").environment
    fault = Fault(kind, path=ACCOUNTS, times=1)
    invocation.dataverse.arm(fault)
    assert invocation.run(lambda: dataverseAPI.queryData(QUERY)).value
    before = len(environment.ids("account"))
    invocation.dataverse.arm(fault)
    with pytest.raises(DataverseError):
        invocation.run(lambda: _create("Once"))
    assert len(environment.ids("account")) == before + (kind is Kind.LOST)


def test_a_delete_whose_answer_was_lost_was_a_delete(invocation: Bench) -> None:
    place = invocation.place("dev")
    row = place.new_account()
    invocation.dataverse.arm(Fault(Kind.LOST, path=ACCOUNTS, method="DELETE", times=1))
    invocation.dataverse.clear_requests()
    assert invocation.run(lambda: dataverseAPI.delete("account", row)) is None
    assert _statuses(invocation) == [None, 404]


@pytest.fixture
def own(invocation: Bench) -> str:
    """The name of a connection to dev that no other test has: what holds its calls holds no test's."""
    name = f"dev-{uuid.uuid4()}"
    own = {**connections_to(invocation.dataverse)[0], "id": name, "name": name}
    invocation.environments = environments_of(invocation.dataverse, [own])
    use_resolver(invocation.environments.resolve)
    invocation.dataverse.arm(Fault(Kind.THROTTLED, path=ACCOUNTS, times=1, retry_after="3600"))
    return name


def _query() -> Any:
    return dataverseAPI.queryData(QUERY)


def test_a_wait_beyond_the_deadline_ends_the_call_at_once(invocation: Bench, own: str) -> None:
    invocation.dataverse.clear_requests()
    began = time.monotonic()
    words = r"0x80072322: .*asks to wait for 3600 s, and this call has \d+ s left"
    with pytest.raises(DataverseError, match=words) as caught:
        invocation.run(_query, own, timeout_ms=10_000)
    assert time.monotonic() - began < 5
    assert (caught.value.status, caught.value.retry_after) == (429, 3600)
    assert _statuses(invocation) == [429]


def test_one_connections_limit_holds_its_own_calls_only(invocation: Bench, own: str) -> None:
    with pytest.raises(DataverseError, match="0x80072322"):
        invocation.run(_query, own, timeout_ms=10_000)
    invocation.dataverse.clear_requests()
    with pytest.raises(DataverseError, match=r"asks this connection to wait for (59|60) s more"):
        invocation.run(_query, own, timeout_ms=10_000)
    assert _statuses(invocation) == []
    assert invocation.run(_query, "dev", timeout_ms=10_000).value
    assert _statuses(invocation) == [200]
