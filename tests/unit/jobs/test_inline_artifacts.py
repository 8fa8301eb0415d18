"""Files of calls that run inline: kept under the call's own id, as those of a job are."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from shared import ids
from shared.errors import ArtifactError, JobCancelledError, JobEndedError, LostLeaseError, SettingsError
from shared.jobs import answers, artifacts, keys, model
from shared.jobs.cancel import cancel
from shared.jobs.inline_artifacts import ANSWERED, InlineArtifacts, inline_record
from shared.jobs.model import Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.reaper import Reaper
from shared.jobs.testing import MemoryJobStore
from shared.jobs.view import look
from shared.tool import Context, McpResourceLinkContent, ToolError, tool
from shared.tool.decorator import declared
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.test_invoke import Bench
from tests.unit.web.support import OTHER, Web, body

CALL = keys.new_job_id()


def record(call_id: str = CALL, owner: str = "default") -> Job:
    entry = declared(tool(name="work", description="Works.")(lambda: None))
    assert entry is not None
    return inline_record(entry.spec, call_id, owner, mode=Mode.TWO_WAY, timeout_ms=1000)


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


@pytest.fixture
def files(store: MemoryJobStore) -> InlineArtifacts:
    return InlineArtifacts(record, lambda: store)


def test_the_first_file_makes_an_ended_record_and_the_next_ones_none(
    files: InlineArtifacts, store: MemoryJobStore
) -> None:
    link = files.write("a.txt", "one", "text/plain")
    assert (link.uri, link.size) == (f"artifact://{CALL}/a.txt", 3)
    assert store.requests == Counter(create=1, put_artifact=1)
    files.write("b.txt", (part for part in (b"t", b"wo")))
    assert store.requests == Counter(create=1, put_artifact=2)
    job = store.get(CALL)
    assert job is not None
    assert (job.status, job.attempt, job.execution_mode) == (Status.COMPLETED, 1, ExecutionMode.INLINE)
    assert int(job.created_at.timestamp() * 1000) == ids.milliseconds_of(CALL)
    assert job.completed_at is not None
    assert job.created_at <= job.completed_at <= model.utc_now()
    assert [found.data for name in ("a.txt", "b.txt") if (found := artifacts.read(job, name, store))] == [
        b"one",
        b"two",
    ]
    assert set(store.rows) == {(keys.partition_key(CALL), keys.JOB_ROW)}


def test_its_status_says_that_it_keeps_files(files: InlineArtifacts, store: MemoryJobStore) -> None:
    files.write("a.txt", "one")
    shown = look(CALL, "default", store).body(store)
    assert (shown["status"], shown["executionMode"], shown["result"]) == ("completed", "inline", ANSWERED)
    with pytest.raises(JobEndedError):
        cancel(CALL, "default", store)


@pytest.mark.parametrize(("name", "data", "mime"), [("../a", b"x", None), ("a", 5, None), ("a", b"x", "odd")])
def test_what_is_refused_makes_no_record(
    name: str, data: Any, mime: str | None, files: InlineArtifacts, store: MemoryJobStore
) -> None:
    with pytest.raises(ArtifactError):
        files.write(name, data, mime)
    assert store.requests.total() == 0


def test_writers_at_once_share_one_record(files: InlineArtifacts, store: MemoryJobStore) -> None:
    together = threading.Barrier(8)

    def write(number: int) -> str:
        together.wait(10)
        return files.write(f"{number}.txt", str(number)).uri

    with ThreadPoolExecutor(8) as pool:
        links = list(pool.map(write, range(8)))
    assert len(set(links)) == 8
    assert store.requests["create"] == 1


def test_after_a_failure_the_next_file_tries_again(store: MemoryJobStore) -> None:
    tries = iter([OSError("away"), None])

    def found() -> MemoryJobStore:
        error = next(tries)
        if error is not None:
            raise error
        return store

    files = InlineArtifacts(record, found)
    with pytest.raises(OSError, match="away"):
        files.write("a.txt", "x")
    files.write("a.txt", "x")
    assert store.requests["create"] == 1


@pytest.mark.parametrize(("owner", "is_ours"), [("default", True), ("ana", False)])
def test_a_record_that_stands_already_is_ours_or_refused(
    owner: str, is_ours: bool, files: InlineArtifacts, store: MemoryJobStore
) -> None:
    """Every answer to the first try was lost, though it went through."""
    store.create(record(owner=owner), b"")
    if is_ours:
        files.write("a.txt", "x")
        files.write("b.txt", "x")
        assert store.requests["create"] == 2
        return
    with pytest.raises(LostLeaseError):
        files.write("a.txt", "x")
    assert store.blobs == {}


def test_a_call_that_has_ended_stores_nothing_more(files: InlineArtifacts, store: MemoryJobStore) -> None:
    files.write("a.txt", "x")

    def parts() -> Iterator[bytes]:
        yield b"x"
        files.end()
        yield b"y"

    for data in (parts(), b"z"):
        with pytest.raises(JobCancelledError, match="The call has ended"):
            files.write("b.txt", data)
    assert list(store.mime_types) == [keys.artifact_blob(CALL, 1, "a.txt")]


def test_it_goes_with_retention_and_not_before(files: InlineArtifacts, store: MemoryJobStore) -> None:
    files.write("a.txt", "x")
    now = model.utc_now()

    def run(moment: Any) -> None:
        Reaper(store, retention=timedelta(days=7), budget=100, on_poison=print, clock=lambda: moment).run()

    run(now + timedelta(days=6))
    assert store.get(CALL) is not None
    assert store.blobs
    run(now + timedelta(days=8))
    assert store.get(CALL) is None
    assert store.blobs == {}


class TestCalls:
    """Through the invoker."""

    def test_any_inline_tool_may_leave_files(self) -> None:
        def work(text: str, *, context: Context) -> McpResourceLinkContent:
            assert context.job_id is None
            return context.artifacts.write("a.txt", text, "text/plain")

        bench = Bench(work)
        answer = bench.call({"text": "hello"})
        assert not answer.is_error, answer.text
        (link,) = answer.content
        job_id = link["uri"].split("/")[2]
        job = bench.store.get(job_id)
        assert job is not None
        assert (job.owner, job.tool_name, job.connection_name) == ("default", "work", "")
        assert job.correlation_id == ids.correlation_id(job_id)
        assert "hello" in job.prefill_summary
        found = artifacts.read(job, "a.txt", bench.store)
        assert found is not None
        assert found.data == b"hello"

    @pytest.mark.parametrize("asks", [True, False])
    def test_a_call_without_files_costs_no_request(self, asks: bool) -> None:
        def told(*, context: Context) -> str:
            return str(context.artifacts is not None)

        bench = Bench(told if asks else lambda: "ok")
        assert not bench.call().is_error
        assert bench.store.requests.total() == 0

    def test_a_failed_call_may_leave_files_too(self) -> None:
        def work(*, context: Context) -> str:
            raise ToolError(context.artifacts.write("trace.txt", "how it came").uri)

        bench = Bench(work)
        answer = bench.call()
        assert answer.is_error
        job_id = answer.text.split("/")[2]
        found = bench.store.get(job_id)
        assert found is not None
        assert artifacts.read(found, "trace.txt", bench.store) is not None

    def test_code_that_outlives_its_call_writes_nothing(self) -> None:
        go_on, written = threading.Event(), threading.Event()
        seen: list[Exception] = []

        def work(*, context: Context) -> str:
            go_on.wait(20)
            try:
                context.artifacts.write("late.txt", "x")
            except Exception as error:
                seen.append(error)
            written.set()
            return "late"

        bench = Bench(work)
        answer = bench.call({"__pptb": {"timeoutMs": 50}})
        assert answer.meta["toolbox/errorCode"] == "timeout"
        go_on.set()
        assert written.wait(20)
        assert [type(error) for error in seen] == [JobCancelledError]
        assert bench.store.requests.total() == 0

    def test_without_storage_the_setting_is_named(self) -> None:
        from shared.invoke import Invoker

        def work(*, context: Context) -> McpResourceLinkContent:
            return context.artifacts.write("a.txt", "x")

        def no_store() -> MemoryJobStore:
            raise SettingsError("AzureWebJobsStorage is not set: jobs need a storage account.")

        bench = Bench(work)
        bench.invoker = Invoker(bench.settings, Sealer((bytes(32),)), no_store)
        answer = bench.call()
        assert answer.is_error
        assert "AzureWebJobsStorage is not set" in answer.text


class TestOverHttp:
    @pytest.fixture
    def web(self) -> Web:
        web = Web()
        InlineArtifacts(record, lambda: web.store).write("a.png", b"png", "image/png")
        return web

    def test_its_owner_reads_it(self, web: Web) -> None:
        answer = web("artifact", CALL, name="a.png")
        assert (answer.status_code, answer.get_body(), answer.mimetype) == (200, b"png", "image/png")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="a.png"'
        assert body(web("status", CALL))["executionMode"] == "inline"

    @pytest.mark.parametrize("call", [lambda web: web("artifact", CALL, name="a.png", token=OTHER),
                                      lambda web: web("status", CALL, token=OTHER)])  # fmt: skip
    def test_another_owner_does_not(self, call: Callable[[Web], Any], web: Web) -> None:
        answer = call(web)
        assert (answer.status_code, body(answer)) == (404, {"error": "Job not found"})


def test_the_result_of_the_record_can_be_read(files: InlineArtifacts, store: MemoryJobStore) -> None:
    files.write("a.txt", "x")
    job = store.get(CALL)
    assert job is not None
    assert asyncio.run(answers.final(job, store)).structured == ANSWERED
