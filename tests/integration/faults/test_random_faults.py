"""Storage that resets, loses, delays, cuts and refuses one request in twelve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.faults.support import Site, at_most_once
from tests.support.fault_plan import LOSE_ANSWER, RESET, TRUNCATE, delay, refuse
from tests.support.fault_proxy import FaultProxy

pytestmark = pytest.mark.integration

SEED = 20261130
JOBS = 30
FAULTS = (RESET, LOSE_ANSWER, TRUNCATE, delay(0.4), refuse(503, None), refuse(500, None))


def test_every_job_ends_and_none_is_lost_when_storage_is_unreliable(site: Site) -> None:
    with FaultProxy(site.azurite.ports, seed=SEED) as proxy, ThreadPoolExecutor(6) as pool:
        # No lease runs out: a job's requests are repeated until they go through.
        host = site.start(proxy.connection_string, TOOLBOX_LEASE_MS="20000")
        rules = [proxy.arm(fault, "", probability=1 / 72) for fault in FAULTS]
        # Some of the writes that matter most, whatever the dice say: claims and ends.
        claims = proxy.arm(LOSE_ANSWER, "table PUT ", body=b'"in_progress"', nth=(2, 7, 13))
        ends = proxy.arm(LOSE_ANSWER, r"table POST .*/\$batch", body=b'"completed"', nth=(2, 7, 13))

        def submit(number: int) -> tuple[str, str]:
            tool = "once" if number % 2 else "repeatable"
            label = f"{tool}-{number}"
            shape = {"steps": number % 7, "large": number % 5 == 0, "fail": number % 6 == 0}
            # An input of its own blob, too.
            padding = "p" * (50_000 if number % 4 == 0 else 10)
            return label, site.submit_at_last(lambda: host, tool, label, padding=padding, **shape)

        accepted = dict(pool.map(submit, range(JOBS)))
        jobs = site.all_ended()
        fired = [rule.fired for rule in rules]
        asked = len(proxy.seen())
        proxy.disarm()
        site.ended(host, accepted.values())
        assert all(fired)
        assert claims.fired
        assert ends.fired
        assert 0.04 < sum(fired) / asked < 0.12

    by_id = {job.job_id: job for job in jobs}
    assert set(accepted.values()) <= set(by_id)
    for number, job_id in enumerate(accepted.values()):
        job = by_id[job_id]
        outcome = (str(job.status), str(job.error_code or ""))
        expected = ("failed", "tool_error") if number % 6 == 0 else ("completed", "")
        assert outcome == expected, job
        assert job.attempt == 1
    at_most_once(site, jobs, accepted)
    assert {len(site.runs(label)) for label in accepted} == {1}
    site.check_remains()
