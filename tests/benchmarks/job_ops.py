"""`job_ops`: storage requests of one job, all that the app and its host make, counted by a proxy.

Bounds: at most 7 for a job without logs, at most 9 for one that logs 50 lines and reports progress 20 times in
less than a second (at once, and spread over 0.9 s). The app runs in the local host with everything it does
beside; jobs come one at a time over MCP and are over when their message is deleted (which is looked up past the
proxy). So a job costs

    transaction, send            the call: job row with input, message
    receive                      the host takes the message
    query, update, transaction   the worker: read, claim, end
    delete                       the host is done with the message

A receive that finds nothing is the price of an idle queue, not of a job: `idle_polls`, of all jobs together.
A two-way caller reads the row until the job is over: `waiter_reads`, per job.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import App, start_app
from tests.benchmarks.job_engine import own_azurite, raw_queue
from tests.benchmarks.measure import report
from tests.support.fault_proxy import FaultProxy

JOBS = 10
#: Name -> tool, arguments, the bound.
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "silent": ("trivial", {"text": "hello"}, 7),
    "logs at once": ("chatty", {"text": "hello", "seconds": 0}, 9),
    "logs over 0.9 s": ("chatty", {"text": "hello", "seconds": 0.9}, 9),
}
APP = Path(__file__).parent / "apps" / "jobs"
POLL, READ = "queue GET poll", "table GET get"


def measure(app: App, proxy: FaultProxy, connection: str, case: str, mode: str) -> Counter[str]:
    tool, arguments, _ = CASES[case]
    queue = raw_queue(connection, connections=1)
    proxy.forget()
    for _ in range(JOBS):
        result = app.call(tool, arguments, {"mode": mode, "executionMode": "headless"})
        assert not result.get("isError"), result
        while queue.get_queue_properties().approximate_message_count:
            time.sleep(0.02)
    time.sleep(2.5)  # what is written in batches, off the calls, would show now
    return proxy.counts()


def main() -> None:
    with own_azurite() as azurite, FaultProxy(azurite.ports) as proxy:
        app = start_app(azurite.data_dir, proxy.connection_string, app_dir=APP)
        try:
            app.call("trivial", {"text": "warm"}, {"mode": "two-way", "executionMode": "headless"})
            for case, (_, _, bound) in CASES.items():
                for mode in ("one-way", "two-way"):
                    counts = measure(app, proxy, azurite.connection_string, case, mode)
                    idle = counts.pop(POLL, 0)
                    reads = counts.pop(READ, 0) if mode == "two-way" else 0
                    total = counts.total() / JOBS
                    report(
                        "job_ops",
                        job=case,
                        mode=mode,
                        per_job=total,
                        bound=bound,
                        within_bound=total <= bound,
                        requests={name: count / JOBS for name, count in sorted(counts.items())},
                        waiter_reads=reads / JOBS,
                        idle_polls=idle,
                    )
        finally:
            app.stop()


if __name__ == "__main__":
    main()
