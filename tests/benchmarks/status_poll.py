"""`status_poll`: what a repeated `GET /mcp/jobs/{id}` with `If-None-Match` costs while nothing has changed.

Bound: one storage read, answered 304. Storage requests are counted by a proxy before Azurite; the queue's,
which the host makes on its own, are left out. One job is done, one has its result in a blob, one is running.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import TOKEN, App, start_app
from tests.benchmarks.job_engine import own_azurite
from tests.benchmarks.measure import report
from tests.support.fault_proxy import FaultProxy

POLLS = 20
APP = Path(__file__).parent / "apps" / "jobs"
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "completed": ("trivial", {"text": "hello"}),
    "completed_in_blob": ("bulky", {"size": 100_000}),
    "running": ("patient", {"seconds": 12}),
}


def poll(app: App, proxy: FaultProxy, job_id: str) -> dict[str, Any]:
    headers = {"X-MCP-Auth-Token": TOKEN}
    first = app.http.get(f"/mcp/jobs/{job_id}", headers=headers)
    etag = first.headers.get("ETag")
    if etag is not None:
        headers["If-None-Match"] = etag
    proxy.forget()
    started = time.perf_counter()
    answers = [app.http.get(f"/mcp/jobs/{job_id}", headers=headers) for _ in range(POLLS)]
    elapsed = time.perf_counter() - started
    reads = Counter(
        f"{one.service} {one.method} {one.operation}" for one in proxy.seen() if one.service != "queue"
    )
    return {
        "status_codes": Counter(str(answer.status_code) for answer in answers),
        "has_etag": etag is not None,
        "requests_per_get": reads.total() / POLLS,
        "requests": {name: count / POLLS for name, count in sorted(reads.items())},
        "storage_bytes_per_get": sum(one.answer_size for one in proxy.seen() if one.service != "queue") / POLLS,
        "answer_bytes": len(answers[-1].content),
        "ms_per_get": round(elapsed / POLLS * 1000, 3),
    }


def started(app: App, name: str) -> str:
    tool, arguments = JOBS[name]
    result = app.call(tool, arguments, {"mode": "one-way", "executionMode": "headless"})
    job_id = str(result["structuredContent"]["jobId"])
    wanted = ("in_progress",) if name == "running" else ("completed", "failed")
    while app.job(job_id).json()["status"] not in wanted:
        time.sleep(0.05)
    if name == "running":
        time.sleep(1.5)  # its first line is written after a second
    return job_id


def main() -> None:
    with own_azurite() as azurite, FaultProxy(azurite.ports) as proxy:
        app = start_app(azurite.data_dir, proxy.connection_string, app_dir=APP)
        try:
            for name in JOBS:
                report("status_poll", job=name, **poll(app, proxy, started(app, name)))
        finally:
            app.stop()


if __name__ == "__main__":
    main()
