"""`GET /mcp/jobs`: an owner's jobs, page by page."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.contract.envelope import CallPlan
from shared.jobs import keys, listing, model
from shared.jobs.model import ErrorCode, Job
from shared.jobs.store import Page, Query
from shared.jobs.submit import submit
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.jobs.bench import SEALER
from tests.unit.web.support import OTHER, TOKEN, Web, body


def a_web() -> Web:
    def work(sentinel: int = 0) -> dict[str, int]:
        return {"a": 1}

    return Web(work)


def made(web: Web, count: int, owner: str = "default", **values: Any) -> list[str]:
    """Ids of new jobs, newest first."""
    plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 1_000, None)
    found = []
    for number in range(count):
        work = submit(
            web.bench.entry.spec,
            {"sentinel": number},
            plan,
            owner=owner,
            store=web.store,
            sealer=SEALER,
            job_id=keys.new_job_id(1_900_000_000_000 + len(web.store.rows) * 10 + number),
        )
        job = asyncio.run(work)
        if values:
            web.store.write(replace(job, **values))
        found.append(job.job_id)
    return found[::-1]


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.get_body()
    return [job["jobId"] for job in body(answer)["jobs"]]


def test_newest_first_without_logs_results_and_arguments() -> None:
    web = a_web()
    jobs = made(web, 3)
    web.bench.deliver()
    answer = web("list")
    assert ids(answer) == jobs
    assert web.took == 1
    assert body(answer).keys() == {"jobs"}
    for job in body(answer)["jobs"]:
        assert not {"logs", "logsDropped", "result", "content"} & job.keys()
        assert job["statusUrl"] == f"/mcp/jobs/{job['jobId']}/status"
    assert b"sentinel" not in answer.get_body()


def test_everybody_sees_their_own() -> None:
    web = a_web()
    mine, hers = made(web, 2), made(web, 3, "ana")
    assert ids(web("list")) == mine
    assert ids(web("list", token=OTHER)) == hers
    assert ids(web("list", tool="x' or owner ne 'default")) == []


def test_every_job_comes_once_whatever_the_pages() -> None:
    web = a_web()
    jobs: list[str] = []
    for _ in range(4):
        made(web, 2, "ana")
        jobs = made(web, 1) + jobs
    found: list[str] = []
    params = {"limit": "3"}
    for _ in range(20):
        answer = web("list", **params)
        assert web.took <= listing.SCANS
        found += ids(answer)
        if "cursor" not in body(answer):
            break
        params["cursor"] = body(answer)["cursor"]
    assert found == jobs


def test_a_page_may_be_short_and_still_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage gives a part of a range at a time, also an empty one."""
    web = a_web()
    jobs = made(web, 2)
    scan = web.store.scan
    calls: list[str | None] = []

    def slow(query: Query, limit: int, token: str | None = None) -> Page:
        calls.append(token)
        if len(calls) <= listing.SCANS:
            web.store.requests["scan"] += 1
            return Page((), f"{len(calls):032x}")
        return scan(query, limit, None)

    monkeypatch.setattr(web.store, "scan", slow)
    first = web("list")
    assert (ids(first), web.took) == ([], listing.SCANS)
    assert ids(web("list", cursor=body(first)["cursor"])) == jobs
    assert calls[-1] == f"{listing.SCANS:032x}"


def test_filters() -> None:
    web = a_web()
    (ended,) = made(web, 1)
    web.bench.deliver()
    (other,) = made(web, 1, tool_name="other")
    (waits,) = made(web, 1)
    assert ids(web("list", status="completed")) == [ended]
    assert ids(web("list", status="pending")) == [waits, other]
    assert ids(web("list", tool="other")) == [other]
    assert ids(web("list", tool="other", status="completed")) == []
    assert ids(web("list", status="failed")) == []


def test_what_a_list_mends_it_shows_as_mended() -> None:
    """A job whose worker was lost is not listed as running."""
    web = a_web()
    (lost,) = made(web, 1)
    job = web.store.get(lost)
    assert job is not None
    web.store.write(model.claim(job, job.created_at - timedelta(minutes=1), 1))
    (shown,) = body(web("list"))["jobs"]
    assert (shown["status"], shown["errorCode"]) == ("failed", "worker_lost")
    assert ids(web("list", status="in_progress")) == []


def test_a_row_that_cannot_be_read_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    web = a_web()
    jobs = made(web, 3)
    web.store.rows[keys.partition_key(jobs[1]), keys.JOB_ROW]["errorCode"] = "from the future"
    assert ids(web("list")) == [jobs[0], jobs[2]]
    assert keys.partition_key(jobs[1]) in caplog.text


class TestCursor:
    def cursor(self, web: Web, token: str = TOKEN) -> str:
        return str(body(web("list", token=token, limit="1"))["cursor"])

    def test_it_says_nothing(self) -> None:
        web = a_web()
        made(web, 1, "ana")
        (_, older) = made(web, 2)
        cursor = self.cursor(web)
        assert cursor.isascii()
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        for hidden in (older, keys.partition_key(older)):
            assert hidden not in cursor
            assert hidden.encode() not in raw
        assert self.cursor(web) != cursor

    def test_it_works_for_nobody_else(self) -> None:
        web = a_web()
        made(web, 2)
        made(web, 2, "ana")
        assert web("list", token=OTHER, cursor=self.cursor(web)).status_code == 400
        assert web("list", token=OTHER, cursor=self.cursor(web, OTHER)).status_code == 200

    def test_it_is_no_job_input_and_no_job_input_is_one(self) -> None:
        web = a_web()
        (job_id,) = made(web, 1)
        sealed = web.store.rows[keys.partition_key(job_id), keys.INPUT_ROW]["sealed"]
        cursor = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
        assert web("list", cursor=cursor).status_code == 400

    @pytest.mark.parametrize(
        "change", ["", "x", "é", "=", "AQ", "{cursor}A", "A{cursor}", "{half}", " {cursor}"]
    )
    def test_a_changed_one_is_refused_by_name(self, change: str) -> None:
        web = a_web()
        made(web, 2)
        cursor = self.cursor(web)
        answer = web("list", cursor=change.format(cursor=cursor, half=cursor[: len(cursor) // 2]))
        assert (answer.status_code, web.took) == (400, 0)
        assert body(answer)["error"].startswith("cursor: must ")

    def test_any_changed_character_is_found(self) -> None:
        web = a_web()
        made(web, 2)
        cursor = self.cursor(web)
        for at in range(0, len(cursor) - 1, 7):
            changed = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
            assert web("list", cursor=changed).status_code == 400


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"limit": "0"}, "limit: must be a whole number from 1 to 100"),
        ({"limit": "101"}, "limit: must be"),
        ({"limit": "ten"}, "limit: must be"),
        ({"status": "done"}, "status: must be one of pending, in_progress, completed, failed"),
        ({"tool": ""}, "tool: must have 1 to 200 characters"),
        ({"tool": "x" * 201}, "tool: must have"),
        ({"owner": "ana"}, "unknown parameter 'owner'; known are cursor, limit, status, tool"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_legal(params: dict[str, str], said: str) -> None:
    web = a_web()
    answer = web("list", **params)
    assert (answer.status_code, web.took) == (400, 0)
    assert said in body(answer)["error"]


def test_without_a_token_or_with_another_verb_nothing_is_listed() -> None:
    web = a_web()
    made(web, 1)
    assert web("list", token=None, limit="x").status_code == 401
    answer = web("list", method="POST")
    assert (answer.status_code, answer.headers["Allow"], web.took) == (405, "GET", 0)


def test_a_failed_job_is_listed_with_its_reason() -> None:
    web = a_web()
    (job_id,) = made(web, 1)
    job: Job | None = web.store.get(job_id)
    assert job is not None
    web.store.write(model.fail(job, model.utc_now(), ErrorCode.TOOL_ERROR, "no such file"))
    (shown,) = body(web("list"))["jobs"]
    assert (shown["error"], shown["errorCode"]) == ("no such file", "tool_error")
