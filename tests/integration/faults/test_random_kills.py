"""Three hosts on one storage, killed at random while they run fifty jobs, and started again."""

from __future__ import annotations

import functools
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.conftest import App, wait_until
from tests.integration.faults.support import Site, at_most_once

pytestmark = pytest.mark.integration

SEED = 50_03
JOBS, HOSTS, KILLS = 50, 3, 4


def test_fifty_jobs_over_three_hosts_with_random_kills_all_end_and_none_runs_twice(site: Site) -> None:
    dice = random.Random(SEED)
    hosts = site.start_all(HOSTS)
    lock = threading.Lock()
    turn = random.Random(SEED + 1)

    def any_host() -> App:
        with lock:
            return turn.choice(hosts)

    def submit(number: int) -> tuple[str, str]:
        tool = "once" if number % 2 else "repeatable"
        label = f"{tool}-{number}"
        return label, site.submit_at_last(any_host, tool, label, steps=2 + number % 16, large=number % 9 == 0)

    def replace(index: int) -> None:
        fresh = site.start()
        with lock:
            hosts[index] = fresh

    def at_work(host: App) -> bool:
        return submitted.is_set() or site.running_on(host) > 0

    def kill_and_start_again() -> None:
        for _ in range(KILLS):
            index = dice.randrange(HOSTS)
            victim = hosts[index]
            # Killed in the middle of something; when nothing is left to do, killed all the same.
            wait_until(functools.partial(at_work, victim))
            site.kill(victim)
            replace(index)

    submitted = threading.Event()
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(1) as killer:
        killing = killer.submit(kill_and_start_again)
        accepted = dict(pool.map(submit, range(JOBS)))
        submitted.set()
        killing.result()
    bodies = site.ended(hosts[0], accepted.values())
    jobs = site.all_ended()

    assert len(set(accepted.values())) == JOBS
    assert {(body["status"], body.get("errorCode")) for body in bodies.values()} <= {
        ("completed", None),
        ("failed", "worker_lost"),
    }
    at_most_once(site, jobs, accepted)
    for label, job_id in accepted.items():
        runs, body = site.runs(label), bodies[job_id]
        if label.startswith("once-"):
            assert len(runs) <= 1
            assert body["attempt"] <= 1
        elif body["status"] == "failed":
            assert body["attempt"] == 3, body
    # The kills did hit: somebody's work was lost.
    assert any(not run.ended for label in accepted for run in site.runs(label))
    site.check_remains()
