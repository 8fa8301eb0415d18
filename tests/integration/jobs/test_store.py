"""The store's contract, against memory and against a real Azurite: the same answers from both."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from azure.storage.queue import QueueClient

from infra.local.azurite import Azurite
from shared.errors import ArtifactError, InputError, LostLeaseError
from shared.jobs import keys, model, table_parts
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.store import Change, JobStore, KeyRow, Query, UpkeepStore
from shared.jobs.table_store import TableJobStore
from shared.jobs.testing import MemoryJobStore
from shared.jobs.timings import Ending
from shared.storage import Storage
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration


@pytest.fixture(params=["memory", "azurite"])
def store(request: pytest.FixtureRequest) -> UpkeepStore:
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


def test_what_is_told_of_attempts_survives_and_is_scanned(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    first = store.write(model.claim(job, model.utc_now(), 60_000))
    lost = store.write(model.expire(first, model.utc_now()))
    second = store.write(model.claim(lost, model.utc_now(), 60_000))
    assert [(one.attempt, one.outcome) for one in second.attempts] == [(1, Ending.LOST), (2, None)]
    assert store.get(job.job_id) == second
    found = store.scan(Query(start=keys.partition_key(job.job_id)), 1).jobs
    assert [one.attempts for one in found] == [second.attempts]
    ended = store.write(model.complete(second, model.utc_now(), StoredBody(2, inline=b"{}")))
    stored = store.get(job.job_id)
    assert stored is not None
    assert stored.attempts == ended.attempts


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


def test_an_end_is_written_although_the_input_is_gone_already(store: JobStore) -> None:
    """Nothing is left to be erased: that must not keep the job from ending for ever."""
    job = store.create(a_job(), b"x")
    erased = store.write(job, Change(drop_input=True))
    assert erased.input_at == model.INPUT_IN_ROW
    ended = model.fail(erased, model.utc_now(), ErrorCode.TOOL_ERROR, "no input")
    stored = store.write(ended, Change(drop_input=True))
    assert store.get(job.job_id) == stored
    with pytest.raises(LostLeaseError):
        store.write(ended, Change(drop_input=True))


def test_a_lost_end_leaves_nothing_of_itself(store: JobStore) -> None:
    job = store.create(a_job(), b"x")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    taken = store.write(model.requeue(running, model.utc_now()))
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
    again = store.write(model.requeue(running, model.utc_now()))
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


def test_a_message_is_base64_as_the_host_expects(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    import base64

    name = f"jobs-{keys.new_job_id()}"
    monkeypatch.setattr(table_parts, "QUEUE", name)
    TableJobStore(Storage(azurite.connection_string)).send("some-id")
    raw = QueueClient.from_connection_string(azurite.connection_string, name)
    (body,) = [message.content for message in raw.receive_messages()]
    assert json.loads(base64.b64decode(body)) == {"jobId": "some-id"}


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
        monkeypatch.setattr(table_parts, name, f"fresh{name.lower()}")
    store = TableJobStore(Storage(azurite.connection_string))
    job_id = keys.new_job_id()
    assert store.get(job_id) is None
    assert store.open(job_id) is None
    job = store.create(a_job(input_at=model.INPUT_IN_BLOB), b"sealed")
    store.send(job.job_id)
    assert store.get(job.job_id) == job


# Ranges, keys, files: what lists, the reaper and idempotency need.


def in_order(store: JobStore, query: Query, limit: int = 3) -> list[str]:
    """The ids of every page, one after the other."""
    found: list[str] = []
    token = None
    for _ in range(100):
        page = store.scan(query, limit, token)
        assert len(page.jobs) <= limit
        found += [job.job_id for job in page.jobs]
        token = page.token
        if token is None:
            return found
    raise AssertionError("the scan does not end")


def test_a_scan_gives_every_job_of_its_range_once_and_newest_first(store: JobStore) -> None:
    base = 2_000_000_000_000
    owner = f"owner-{keys.new_job_id()}"
    ids = [keys.new_job_id(base + step) for step in range(8)]
    for number, job_id in enumerate(ids):
        store.create(
            a_job(job_id=job_id, owner=owner if number % 2 else "other", tool_name=f"t{number % 4}"), b"sealed"
        )
    everything = Query(start=keys.first_partition(base + 7), owner=owner)
    assert in_order(store, everything) == [ids[7], ids[5], ids[3], ids[1]]
    assert in_order(store, everything, limit=100) == [ids[7], ids[5], ids[3], ids[1]]
    assert in_order(store, replace(everything, tool_name="t3")) == [ids[7], ids[3]]
    assert in_order(store, replace(everything, start=keys.first_partition(base + 5))) == [
        ids[5],
        ids[3],
        ids[1],
    ]
    assert in_order(store, replace(everything, before=keys.partition_key(ids[3]))) == [ids[7], ids[5]]


def test_a_token_that_no_page_gave_is_refused(azurite: Azurite) -> None:
    store = TableJobStore(Storage(azurite.connection_string))
    for token in ("", "x", "[]", '{"PartitionKey": "x"}'):
        with pytest.raises(InputError):
            store.scan(Query(), 1, token)


def test_a_scan_sees_what_has_moved(store: JobStore) -> None:
    ids = [keys.new_job_id(2_050_000_000_000 + step) for step in range(3)]
    owner = f"owner-{ids[0]}"
    for job_id in ids:
        store.create(a_job(job_id=job_id, owner=owner), b"sealed")
    everything = Query(owner=owner)
    job = store.get(ids[1])
    assert job is not None
    store.write(model.claim(job, model.utc_now(), 60_000))
    assert in_order(store, replace(everything, statuses=(Status.IN_PROGRESS,))) == [ids[1]]
    assert in_order(store, replace(everything, statuses=(Status.IN_PROGRESS, Status.PENDING))) == ids[::-1]


def test_a_scanned_job_can_be_moved(store: JobStore) -> None:
    made = store.create(a_job(owner="it's me"), b"sealed")
    page = store.scan(Query(start=keys.partition_key(made.job_id), owner="it's me"), 10)
    (found,) = [job for job in page.jobs if job.job_id == made.job_id]
    assert found == made
    moved = store.write(model.claim(found, model.utc_now(), 60_000))
    assert store.get(made.job_id) == moved


def test_what_a_caller_names_is_looked_for_as_it_is(store: JobStore) -> None:
    """Not as a part of the table service's language."""
    owner = f"owner-{keys.new_job_id()}"
    for name in ("plain", "it's", "@owner", "a' or owner ne 'x", "a and b", "漢"):
        job = store.create(a_job(owner=owner, tool_name=name), b"x")
        assert in_order(store, Query(owner=owner, tool_name=name)) == [job.job_id]
    assert len(in_order(store, Query(owner=owner))) == 6
    for name in ("x' or owner eq '" + owner, "@owner @owner", "%", "plain "):
        assert in_order(store, Query(owner=owner, tool_name=name)) == []


def test_a_row_that_cannot_be_read_does_not_hide_the_others(store: JobStore) -> None:
    owner = f"owner-{keys.new_job_id()}"
    jobs = [store.create(a_job(owner=owner), b"x") for _ in range(3)]
    if isinstance(store, MemoryJobStore):
        store.rows[keys.partition_key(jobs[1].job_id), keys.JOB_ROW]["attempt"] = "many"
    else:
        table = store._storage.table("jobs")  # type: ignore[attr-defined]
        row = table.get_entity(keys.partition_key(jobs[1].job_id), keys.JOB_ROW)
        table.update_entity({**row, "attempt": "many"}, mode="replace")
    for limit in (1, 10):
        assert set(in_order(store, Query(owner=owner), limit)) == {jobs[0].job_id, jobs[2].job_id}


def test_a_key_has_one_holder(store: JobStore) -> None:
    key = keys.new_job_id()
    first, second = KeyRow(key, keys.new_job_id(), "f1"), KeyRow(key, keys.new_job_id(), "f2")
    assert store.get_key(key) is None
    assert store.take_key(first) is None
    assert store.take_key(first) is None  # repeated, since the answer was lost
    assert store.take_key(second) == first
    held = store.get_key(key)
    assert held is not None
    store.replace_key(held, second)
    assert store.get_key(key) == second
    with pytest.raises(LostLeaseError):
        store.replace_key(held, first)
    assert store.get_key(key) == second


def test_ten_at_once_agree_on_the_holder(store: JobStore) -> None:
    key = keys.new_job_id()
    rows = [KeyRow(key, keys.new_job_id(), "f") for _ in range(10)]
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(store.take_key, rows))
    holders = [row.job_id for row, other in zip(rows, found, strict=True) if other is None]
    assert len(holders) == 1
    assert {other.job_id for other in found if other is not None} <= set(holders)


def test_what_an_attempt_keeps_is_read_with_the_input_and_goes_with_the_end(store: JobStore) -> None:
    job = store.create(a_job(), b"input")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    for sealed in (b"first", bytes(range(256)) * 190):
        running = store.write(replace(running, kept=True), Change(((0, b""),), kept=sealed))
        opened = store.open(job.job_id)
        assert opened is not None
        assert (opened.job, opened.sealed, opened.kept) == (running, b"input", sealed)
    found = store.with_logs(job.job_id)
    assert found is not None
    assert found[0] == running
    ended = model.complete(running, model.utc_now(), StoredBody(2, inline=b"{}"))
    stored = store.write(ended, Change(drop_input=True, drop_kept=True))
    opened = store.open(job.job_id)
    assert opened is not None
    assert (opened.job, opened.sealed, opened.kept) == (stored, None, None)


def test_nothing_is_kept_by_a_worker_that_lost_its_lease(store: JobStore) -> None:
    job = store.create(a_job(), b"input")
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    store.write(model.renew(running, model.utc_now(), 60_000))
    with pytest.raises(LostLeaseError):
        store.write(replace(running, kept=True), Change(kept=b"late"))
    opened = store.open(job.job_id)
    assert opened is not None
    assert (opened.kept, opened.job.kept) == (None, False)


def test_the_parts_of_one_job_are_removed_together(store: JobStore) -> None:
    job_id, other = keys.new_job_id(), keys.new_job_id()
    store.delete_parts(job_id)
    for name in (keys.part_blob(job_id, 1, 0), keys.part_blob(job_id, 2, 1), keys.part_blob(other, 1, 0)):
        store.put_blob(name, b"part")
    store.put_blob(keys.result_blob(job_id, 1), b"result")
    store.delete_parts(job_id)
    store.delete_parts(job_id)
    assert [store.get_blob(keys.part_blob(job_id, number, number - 1)) for number in (1, 2)] == [None, None]
    assert store.get_blob(keys.part_blob(other, 1, 0)) == b"part"
    assert store.get_blob(keys.result_blob(job_id, 1)) == b"result"


def test_a_purge_leaves_nothing_and_may_be_repeated(store: JobStore) -> None:
    key = keys.new_job_id()
    job = store.create(a_job(idempotency=key), b"sealed")
    store.take_key(KeyRow(key, job.job_id, "f"))
    ring = LogRing()
    ring.append(Level.INFO, "line", model.utc_now())
    store.write(model.claim(job, model.utc_now(), 60_000), Change(tuple(ring.take_dirty())))
    names = [f"{job.job_id}/in", f"{job.job_id}/result-1"]
    for name in names:
        store.put_blob(name, b"body")
    store.put_artifact(keys.artifact_blob(job.job_id, 1, "a.txt"), b"file", "text/plain")
    for _ in range(2):
        store.purge(job)
        assert store.get(job.job_id) is None
        assert store.open(job.job_id) is None
        assert store.with_logs(job.job_id) is None
        assert store.get_key(key) is None
        assert [store.get_blob(name) for name in names] == [None, None]
        assert store.get_artifact(keys.artifact_blob(job.job_id, 1, "a.txt")) is None


def test_a_purge_leaves_a_key_that_a_newer_job_holds(store: JobStore) -> None:
    key = keys.new_job_id()
    job = store.create(a_job(idempotency=key), b"sealed")
    newer = KeyRow(key, keys.new_job_id(), "f")
    store.take_key(newer)
    store.purge(job)
    assert store.get_key(key) == newer


def test_a_file_is_read_whole_and_in_parts(store: JobStore) -> None:
    name = keys.artifact_blob(keys.new_job_id(), 1, "a.csv")
    assert store.get_artifact(name) is None
    store.put_artifact(name, iter([b"0123", b"", b"456789"]), "text/csv")
    whole = store.get_artifact(name)
    assert whole is not None
    assert (whole.data, whole.size, whole.mime_type) == (b"0123456789", 10, "text/csv")
    for offset, length, expected in (
        (0, 4, b"0123"),
        (8, 100, b"89"),
        (3, 2, b"34"),
        (10, 5, b""),
        (99, 1, b""),
    ):
        part = store.get_artifact(name, offset, length)
        assert part is not None
        assert (part.data, part.size, part.mime_type) == (expected, 10, "text/csv")
    store.put_artifact(name, b"", "text/plain")
    empty = store.get_artifact(name)
    assert empty is not None
    assert (empty.data, empty.size) == (b"", 0)


@pytest.mark.parametrize("size", [1, 5 * 1024 * 1024])
def test_a_file_that_breaks_off_leaves_what_was_there(store: JobStore, size: int) -> None:
    """The tool's own iterable raises, or the file is too large, in the middle."""
    name = keys.artifact_blob(keys.new_job_id(), 1, "a.bin")
    store.put_artifact(name, b"before", "text/plain")

    def parts() -> Iterator[bytes]:
        yield b"x" * size
        raise ArtifactError("too large")

    with pytest.raises(ArtifactError, match="too large"):
        store.put_artifact(name, parts(), "text/csv")
    found = store.get_artifact(name)
    assert found is not None
    assert (found.data, found.mime_type) == (b"before", "text/plain")


def test_a_place_in_the_bodies_that_nobody_gave_is_refused_or_empty(store: UpkeepStore) -> None:
    store.put_blob(f"{keys.new_job_id()}/in", b"x")
    try:
        page = store.blob_page("zzz: no marker")
    except InputError:
        return
    assert isinstance(page.names, tuple)


def test_bodies_are_listed_by_their_jobs_age(store: UpkeepStore) -> None:
    ids = [keys.new_job_id(2_100_000_000_000 + step) for step in range(3)]
    for job_id in reversed(ids):
        store.put_blob(f"{job_id}/in", b"x")
    found: list[str] = []
    marker = ""
    while True:
        page = store.blob_page(marker)
        found += page.names
        marker = page.next_marker
        if not marker:
            break
    assert [name for name in found if name.partition("/")[0] in ids] == [f"{job_id}/in" for job_id in ids]


def test_state_is_remembered(store: UpkeepStore) -> None:
    name = keys.new_job_id()
    assert store.get_state(name) == ""
    store.put_state(name, "one")
    store.put_state(name, "two")
    assert store.get_state(name) == "two"


def test_poison_is_taken_as_it_is(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what nobody can decode, which the host never gives to a function.

    A queue of its own: an app of another test may be listening to the usual one.
    """
    name = f"poison-{keys.new_job_id()}"
    monkeypatch.setattr("shared.jobs.table_store.POISON_QUEUE", name)
    store = TableJobStore(Storage(azurite.connection_string))
    seen: list[str] = []

    def deal(message: str) -> bool:
        seen.append(message)
        return True

    assert store.drain_poison(deal) == 0
    raw = QueueClient.from_connection_string(azurite.connection_string, name)
    raw.create_queue()
    raw.send_message("no base64!")
    raw.send_message("eyJqb2JJZCI6ICJ4In0=")
    assert store.drain_poison(deal) == 2
    assert sorted(seen) == ["eyJqb2JJZCI6ICJ4In0=", "no base64!"]
    assert store.drain_poison(deal) == 0
    for number in range(40):
        raw.send_message(f"many {number}!")
    assert sorted(store.drain_poison(deal) for _ in range(3)) == [0, 8, 32]


def test_poison_that_cannot_be_dealt_with_is_seen_again(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"poison-{keys.new_job_id()}"
    monkeypatch.setattr("shared.jobs.table_store.POISON_QUEUE", name)
    monkeypatch.setattr("shared.jobs.table_store.POISON_SECONDS", 1)
    store = TableJobStore(Storage(azurite.connection_string))
    raw = QueueClient.from_connection_string(azurite.connection_string, name)
    raw.create_queue()
    for number in range(3):
        raw.send_message(f"message {number}")
    assert store.drain_poison(lambda message: message != "message 1") == 2
    seen: list[str] = []

    def deal(message: str) -> bool:
        seen.append(message)
        return True

    deadline = time.monotonic() + 20
    while not store.drain_poison(deal) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert seen == ["message 1"]
