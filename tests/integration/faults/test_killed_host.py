"""kill -9 of the host with jobs in every phase: none is lost, and none that must not run again does."""

from __future__ import annotations

import functools
import re
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from shared.jobs import keys
from tests.acceptance.conftest import App, wait_until
from tests.integration.faults.support import Site
from tests.support.fault_plan import delay, refuse
from tests.support.fault_proxy import FaultProxy

pytestmark = pytest.mark.integration

#: Far longer than the host lives: its next step is never made.
HELD = delay(300)
#: Said to be busy, so long that the write is not tried again before the kill.
PUT_OFF = refuse(503, 300)
TRANSACTION = r"table POST .*/\$batch"
OPEN = r"table GET .*RowKey%20le"
TOOLS = ("once", "repeatable")
COMPLETED, LOST = ("completed", None), ("failed", "worker_lost")
#: Phase -> what becomes of a job that must run at most once, and of one that may run again; and runs of each.
PHASES = {
    "after-row": ((COMPLETED, 1), (COMPLETED, 1)),
    "after-message": ((COMPLETED, 1), (COMPLETED, 1)),
    "after-claim": ((LOST, 0), (COMPLETED, 1)),
    "mid-run": ((LOST, 1), (COMPLETED, 2)),
    "after-body": ((LOST, 1), (COMPLETED, 2)),
    "before-end": ((LOST, 1), (COMPLETED, 2)),
    "after-end": ((COMPLETED, 1), (COMPLETED, 1)),
}
LABELS = [f"{phase}-{tool}" for phase in PHASES for tool in TOOLS]
#: A call with an idempotency key that ends between its job's row and its key's row.
CUT_OFF = "after-row-keyed"
#: Nothing moves the held jobs on before the kill.
UNHURRIED = {
    "TOOLBOX_LEASE_MS": "4000",
    "HOST_QUEUE_VISIBILITY_SECONDS": "4",
    "TOOLBOX_REAPER_SCHEDULE": "0 0 0 1 1 *",
}


def test_a_killed_host_loses_no_job_in_any_phase_and_repeats_none_that_must_not_be(
    site: Site, subtests: pytest.Subtests
) -> None:
    with FaultProxy(site.azurite.ports) as proxy, ThreadPoolExecutor(3) as pool:
        first = site.start(proxy.connection_string, **UNHURRIED)
        try:
            accepted, unanswered = jobs_in_every_phase(site, first, proxy, pool)
            site.check_secrets()
            assert sealed_inputs(site)
            wait_until(lambda: all(any(label.encode() in log for _, log in site.logs()) for label in accepted))
        finally:
            site.kill(first)
    for call in unanswered:
        call.result()
    cut_off = site.job_of(CUT_OFF)
    assert cut_off is not None

    second = site.start()
    bodies = site.ended(second, accepted.values())
    wait_until(lambda: site.job_of(CUT_OFF) is None)
    jobs = {label: job for job in site.all_ended() for label in LABELS if f'"{label}"' in job.prefill_summary}

    assert sorted(jobs) == sorted(LABELS)
    for phase, expectations in PHASES.items():
        for tool, (end, runs) in zip(TOOLS, expectations, strict=True):
            label = f"{phase}-{tool}"
            with subtests.test(label):
                body = (
                    bodies[jobs[label].job_id] if label in accepted else site.read(second, jobs[label].job_id)
                )
                assert (body["status"], body.get("errorCode")) == end
                assert len(site.runs(label)) == runs
    assert site.runs(CUT_OFF) == []

    with subtests.test("a call cut off before its key was its own is made again"):
        again = site.submit(second, "once", CUT_OFF, {"idempotencyKey": "k"})
        assert again != cut_off.job_id
        site.ended(second, [again])
        assert [run.job_id for run in site.runs(CUT_OFF)] == [again]

    with subtests.test("late and repeated messages change nothing"):
        before = site.jobs(), {label: site.runs(label) for label in LABELS}
        for job_id in [*(job.job_id for job in jobs.values()), cut_off.job_id, keys.new_job_id()] * 2:
            site.message(job_id)
        wait_until(lambda: site.messages() == 0)
        assert (site.jobs(), {label: site.runs(label) for label in LABELS}) == before
    site.check_remains()


def jobs_in_every_phase(
    site: Site, host: App, proxy: FaultProxy, pool: ThreadPoolExecutor
) -> tuple[dict[str, str], list[Future[None]]]:
    """Label -> job, and the calls that are not answered. All stay where they are until the host is killed."""
    accepted: dict[str, str] = {}

    def labels(phase: str) -> list[tuple[str, str]]:
        return [(tool, f"{phase}-{tool}") for tool in TOOLS]

    def submit(phase: str, *, hold: int = 0, large: bool = False) -> None:
        for tool, label in labels(phase):
            accepted[label] = site.submit(host, tool, label, hold=hold, large=large)

    rules = [
        proxy.arm(HELD, "table PUT ", body=body(label, '"in_progress"'), nth=1)
        for _, label in labels("after-claim")
    ]
    rules += [
        proxy.arm(PUT_OFF, TRANSACTION, body=body(label, '"completed"'), nth=1)
        for _, label in labels("before-end")
    ]
    rules += [
        proxy.arm(HELD, TRANSACTION, body=body(label, '"completed"'), nth=1) for _, label in labels("after-end")
    ]
    bodies = proxy.arm(HELD, "blob PUT .*/result-1", probability=1)
    submit("after-claim")
    submit("mid-run", hold=1)
    submit("after-body", large=True)
    submit("before-end")
    submit("after-end")
    wait_until(lambda: all(rule.fired for rule in rules) and bodies.fired == 2)
    wait_until(lambda: all(len(site.runs(label)) == 1 for _, label in labels("mid-run")))

    opens = proxy.arm(HELD, OPEN, probability=1)
    submit("after-message")
    wait_until(lambda: opens.fired == 2)

    def call(tool: str, label: str) -> None:
        key = {"idempotencyKey": "k"} if label == CUT_OFF else {}
        with pytest.raises(httpx.TransportError):
            site.call(host, tool, label, key)

    unanswered = []
    for tool, label in [*labels("after-row"), ("once", CUT_OFF)]:
        proxy.arm(HELD, TRANSACTION, body=body(label, '"pending"'), nth=1)
        unanswered.append(pool.submit(call, tool, label))
        wait_until(functools.partial(site.job_of, label))
    wanted = {accepted[label] for _, label in labels("after-end")}
    wait_until(lambda: {job.job_id for job in site.jobs() if job.status.terminal} == wanted)
    return accepted, unanswered


def sealed_inputs(site: Site) -> list[str]:
    return [where for where, _ in site.stored() if where.endswith(f"/{keys.INPUT_ROW}/sealed")]


def body(*parts: str) -> bytes:
    """A pattern for a request's body that holds all the parts, in any order."""
    return ("(?s)" + "".join(f"(?=.*{re.escape(part)})" for part in parts)).encode()
