"""Files of jobs: what a tool may store, and which of it is served."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ArtifactError, JobCancelledError
from shared.jobs import artifacts, keys, model
from shared.jobs.artifacts import JobArtifacts
from shared.jobs.model import Job, Status
from shared.jobs.testing import MemoryJobStore
from shared.tool import Context, McpResourceLinkContent, ToolAnnotations
from shared.tool.context import NoArtifacts
from tests.unit.jobs.bench import Bench
from tests.unit.jobs.test_keys_and_rows import a_job


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


@pytest.fixture
def job() -> Job:
    return model.claim(a_job(), model.utc_now(), 60_000)


@pytest.fixture
def files(job: Job, store: MemoryJobStore) -> JobArtifacts:
    return JobArtifacts(job, store, lambda: None)


def content(job: Job, name: str, store: MemoryJobStore) -> bytes | None:
    found = artifacts.read(job, name, store)
    return None if found is None else found.data


@pytest.mark.parametrize(
    ("data", "stored"),
    [
        (b"bytes", b"bytes"),
        (bytearray(b"bytes"), b"bytes"),
        (memoryview(b"bytes"), b"bytes"),
        ("text 漢", "text 漢".encode()),
        ("lone \ud800", b"lone ?"),
        ("", b""),
        (b"", b""),
        (io.BytesIO(b"stream"), b"stream"),
        (io.BytesIO(b""), b""),
        (io.StringIO(""), b""),
        ((part for part in (b"a", b"", bytearray(b"b"), memoryview(b"c"))), b"abc"),
        ([b"a", b"b"], b"ab"),
        ([], b""),
    ],
)
def test_what_can_be_stored(
    data: Any, stored: bytes, files: JobArtifacts, job: Job, store: MemoryJobStore
) -> None:
    link = files.write("a.csv", data)
    assert content(job, "a.csv", store) == stored
    assert (link.uri, link.name, link.mime_type, link.size) == (
        f"artifact://{job.job_id}/a.csv",
        "a.csv",
        "text/csv",
        len(stored),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "must be bytes, text, a binary file or an iterable of bytes, not NoneType"),
        (5, "not int"),
        ({"a": 1}, "not dict"),
        (Path("/etc/passwd"), "not"),
        ([1, 2], "must be read as bytes, not int"),
        (["text"], "must be read as bytes, not str"),
        (io.StringIO("text"), "must be read as bytes, not str"),
        (object(), "not object"),
    ],
)
def test_what_cannot_is_told_with_what_can(
    data: Any, said: str, files: JobArtifacts, store: MemoryJobStore
) -> None:
    with pytest.raises(ArtifactError, match=r"a\.bin") as told:
        files.write("a.bin", data)
    assert said in told.value.message
    assert store.blobs == {}


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "..\\a", "a b", "é", "a\n", "a\0", 'a"', "x" * 129, None, 5, b"a"]
)
def test_an_odd_name_is_refused_with_the_legal_form(
    name: Any, files: JobArtifacts, store: MemoryJobStore
) -> None:
    with pytest.raises(ArtifactError, match=r"1 to 128 of the characters A-Z a-z 0-9 _ \. - without a dot"):
        files.write(name, b"x")
    assert store.requests.total() == 0


@pytest.mark.parametrize(
    "mime_type",
    ["text", "text/", "/csv", "a b/c", "text/csv\r\nX-Evil: 1", "text/html;\n", 5, "é/x", "x" * 300],
)
def test_an_odd_type_is_refused_with_the_legal_form(
    mime_type: Any, files: JobArtifacts, store: MemoryJobStore
) -> None:
    with pytest.raises(ArtifactError, match="like 'text/csv'"):
        files.write("a.bin", b"x", mime_type)
    assert store.requests.total() == 0


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("a.json", None, "application/json"),
        ("a", None, "application/octet-stream"),
        ("a.unknown-kind", "", "application/octet-stream"),
        ("a.txt", "text/csv; charset=utf-8", "text/csv; charset=utf-8"),
        ("a.svg", "image/svg+xml", "image/svg+xml"),
    ],
)
def test_the_type_is_the_given_one_or_that_of_the_name(
    name: str, given: str | None, expected: str, files: JobArtifacts, job: Job, store: MemoryJobStore
) -> None:
    files.write(name, b"x", given)
    found = artifacts.read(job, name, store)
    assert found is not None
    assert found.mime_type == expected


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_has_a_size_limit(
    whole: bool, files: JobArtifacts, job: Job, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_BYTES", 100)
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(1_000):
            taken += 1
            yield b"x" * 10

    files.write("a.bin", b"x" * 100)
    with pytest.raises(ArtifactError, match=r"'a\.bin' has more than 100 bytes"):
        files.write("a.bin", b"x" * 101 if whole else endless())
    assert taken <= 11
    # What was there stays.
    assert content(job, "a.bin", store) == b"x" * 100


def test_a_file_is_replaced_under_the_same_name(files: JobArtifacts, job: Job, store: MemoryJobStore) -> None:
    files.write("a.txt", "first")
    files.write("a.txt", "second", "text/markdown")
    found = artifacts.read(job, "a.txt", store)
    assert found is not None
    assert (found.data, found.mime_type) == (b"second", "text/markdown")


def test_a_job_that_is_not_wanted_stores_nothing(job: Job, store: MemoryJobStore) -> None:
    unwanted: list[JobCancelledError] = []
    files = JobArtifacts(job, store, lambda: unwanted[-1] if unwanted else None)

    def parts() -> Iterator[bytes]:
        yield b"a"
        unwanted.append(JobCancelledError())
        yield b"b"

    for data in (parts(), b"x"):
        with pytest.raises(JobCancelledError):
            files.write("a.txt", data)
    assert store.blobs == {}


def test_code_outside_of_any_call_has_no_place_for_files_and_is_told_so() -> None:
    with pytest.raises(ArtifactError, match="kept with a call or a job"):
        NoArtifacts().write("a", b"x")


class TestAttempts:
    def test_what_a_lost_attempt_has_left_is_not_served(self) -> None:
        go_on = threading.Event()
        go_on.set()

        def work(*, context: Context) -> McpResourceLinkContent:
            if context.attempt == 2:
                assert artifacts.read(bench.job(job), "first.txt", bench.store) is None
                return context.artifacts.write("a.txt", "second")
            return context.artifacts.write("a.txt", "never")

        bench = Bench(work, annotations=ToolAnnotations(idempotent=True))
        job = bench.submit()
        running = bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))
        files = JobArtifacts(running, bench.store, lambda: None)
        files.write("first.txt", "first")
        files.write("a.txt", "first")
        assert content(bench.job(job), "a.txt", bench.store) == b"first"
        given_back = bench.store.write(model.requeue(running, model.utc_now()))
        assert content(given_back, "a.txt", bench.store) is None
        bench.deliver()
        ended = bench.job(job)
        assert (ended.status, ended.attempt) == (Status.COMPLETED, 2), ended.error
        assert content(ended, "a.txt", bench.store) == b"second"
        assert content(ended, "first.txt", bench.store) is None

    def test_a_failed_job_may_leave_files_too(self) -> None:
        def work(*, context: Context) -> None:
            context.artifacts.write("trace.txt", "how it came")
            raise ValueError("no")

        bench = Bench(work)
        job = bench.submit()
        bench.deliver()
        assert content(bench.job(job), "trace.txt", bench.store) == b"how it came"

    def test_they_go_with_the_job(self) -> None:
        def work(*, context: Context) -> McpResourceLinkContent:
            return context.artifacts.write("a.txt", "x")

        bench = Bench(work)
        job = bench.submit()
        bench.deliver()
        assert bench.store.purge(bench.job(job)) > 3
        assert bench.store.blobs == {}


@pytest.mark.parametrize("name", ["", "..", "../in", "in", "a/b", "x" * 200])
def test_nothing_but_files_can_be_read_as_one(name: str, job: Job, store: MemoryJobStore) -> None:
    store.put_artifact(keys.input_blob(job.job_id), b"sealed", "x/y")
    store.put_artifact(keys.result_blob(job.job_id, 1), b"result", "x/y")
    assert artifacts.read(replace(job, attempt=1), name, store) is None
