"""Storage drops idle connections, and is busy at times: a request is repeated soon, and goes through.

The clients' own settings would wait 15 s before a queue's or a blob's first repetition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from azure.core.exceptions import ServiceResponseError

from infra.local.azurite import Azurite
from shared.jobs import keys, model
from shared.jobs.store import KeyRow
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from tests.support.fault_plan import LOSE_ANSWER, RESET, Fault, refuse
from tests.support.fault_proxy import FaultProxy
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration

#: Seconds: far below the 15 of the clients' own first pause, and enough for a busy machine.
SOON: Final = 6.0
NAME: Final = "idle/in"
FILE: Final = "idle/artifact-1/a.txt"
#: What is asked, and the request that it makes.
ASKED: Final[dict[str, tuple[str, Callable[[TableJobStore], Any]]]] = {
    "send": ("queue POST", lambda store: store.send(keys.new_job_id())),
    "put a body": ("blob PUT", lambda store: store.put_blob(NAME, b"data")),
    "put a file": ("blob PUT .*/artifact-", lambda store: store.put_artifact(FILE, b"data", "text/plain")),
    "put a stream": (
        "blob PUT .*/artifact-",
        lambda store: store.put_artifact(FILE, iter([b"da", b"ta"]), "text/plain"),
    ),
    "get a file": ("blob GET", lambda store: store.get_artifact(FILE)),
    "get a body": ("blob GET", lambda store: store.get_blob(NAME)),
    "list bodies": ("blob GET", lambda store: store.blob_page("")),
    "make a job": ("table POST", lambda store: store.create(a_job(), b"sealed")),
    "read a job": ("table GET", lambda store: store.with_logs(keys.new_job_id())),
    "take a key": ("table POST", lambda store: store.take_key(KeyRow(keys.new_job_id(), "job", "digest"))),
    "remember": ("table", lambda store: store.put_state("idle", model.utc_now().isoformat())),
}


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Of these tests alone: an app that shares the queue would take the messages."""
    with Azurite.start(tmp_path_factory.mktemp("storage"), free_ports=True) as own:
        yield own


@pytest.fixture(scope="module")
def proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    with FaultProxy(azurite.ports) as running:
        yield running


@pytest.fixture(scope="module")
def store(proxy: FaultProxy) -> Iterator[TableJobStore]:
    storage = Storage(proxy.connection_string)
    made = TableJobStore(storage)
    for _, ask in ASKED.values():
        ask(made)  # table, queue and container are made
    yield made
    session = storage._transport.session
    assert session is not None
    session.close()


@pytest.fixture(autouse=True)
def disarmed(proxy: FaultProxy) -> Iterator[None]:
    yield
    proxy.disarm()


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("fault", [RESET, LOSE_ANSWER, refuse(503, None)], ids=["reset", "lost", "busy"])
def test_one_fault_is_made_good_within_seconds(
    store: TableJobStore, proxy: FaultProxy, asked: str, fault: Fault
) -> None:
    request, ask = ASKED[asked]
    rule = proxy.arm(fault, request, nth=1)
    began = time.monotonic()
    ask(store)
    assert time.monotonic() - began < SOON
    assert rule.fired == 1


def test_a_key_whose_answer_was_lost_is_ones_own(store: TableJobStore, proxy: FaultProxy) -> None:
    row = KeyRow(keys.new_job_id(), "own", "digest")
    rule = proxy.arm(LOSE_ANSWER, "table POST", nth=1)
    assert store.take_key(row) is None
    assert rule.fired == 1
    assert store.take_key(KeyRow(row.key, "other", "digest")) == row


def test_storage_that_stays_away_is_told(store: TableJobStore, proxy: FaultProxy) -> None:
    proxy.arm(RESET, "table POST", probability=1)
    with pytest.raises(ServiceResponseError):
        store.take_key(KeyRow(keys.new_job_id(), "own", "digest"))
