"""Messages that come twice, late, at once, or for jobs that are gone: one run, no error, no poison."""

from __future__ import annotations

import threading

import pytest

from shared.jobs import keys
from shared.jobs.model import ErrorCode, Status
from shared.jobs.store import POISON_QUEUE
from shared.tool import Context
from tests.integration.faults.engine import Engine
from tests.integration.faults.support import Site

pytestmark = pytest.mark.integration


@pytest.fixture
def runs() -> list[str]:
    return []


@pytest.fixture
def engine(site: Site, runs: list[str]) -> Engine:
    def work(fail: bool = False, *, context: Context) -> str:
        runs.append(str(context.job_id))
        if fail:
            raise ValueError("no")
        return "done"

    return Engine(site.store, work)


def test_workers_that_get_the_same_message_at_once_run_the_job_once(
    site: Site, engine: Engine, runs: list[str]
) -> None:
    jobs = [engine.submit().job_id for _ in range(5)]
    for job_id in jobs:
        engine.deliver(*[job_id] * 4)
    assert runs == jobs
    assert {engine.job(job_id).status for job_id in jobs} == {Status.COMPLETED}
    site.check_remains()


def test_a_message_for_a_job_that_is_running_leaves_it_alone(site: Site) -> None:
    began, go = threading.Event(), threading.Event()
    runs = []

    def work() -> str:
        runs.append(1)
        began.set()
        assert go.wait(30)
        return "done"

    engine = Engine(site.store, work)
    job_id = engine.submit().job_id
    first = threading.Thread(target=engine.deliver, args=(job_id,))
    first.start()
    try:
        assert began.wait(30)
        engine.deliver(job_id, job_id)
        assert engine.job(job_id).status is Status.IN_PROGRESS
    finally:
        go.set()
        first.join()
    assert engine.status(job_id)["result"] == {"result": "done"}
    assert runs == [1]
    site.check_remains()


@pytest.mark.parametrize("fail", [False, True])
def test_a_message_for_a_job_that_has_ended_changes_nothing(
    site: Site, engine: Engine, runs: list[str], fail: bool
) -> None:
    job_id = engine.submit({"fail": fail}).job_id
    engine.deliver(job_id)
    ended = engine.job(job_id)
    assert ended.error_code is (ErrorCode.TOOL_ERROR if fail else None)
    engine.deliver(job_id, job_id)
    assert (engine.job(job_id), engine.job(job_id).etag) == (ended, ended.etag)
    assert runs == [job_id]
    site.check_remains()


def test_a_message_for_a_job_that_is_gone_or_never_was_is_done_with(
    site: Site, engine: Engine, runs: list[str]
) -> None:
    job = engine.submit()
    site.store.purge(job)
    engine.deliver(job.job_id, keys.new_job_id())
    assert (runs, site.jobs(), site.messages(POISON_QUEUE)) == ([], [], 0)
    site.check_remains()
