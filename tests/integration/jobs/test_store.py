"""The store's contract, against memory and against a real Azurite: the same answers from both."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from infra.local.azurite import Azurite
from shared.errors import LostLeaseError
from shared.jobs import keys, model
from shared.jobs import store as store_module
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.store import Change, JobStore, TableJobStore
from shared.jobs.testing import MemoryJobStore
from shared.storage import Storage
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration


@pytest.fixture(params=["memory", "azurite"])
def store(request: pytest.FixtureRequest) -> JobStore:
    if request.param == "memory":
        return MemoryJobStore()
    azurite: Azurite = request.getfixturevalue("azurite")
    return TableJobStore(Storage(azurite.connection_string))


@pytest.fixture
def flaky(azurite: Azurite) -> tuple[TableJobStore, list[Any]]:
    """A store on Azurite, and the list of what goes wrong with its next requests.

    An entry is called with the real sender and gives the answer, or raises, on the way there or back.
    """
    storage = Storage(azurite.connection_string)
    faults: list[Any] = []
    session = storage._transport.session
    assert session is not None
    send = session.request

    def request(*args: Any, **kwargs: Any) -> Any:
        return faults.pop(0)(lambda: send(*args, **kwargs)) if faults else send(*args, **kwargs)

    session.request = request
    return TableJobStore(storage), faults


def test_what_is_created_is_found_with_its_input(store: JobStore) -> None:
    job = store.create(a_job(), b"sealed")
    assert job.etag
    assert store.get(job.job_id) == job
    opened = store.open(job.job_id)
    assert opened is not None
    assert (opened.job, opened.sealed) == (job, b"sealed")
    assert store.with_logs(job.job_id) == (job, [])


def test_an_unknown_job_is_none_everywhere(store: JobStore) -> None:
    job_id = keys.new_job_id()
    assert (store.get(job_id), store.open(job_id), store.with_logs(job_id)) == (None, None, None)


def test_the_same_job_cannot_be_created_twice(store: JobStore) -> None:
    job = store.create(a_job(), b"one")
    with pytest.raises(LostLeaseError):
        store.create(replace(job, owner="other"), b"two")
    opened = store.open(job.job_id)
    assert opened is not None
    assert opened.sealed == b"one"


def test_a_write_needs_the_version_that_was_read(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    first = store.write(model.claim(job, model.utc_now(), 60_000))
    with pytest.raises(LostLeaseError):
        store.write(model.claim(job, model.utc_now(), 60_000))
    assert store.get(job.job_id) == first


def test_one_of_many_claims_wins(store: JobStore) -> None:
    job = store.create(a_job(), b"x")

    def claim(_: int) -> bool:
        try:
            store.write(model.claim(job, model.utc_now(), 60_000))
        except LostLeaseError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_the_end_is_one_transaction_with_logs_and_without_input(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    ring = LogRing()
    for number in range(120):
        ring.append(Level.INFO, f"line {number} 漢", model.utc_now())
    body = StoredBody(32 * 1024, inline=bytes(range(256)) * 128)
    ended = replace(model.complete(running, model.utc_now(), body), log_lines=ring.lines)
    chunks = tuple(ring.take_dirty())
    stored = store.write(ended, Change(chunks, drop_input=True))
    assert store.get(job.job_id) == stored
    found = store.with_logs(job.job_id)
    assert found is not None
    assert [line.message for line in found[1]] == [f"line {number} 漢" for number in range(120)]
    opened = store.open(job.job_id)
    assert opened is not None
    assert opened.sealed is None


def test_a_lost_end_leaves_nothing_of_itself(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    taken = store.write(model.requeue(running))
    ring = LogRing()
    ring.append(Level.INFO, "from the loser", model.utc_now())
    with pytest.raises(LostLeaseError):
        store.write(
            model.fail(running, model.utc_now(), ErrorCode.TIMEOUT, "late"),
            Change(tuple(ring.take_dirty()), drop_input=True),
        )
    assert store.with_logs(job.job_id) == (taken, [])
    opened = store.open(job.job_id)
    assert opened is not None
    assert opened.sealed == b"x"


def test_a_replaced_row_forgets_what_is_gone(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    assert running.lease_until is not None
    again = store.write(model.requeue(running))
    found = store.get(job.job_id)
    assert found is not None
    assert found.lease_until is None
    assert found == again


def test_the_fullest_possible_end_fits_into_one_transaction(store: JobStore) -> None:
    """Every chunk of the ring full, of characters that JSON escapes, beside the largest result and error."""
    job = store.create(a_job(), b"\xff" * 32 * 1024)
    ring = LogRing()
    for text in ("漢" * 2000, "🎈" * 2000, "\x01" * 5000, '"\\' * 3000) * 60:
        ring.append(Level.INFO, text, model.utc_now())
    ended = replace(
        model.complete(job, model.utc_now(), StoredBody(32 * 1024, inline=b"\xff" * 32 * 1024)),
        error="漢" * 8000,
    )
    store.write(ended, Change(tuple(ring.take_dirty()), drop_input=True))
    found = store.with_logs(job.job_id)
    assert found is not None
    assert len(found[1]) == 200


def test_blobs_come_and_go(store: JobStore) -> None:
    name = f"{keys.new_job_id()}/in"
    assert store.get_blob(name) is None
    store.put_blob(name, b"1")
    store.put_blob(name, b"22")
    assert store.get_blob(name) == b"22"
    store.delete_blob(name)
    store.delete_blob(name)
    assert store.get_blob(name) is None


def test_a_large_input_is_stored_as_a_blob(store: JobStore) -> None:
    job = store.create(a_job(input_at=model.INPUT_IN_BLOB), b"sealed" * 10_000)
    opened = store.open(job.job_id)
    assert opened is not None
    assert opened.sealed is None
    assert store.get_blob(keys.input_blob(job.job_id)) == b"sealed" * 10_000


def test_a_message_is_base64_as_the_host_expects(azurite: Azurite) -> None:
    from azure.storage.queue import QueueClient

    storage = Storage(azurite.connection_string)
    TableJobStore(storage).send("some-id")
    raw = QueueClient.from_connection_string(azurite.connection_string, store_module.QUEUE)
    bodies = [message.content for message in raw.receive_messages(messages_per_page=32)]
    import base64

    assert json.dumps({"jobId": "some-id"}) in [base64.b64decode(body).decode() for body in bodies]


def cut_before(send: Callable[[], Any]) -> Any:
    import requests

    raise requests.exceptions.ConnectionError("cut before")


def cut_after(send: Callable[[], Any]) -> Any:
    import requests

    send()
    raise requests.exceptions.ConnectionError("cut after")


@pytest.mark.parametrize("cut", [cut_before, cut_after])
@pytest.mark.parametrize("times", [1, 2])
def test_a_write_whose_request_or_answer_is_lost_goes_through_once(
    flaky: tuple[TableJobStore, list[Any]], cut: Any, times: int
) -> None:
    """The nonce tells a write that was carried out from one that another writer was quicker with."""
    store, faults = flaky
    faults[:] = [cut] * times
    job = store.create(a_job(), b"x")
    faults[:] = [cut] * times
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    faults[:] = [cut] * times
    ring = LogRing()
    ring.append(Level.INFO, "once", model.utc_now())
    ended = model.complete(running, model.utc_now(), StoredBody(2, inline=b"{}"))
    stored = store.write(ended, Change(tuple(ring.take_dirty()), drop_input=True))
    assert stored.status is Status.COMPLETED
    found = store.with_logs(job.job_id)
    assert found is not None
    assert found[0] == stored
    assert [line.message for line in found[1]] == ["once"]


def test_after_a_lost_answer_another_writers_row_is_not_taken_for_ones_own(
    flaky: tuple[TableJobStore, list[Any]], azurite: Azurite
) -> None:
    store, faults = flaky
    other = TableJobStore(Storage(azurite.connection_string))
    job: Job = store.create(a_job(), b"x")

    def overtaken(send: Callable[[], Any]) -> Any:
        other.write(model.fail(job, model.utc_now(), ErrorCode.CANCELLED, "other"))
        return cut_before(send)

    faults[:] = [overtaken]
    with pytest.raises(LostLeaseError):
        store.write(model.claim(job, model.utc_now(), 60_000))


def test_storage_is_made_when_first_missed(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "QUEUE", "CONTAINER"):
        monkeypatch.setattr(store_module, name, f"fresh{name.lower()}")
    store = TableJobStore(Storage(azurite.connection_string))
    job_id = keys.new_job_id()
    assert store.get(job_id) is None
    assert store.open(job_id) is None
    job = store.create(a_job(input_at=model.INPUT_IN_BLOB), b"sealed")
    store.send(job.job_id)
    assert store.get(job.job_id) == job
