"""Storage that goes away for seconds in the middle of a job, and comes back: the job goes on and completes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from infra.local.azurite import ACCOUNT_NAME, Azurite
from tests.acceptance.conftest import wait_until
from tests.integration.faults.support import Site

pytestmark = pytest.mark.integration

OUTAGE = 5.0  # seconds
TOOLS = ("once", "repeatable")


def test_a_job_goes_on_after_five_seconds_without_storage(tmp_path: Path) -> None:
    azurite = Azurite.start(tmp_path / "storage", free_ports=True)
    try:
        with Site(azurite, ACCOUNT_NAME, tmp_path / "site") as site:
            # A lease that outlives the outage, as the default of 60 s does.
            host = site.start(TOOLBOX_LEASE_MS="20000")
            ids = [site.submit(host, tool, tool, hold=1) for tool in TOOLS]
            wait_until(lambda: all(site.read(host, job_id)["logs"] for job_id in ids))

            azurite.stop()
            down = time.monotonic()
            before = [len(site.runs(tool)) for tool in TOOLS]
            # Ends that are reached while there is no storage wait for it.
            site.tell("repeatable", "burst")
            site.tell("once", "go")
            wait_until(lambda: site.runs("once")[0].ended)
            wait_until(lambda: time.monotonic() - down > OUTAGE, OUTAGE * 2)
            azurite = site.azurite = Azurite.start(tmp_path / "storage", ports=azurite.ports)
            back = time.time()
            site.tell("repeatable", "go")
            bodies = site.ended(host, ids)

            for tool, job_id in zip(TOOLS, ids, strict=True):
                body = bodies[job_id]
                assert (body["status"], body["attempt"]) == ("completed", 1), body
                numbers = [line["seq"] for line in body["logs"]]
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                steps = [line["message"] for line in body["logs"] if line["message"].startswith("step ")]
                first = int(steps[0].partition(".")[2])
                assert steps == [f"step 1.{first + index}" for index in range(len(steps))]
                assert body["logs"][-1]["message"] == "completed"
                assert body["logsDropped"] == numbers[0] - 1
                assert len(site.runs(tool)) == 1
            assert before == [1, 1]
            assert time.time() - back < 20
            site.check_remains()
    finally:
        azurite.stop()
