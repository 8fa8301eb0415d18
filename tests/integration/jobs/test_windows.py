"""Windows of stored jobs, in memory and on a real Azurite: who gets in, how they end, what it costs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from infra.local.azurite import Azurite
from shared.contract.envelope import CallPlan
from shared.errors import (
    IdempotencyError,
    JobEndedError,
    JobError,
    JobNotFoundError,
    LostLeaseError,
    PayloadError,
    ResultError,
    WindowSessionError,
    WindowTicketError,
)
from shared.invocations.record import Outcome
from shared.jobs import answers, cancel, idempotency, keys, model, repair, window_moves, windowing
from shared.jobs.listing import Lister
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.outcome import job_outcome
from shared.jobs.payload import ROW_BYTES
from shared.jobs.reaper import Reaper
from shared.jobs.store import Query, UpkeepStore
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.jobs.testing import MemoryJobStore
from shared.jobs.window import MOST_SESSIONS, TICKET_LIFE, WindowState, hash_of, new_secret, page_key
from shared.jobs.window_moves import NewWindow, state_of
from shared.jobs.windowing import Inside, WindowStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, JsonObject, Mode, ToolSpec
from tests.unit.jobs.bench import SEALER, SETTINGS

pytestmark = pytest.mark.integration

SPEC = ToolSpec("picker", "picker", "Picker", "Picks.", {"type": "object"}, None)
HOUR = timedelta(hours=1)


@dataclass
class Desk:
    """A store, and windows in it."""

    store: UpkeepStore
    windows: WindowStore = field(init=False)

    def __post_init__(self) -> None:
        self.windows = WindowStore(self.store, SEALER)

    def submit(
        self,
        arguments: JsonObject | None = None,
        *,
        timeout_ms: int = 60_000,
        key: str | None = None,
        token: str | None = None,
        secrets: tuple[str, ...] = (),
    ) -> tuple[Job, str]:
        """(a job that waits for a person, its ticket)"""
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.WINDOWED, timeout_ms, token, key)
        ticket = new_secret()
        work = submit(
            SPEC,
            arguments or {},
            plan,
            owner="default",
            store=self.store,
            sealer=SEALER,
            secrets=secrets,
            window=NewWindow(ticket, "https://tools.example.com"),
        )
        return asyncio.run(work), ticket

    def opened(self, **options: Any) -> tuple[str, str]:
        """(a job's id, a session of its window)"""
        job, ticket = self.submit(**options)
        return job.job_id, self.windows.open_with_ticket(job.job_id, ticket)[1]

    def job(self, job_id: str) -> Job:
        found = self.store.get(job_id)
        assert found is not None
        return found

    def result(self, job_id: str) -> Any:
        return answers.result_of(self.job(job_id), self.store).structured


def data(value: Any) -> Callable[[Inside], ToolResult]:
    return lambda _: ToolResult(structured=value)


def later(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    """The clock of everything that windows go by, that much later than now."""
    now = model.utc_now() + by
    for module in (windowing, repair, answers):
        monkeypatch.setattr(module, "utc_now", lambda: now)


@pytest.fixture(params=["memory", "azurite"])
def desk(request: pytest.FixtureRequest) -> Desk:
    if request.param == "memory":
        return Desk(MemoryJobStore())
    azurite: Azurite = request.getfixturevalue("azurite")
    return Desk(TableJobStore(Storage(azurite.connection_string)))


class TestOpening:
    def test_a_ticket_opens_a_window_once(self, desk: Desk) -> None:
        job, ticket = desk.submit({"n": 1})
        assert state_of(job) is WindowState.WAITING
        inside, session = desk.windows.open_with_ticket(job.job_id, ticket)
        assert inside.given.arguments == {"n": 1}
        assert state_of(desk.job(job.job_id)) is WindowState.OPEN
        with pytest.raises(WindowTicketError):
            desk.windows.open_with_ticket(job.job_id, ticket)
        assert desk.windows.inside(job.job_id, session).given.arguments == {"n": 1}

    def test_of_many_that_use_one_ticket_at_once_one_gets_in(self, desk: Desk) -> None:
        job, ticket = desk.submit()
        gate = threading.Barrier(6)

        def use(_: int) -> bool:
            gate.wait()
            try:
                desk.windows.open_with_ticket(job.job_id, ticket)
            except WindowTicketError:
                return False
            return True

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(use, range(6))) == 1
        window = desk.job(job.job_id).window
        assert window is not None
        assert len(window.sessions) == 1

    def test_a_ticket_opens_no_other_window_and_is_no_session(self, desk: Desk) -> None:
        one, ticket = desk.submit()
        other, _ = desk.submit()
        for job_id in (other.job_id, keys.new_job_id(), "", "../x"):
            with pytest.raises(WindowTicketError):
                desk.windows.open_with_ticket(job_id, ticket)
        with pytest.raises(WindowSessionError):
            desk.windows.inside(one.job_id, ticket)
        desk.windows.open_with_ticket(one.job_id, ticket)

    def test_a_ticket_expires_before_a_long_window_does(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job, ticket = desk.submit(timeout_ms=5 * 3_600_000)
        later(monkeypatch, TICKET_LIFE + timedelta(seconds=1))
        with pytest.raises(WindowTicketError):
            desk.windows.open_with_ticket(job.job_id, ticket)
        inside, _ = desk.windows.open_for_owner(job.job_id, "default")
        assert inside.job.status is Status.PENDING

    def test_the_owner_needs_no_ticket_and_leaves_it_as_it_is(self, desk: Desk) -> None:
        job, ticket = desk.submit()
        _, first = desk.windows.open_for_owner(job.job_id, "default")
        _, second = desk.windows.open_with_ticket(job.job_id, ticket)
        for session in (first, second):
            desk.windows.inside(job.job_id, session)
        for owner, job_id in (("ana", job.job_id), ("default", keys.new_job_id())):
            with pytest.raises(JobNotFoundError):
                desk.windows.open_for_owner(job_id, owner)

    def test_the_oldest_of_many_sessions_makes_room(self, desk: Desk) -> None:
        job, _ = desk.submit()
        sessions = [desk.windows.open_for_owner(job.job_id, "default")[1] for _ in range(MOST_SESSIONS + 1)]
        with pytest.raises(WindowSessionError):
            desk.windows.inside(job.job_id, sessions[0])
        for session in sessions[1:]:
            desk.windows.inside(job.job_id, session)

    def test_no_row_opens_a_window(self, desk: Desk) -> None:
        """Neither what a row holds nor the page's key, which the tool's page sees, is any session or ticket."""
        job, ticket = desk.submit()
        _, session = desk.windows.open_for_owner(job.job_id, "default")
        window = desk.job(job.job_id).window
        assert window is not None
        kept = window.to_text()
        assert ticket not in kept
        assert session not in kept
        key = page_key(hash_of("session", session))
        assert desk.windows.page_job(job.job_id, key).job_id == job.job_id
        for secret in (key, window.ticket, *window.sessions):
            with pytest.raises(WindowSessionError):
                desk.windows.inside(job.job_id, secret)
            with pytest.raises(WindowTicketError):
                desk.windows.open_with_ticket(job.job_id, secret)
        for wrong in ("", key[:-1], session, "\ud800"):
            with pytest.raises(WindowSessionError):
                desk.windows.page_job(job.job_id, wrong)

    def test_a_session_works_for_its_own_window_only(self, desk: Desk) -> None:
        one, session = desk.opened()
        other, others = desk.opened()
        for job_id, wrong in ((other, session), (one, others), (keys.new_job_id(), session), ("x", session)):
            with pytest.raises(WindowSessionError):
                desk.windows.give(job_id, wrong, data({}))
            with pytest.raises(WindowSessionError):
                desk.windows.close(job_id, wrong)
        assert {desk.job(job_id).status for job_id in (one, other)} == {Status.PENDING}


class TestEnding:
    def test_what_a_person_gives_is_the_result_and_the_input_goes(self, desk: Desk) -> None:
        job_id, session = desk.opened(arguments={"n": "sentinel-of-the-input"})
        desk.windows.give(job_id, session, data({"picked": 1}))
        job = desk.job(job_id)
        assert (job.status, job.progress_percent, state_of(job)) == (Status.COMPLETED, 100, WindowState.DONE)
        assert desk.result(job_id) == {"picked": 1}
        opened = desk.store.open(job_id)
        assert opened is not None
        assert opened.sealed is None
        assert job_outcome(job) is Outcome.COMPLETED

    def test_the_first_result_counts(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        desk.windows.give(job_id, session, data({"n": 1}))
        for again in (
            lambda: desk.windows.give(job_id, session, data({"n": 2})),
            lambda: desk.windows.close(job_id, session),
            lambda: desk.windows.inside(job_id, session),
        ):
            with pytest.raises(JobEndedError, match="it is completed"):
                again()
        assert desk.result(job_id) == {"n": 1}

    def test_of_many_that_give_at_once_one_is_taken(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        gate = threading.Barrier(6)

        def give(number: int) -> int | None:
            large = {"n": number, "text": "x" * (2 * ROW_BYTES)}
            gate.wait()
            try:
                desk.windows.give(job_id, session, data(large))
            except JobEndedError:
                return None
            return number

        with ThreadPoolExecutor(6) as pool:
            taken = [number for number in pool.map(give, range(6)) if number is not None]
        assert len(taken) == 1
        # Each has stored a body of its own, so the one that the row names is whole.
        assert desk.result(job_id)["n"] == taken[0]

    def test_a_late_result_does_no_harm_to_the_one_that_was_taken(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both are too large for the row; the late one stores its body after the other has ended the job."""
        job_id, session = desk.opened()
        put, quicker = desk.store.put_blob, {"text": "quicker" * ROW_BYTES}

        def slow(name: str, body: bytes) -> None:
            monkeypatch.setattr(desk.store, "put_blob", put)
            desk.windows.give(job_id, session, data(quicker))
            put(name, body)

        monkeypatch.setattr(desk.store, "put_blob", slow)
        with pytest.raises(JobEndedError):
            desk.windows.give(job_id, session, data({"text": "late" * ROW_BYTES}))
        assert desk.result(job_id) == quicker

    def test_data_that_does_not_fit_changes_nothing(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        before = desk.job(job_id)

        def refuse(_: Inside) -> ToolResult:
            raise ResultError("Output validation failed: $.n")

        with pytest.raises(ResultError):
            desk.windows.give(job_id, session, refuse)
        assert desk.job(job_id) == before
        desk.windows.give(job_id, session, data({"n": 1}))

    def test_a_closed_window_is_no_error(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        job = desk.windows.close(job_id, session)
        assert (job.status, state_of(job)) == (Status.COMPLETED, WindowState.CLOSED)
        assert desk.result(job_id) == {
            "status": "no_result",
            "executionMode": "windowed",
            "correlationId": f"mcp-{job_id}",
            "message": "User did not complete the action — the tool window was closed without returning data.",
        }
        assert job_outcome(desk.job(job_id)) is Outcome.NO_RESULT

    def test_the_deadline_counts_from_the_call_and_is_seen_by_any_read(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id, session = desk.opened(timeout_ms=60_000)
        later(monkeypatch, timedelta(seconds=61))
        with pytest.raises(JobEndedError, match="it is failed"):
            desk.windows.give(job_id, session, data({}))
        job = desk.job(job_id)
        assert (job.status, job.error_code) == (Status.FAILED, ErrorCode.TIMEOUT)
        text = "Failed to launch tool: Timed out waiting for 'picker' to return data after 60000 ms"
        assert (job.error, state_of(job)) == (text, WindowState.CLOSED)

    def test_the_timer_ends_what_nobody_reads_and_sends_nothing(self, desk: Desk) -> None:
        job, _ = desk.submit(timeout_ms=3_600_000)

        def run(after: timedelta) -> Job:
            def no_poison(_: str) -> None: ...

            now = job.created_at + after
            Reaper(desk.store, retention=48 * HOUR, budget=10_000, on_poison=no_poison, clock=lambda: now).run()
            return desk.job(job.job_id)

        waiting = run(HOUR - timedelta(seconds=1))
        assert (waiting.status, waiting.sends, waiting.etag) == (Status.PENDING, job.sends, job.etag)
        ended = run(HOUR)
        assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.TIMEOUT)

    def test_cancelling_closes_it(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        job = cancel.cancel(job_id, "default", desk.store)
        assert (job.status, job.error_code, state_of(job)) == (
            Status.FAILED,
            ErrorCode.CANCELLED,
            WindowState.CLOSED,
        )
        with pytest.raises(JobEndedError):
            desk.windows.give(job_id, session, data({}))

    def test_a_large_input_and_result_are_kept_whole(self, desk: Desk) -> None:
        text = "ü" * (2 * ROW_BYTES)
        job, ticket = desk.submit({"text": text})
        inside, session = desk.windows.open_with_ticket(job.job_id, ticket)
        assert inside.given.arguments == {"text": text}
        desk.windows.give(job.job_id, session, data({"text": text}))
        assert desk.result(job.job_id) == {"text": text}
        assert desk.store.get_blob(keys.input_blob(job.job_id)) is None

    def test_secrets_of_the_call_are_taken_out_of_the_result(self, desk: Desk) -> None:
        job_id, session = desk.opened(secrets=("sentinel-of-a-key",))
        desk.windows.give(job_id, session, data({"text": "it was sentinel-of-a-key"}))
        assert desk.result(job_id) == {"text": "it was [redacted]"}


class TestInTheEngine:
    def test_it_is_never_queued_and_no_worker_takes_it(self, desk: Desk) -> None:
        job, _ = desk.submit()
        before = desk.job(job.job_id)
        worker = Worker({}, desk.store, SEALER, SETTINGS)
        asyncio.run(worker.handle(json.dumps({"jobId": job.job_id})))
        asyncio.run(worker.handle_poison(json.dumps({"jobId": job.job_id})))
        assert desk.job(job.job_id) == before
        with pytest.raises(LostLeaseError):
            model.claim(before, model.utc_now(), 1_000)
        if isinstance(desk.store, MemoryJobStore):
            assert desk.store.requests["send"] == 0

    def test_old_ones_are_not_sent_again(self, desk: Desk) -> None:
        job, _ = desk.submit(timeout_ms=24 * 3_600_000)
        assert not repair.due(job, job.created_at + 23 * HOUR)
        assert repair.due(job, job.created_at + 24 * HOUR)

    def test_the_log_says_who_opened_and_how_it_ended(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        desk.windows.open_for_owner(job_id, "default")
        desk.windows.give(job_id, session, data({}))
        found = desk.store.with_logs(job_id)
        assert found is not None
        assert [line.message for line in found[1]] == [
            "the window was opened with its link",
            "the window was opened by its owner",
            "a person has given the result",
        ]
        assert [line.sequence for line in found[1]] == [1, 2, 3]

    def test_lists_and_bodies_tell_of_the_window_without_a_ticket(self, desk: Desk) -> None:
        job, ticket = desk.submit()
        accepted = answers.acceptance(job, ticket=ticket).structured
        assert accepted is not None
        assert accepted["window"] == {
            "state": "waiting",
            "url": f"https://tools.example.com/#window={job.job_id}.{ticket}",
        }
        link = f"https://tools.example.com/#window={job.job_id}"
        assert answers.status_body(job, (), None)["window"] == {"state": "waiting", "url": link}
        listed = Lister(desk.store, SEALER).page("default", tool="picker", limit=1)["jobs"][0]
        assert (listed["jobId"], listed["window"]) == (job.job_id, {"state": "waiting", "url": link})
        _, session = desk.windows.open_for_owner(job.job_id, "default")
        assert window_moves.told(desk.job(job.job_id)) == {"state": "open", "url": link}
        ended = desk.windows.close(job.job_id, session)
        assert window_moves.told(desk.job(job.job_id)) == {"state": "closed"}
        # A call that is repeated under its idempotency key may find it so: there is nothing to open.
        repeated = answers.acceptance(ended).structured
        assert repeated is not None
        assert "message" not in repeated

    def test_who_waits_hears_of_the_end_and_of_the_deadline(self, desk: Desk) -> None:
        job_id, session = desk.opened()

        async def wait() -> Job:
            waiting = asyncio.create_task(answers.wait(desk.job(job_id), desk.store, 10_000))
            await asyncio.to_thread(desk.windows.give, job_id, session, data({"n": 1}))
            return await waiting

        assert asyncio.run(wait()).status is Status.COMPLETED
        late, _ = desk.submit(timeout_ms=300)
        ended = asyncio.run(answers.wait(late, desk.store, 10_000))
        assert ended.error_code is ErrorCode.TIMEOUT
        assert desk.job(late.job_id).status is Status.FAILED


class TestIdempotency:
    def test_a_repeated_call_gets_the_same_window_and_a_ticket_that_works(self, desk: Desk) -> None:
        key = new_secret()
        job, ticket = desk.submit({"n": 1}, key=key)
        again, _ = desk.submit({"n": 1}, key=key)
        assert again.job_id == job.job_id
        _, fresh = desk.windows.new_ticket(again)
        with pytest.raises(WindowTicketError):
            desk.windows.open_with_ticket(job.job_id, ticket)
        desk.windows.open_with_ticket(job.job_id, fresh)
        with pytest.raises(IdempotencyError):
            desk.submit({"n": 2}, key=key)

    def test_there_is_no_ticket_for_what_has_ended(self, desk: Desk) -> None:
        job_id, session = desk.opened()
        desk.windows.close(job_id, session)
        with pytest.raises(JobError):
            desk.windows.new_ticket(desk.job(job_id))

    def test_one_that_nobody_was_told_of_is_removed_at_its_deadline(self, desk: Desk) -> None:
        """Its call was cut off between the job's row and the key's."""
        job, _ = desk.submit()
        (digest, *_) = idempotency.make_key("default", "picker", new_secret(), {}, SEALER).keys
        half = desk.store.write(replace(job, idempotency=digest))
        repair.repaired(half, desk.store, half.window_until)
        assert desk.store.get(job.job_id) is None


def test_a_window_from_call_to_result_makes_seven_requests() -> None:
    """Row insert; open: read, write; a file and a call of the page: a read each; result: read, write."""
    store = MemoryJobStore()
    desk = Desk(store)
    job, ticket = desk.submit()
    assert store.requests == {"create": 1}
    _, session = desk.windows.open_with_ticket(job.job_id, ticket)
    desk.windows.page_job(job.job_id, page_key(hash_of("session", session)))
    desk.windows.inside(job.job_id, session)
    desk.windows.give(job.job_id, session, data({}))
    assert store.requests == {"create": 1, "open": 3, "write": 2, "get": 1}


def test_an_input_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(MemoryJobStore())
    job, ticket = desk.submit()
    monkeypatch.setattr(desk.store, "open", lambda _: replace_sealed(job))
    with pytest.raises(PayloadError, match="is gone"):
        desk.windows.open_with_ticket(job.job_id, ticket)


def replace_sealed(job: Job) -> Any:
    from shared.jobs.store import Opened

    return Opened(job, None)


def test_scans_read_windows_too() -> None:
    desk = Desk(MemoryJobStore())
    job, _ = desk.submit()
    assert desk.store.scan(Query(), 10).jobs == (job,)
