"""A host that is killed in the middle of a job: nothing is lost, and a read tells what became of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import start_app, wait_until

pytestmark = pytest.mark.acceptance

LEASE: dict[str, Any] = {"TOOLBOX_LEASE_MS": "1000", "TOOLBOX_LEASE_RENEW_MS": "300"}
ROWS = 400_000


def test_a_job_survives_its_host(tmp_path: Path, new_storage: Callable[[], str]) -> None:
    """`csv_profile` is read-only, so its job may run again; it is read all the time and never missing."""
    rows = "".join(f"{number},{number * 0.25},name{number % 97}\n" for number in range(ROWS))
    connection = new_storage()
    (tmp_path / "one").mkdir()
    first = start_app(tmp_path / "one", connection, **LEASE)
    try:
        envelope = {"executionMode": "headless", "mode": "one-way"}
        accepted = first.call("csv_profile", {"csv": f"id,value,name\n{rows}"}, envelope)
        job_id = accepted["structuredContent"]["jobId"]
        wait_until(lambda: first.job(job_id).json()["progress"]["percent"] > 0)
    finally:
        first.process.kill()
        first.process.wait(10)
        first.http.close()

    (tmp_path / "two").mkdir()
    second = start_app(tmp_path / "two", connection, **LEASE)
    try:
        seen: list[tuple[str, int]] = []

        def over() -> Any:
            answer = second.job(job_id)
            assert answer.status_code == 200
            body = answer.json()
            seen.append((body["status"], body["attempt"]))
            return body if body["status"] in ("completed", "failed") else None

        body = wait_until(over, 60)
        assert (body["status"], body["attempt"]) == ("completed", 2), body
        assert body["result"]["row_count"] == ROWS
        # The lease may have run out while the second host started; then the first read gave the job back.
        assert seen[0] in (("in_progress", 1), ("pending", 1))
        assert [line["message"] for line in body["logs"]].count("completed") == 1
        lost, last = body["attempts"]
        assert (lost["outcome"], last["outcome"]) == ("lost", "completed")
        assert body["createdAt"] <= lost["startedAt"] < lost["endedAt"] <= last["startedAt"] < last["endedAt"]
        assert (last["startedAt"], last["endedAt"]) == (body["startedAt"], body["completedAt"])
    finally:
        second.stop()
