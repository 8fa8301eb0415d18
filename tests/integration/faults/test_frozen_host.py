"""A host that stands still beyond its lease and wakes up: what it still has to say changes nothing."""

from __future__ import annotations

import signal

import pytest

from tests.acceptance.conftest import wait_until
from tests.integration.faults.support import Site

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP"),
]

TOOLS = ("once", "repeatable")


def test_a_worker_that_lost_its_lease_while_it_stood_still_writes_nothing(site: Site) -> None:
    frozen = site.start()
    ids = [site.submit(frozen, tool, tool, hold=1) for tool in TOOLS]
    wait_until(lambda: all(site.runs(tool) for tool in TOOLS))
    frozen.process.send_signal(signal.SIGSTOP)
    other = site.start()
    bodies = site.ended(other, ids)
    before = site.jobs()
    # It wakes up to many log lines, and to the end of a run that is not wanted any more.
    site.tell("once", "burst")
    site.tell("repeatable", "go")
    frozen.process.send_signal(signal.SIGCONT)
    wait_until(lambda: frozen.log.read_text().count("Executed 'Functions.job_worker'") == len(TOOLS))

    ends = [(body["status"], body.get("errorCode"), body["attempt"]) for body in bodies.values()]
    assert sorted(ends) == [("completed", None, 2), ("failed", "worker_lost", 1)]
    assert site.jobs() == before
    assert [site.read(other, job_id) for job_id in bodies] == list(bodies.values())
    assert [len(site.runs(tool)) for tool in TOOLS] == [1, 2]
    site.check_remains()
