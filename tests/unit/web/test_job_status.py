"""`GET /mcp/jobs/{id}`: what is told, when it changes, and what it costs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.jobs import keys, model, payload, view
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import ErrorCode, Job, StoredBody
from shared.jobs.rows import stamp
from shared.jobs.store import Change
from shared.tool import ToolAnnotations
from tests.unit.web.support import OTHER, Web, body

NOW = model.utc_now()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "FIRST_POLL", 0.005)


def running(web: Web) -> Job:
    return web.store.write(model.claim(web.bench.job(web.bench.submit()), model.utc_now(), 60_000))


def tag(web: Web, job: Job, **params: str) -> str:
    return str(web("status", job, **params).headers["ETag"])


def lines(*texts: str, before: int = 0, chunk: int = 0) -> Change:
    ring = LogRing(before, chunk)
    for text in texts:
        ring.append(Level.INFO, text, NOW)
    return Change(tuple(ring.take_dirty()))


class TestTag:
    def test_what_has_not_changed_is_304_without_a_body_for_one_request(self) -> None:
        web = Web()
        job = running(web)
        first = web("status", job)
        assert (first.status_code, web.took) == (200, 1)
        again = web("status", job, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.get_body(), web.took) == (304, b"", 1)
        assert again.headers["ETag"] == first.headers["ETag"]
        assert again.headers["Cache-Control"] == "no-store"
        assert again.headers["Retry-After"] == "1"

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ("{tag}", 304),
            ("W/{tag}", 304),
            ('"other", {tag}', 304),
            ('"other",W/{tag} , "more"', 304),
            ("*", 304),
            ('"other"', 200),
            ('W/"other", "more"', 200),
            ("", 200),
            (",,", 200),
            ('"', 200),
        ],
    )
    def test_the_tags_of_a_list_count_weak_or_strong(self, given: str, status: int) -> None:
        web = Web()
        job = running(web)
        headers = {"If-None-Match": given.format(tag=tag(web, job))}
        assert web("status", job, headers=headers).status_code == status

    def test_a_renewed_lease_is_no_news(self) -> None:
        web = Web()
        job = running(web)
        before = tag(web, job)
        renewed = web.store.write(model.renew(job, model.utc_now(), 90_000))
        assert renewed.etag != job.etag
        assert tag(web, job) == before
        web.store.write(replace(renewed, delivery_error="internal", nonce="x"))
        assert tag(web, job) == before

    def test_progress_lines_and_states_are_news(self) -> None:
        web = Web()
        job = web.bench.submit()
        tags = [tag(web, job)]
        job = web.store.write(model.claim(web.bench.job(job), model.utc_now(), 60_000))
        tags.append(tag(web, job))
        job = web.store.write(replace(job, progress_percent=1))
        tags.append(tag(web, job))
        job = web.store.write(replace(job, progress_message="on"))
        tags.append(tag(web, job))
        job = web.store.write(replace(job, log_lines=1), lines("one"))
        tags.append(tag(web, job))
        job = web.store.write(replace(job, cancel_requested=True))
        tags.append(tag(web, job))
        web.store.write(model.complete(job, model.utc_now(), payload.stored_body(b'{"structured": 1}')))
        tags.append(tag(web, job))
        assert len(set(tags)) == len(tags)

    def test_another_result_is_another_tag(self) -> None:
        web = Web()
        found = set()
        for stored in (
            StoredBody(1, inline=b"{}"),
            StoredBody(1, inline=b"[]"),
            StoredBody(40_000, "digest", 1),
            StoredBody(40_000, "another", 1),
        ):
            ended = model.complete(running(web), NOW, stored)
            same = replace(ended, job_id="x", correlation_id="", created_at=NOW, started_at=NOW, attempts=())
            found.add(view._etag(same))
        assert len(found) == 4

    def test_lines_that_are_not_asked_for_are_no_news(self) -> None:
        web = Web()
        job = running(web)
        before = tag(web, job, logsAfter="5")
        job = web.store.write(job, lines("one"))
        assert tag(web, job, logsAfter="5") == before


class TestWait:
    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(view, "LAST_POLL", 0.01)

    def test_it_answers_when_what_is_seen_changes(self) -> None:
        web = Web()
        job = running(web)
        seen = {"If-None-Match": tag(web, job)}

        async def both(headers: dict[str, str]) -> Any:
            waiting = asyncio.create_task(web.send("status", job, headers=headers, wait="20"))
            await asyncio.sleep(0.03)
            assert not waiting.done()
            found = web.bench.job(job)
            renewed = web.store.write(model.renew(found, model.utc_now(), 90_000))
            await asyncio.sleep(0.03)
            assert not waiting.done()
            web.store.write(replace(renewed, progress_percent=found.progress_percent + 1))
            return await waiting

        for percent, headers in ((1, seen), (2, {})):
            answer = asyncio.run(both(headers))
            assert (answer.status_code, body(answer)["progress"]["percent"]) == (200, percent)
            seen = {"If-None-Match": answer.headers["ETag"]}

    @pytest.mark.parametrize("known", ["{tag}", '{tag}, "older"', 'W/"older", W/{tag}', '"a", "b",{tag}'])
    def test_at_the_deadline_it_is_304_for_who_knows_it_already(self, known: str) -> None:
        web = Web()
        job = running(web)
        headers = {"If-None-Match": known.format(tag=tag(web, job))}
        started = time.monotonic()
        answer = web("status", job, headers=headers, wait="0.05")
        assert (answer.status_code, answer.get_body()) == (304, b"")
        assert 0.04 < time.monotonic() - started < 5
        assert web.took >= 2

    def test_at_the_deadline_it_is_200_for_anybody_else(self) -> None:
        web = Web()
        answer = web("status", running(web), wait="0.03")
        assert answer.status_code == 200
        assert web.took >= 2

    def test_who_knows_something_older_does_not_wait(self) -> None:
        web = Web()
        answer = web("status", running(web), headers={"If-None-Match": '"older"'}, wait="25")
        assert (answer.status_code, web.took) == (200, 1)

    def test_any_tag_does_not_wait(self) -> None:
        web = Web()
        assert web("status", running(web), headers={"If-None-Match": "*"}, wait="25").status_code == 304

    def test_a_job_that_has_ended_is_not_waited_for(self) -> None:
        web = Web()
        job = web.bench.submit()
        web.bench.deliver()
        assert web("status", job, wait="25").status_code == 200
        assert web("status", job, headers={"If-None-Match": tag(web, job)}, wait="25").status_code == 304

    def test_a_job_that_is_purged_meanwhile_is_not_found(self) -> None:
        web = Web()
        job = running(web)

        async def both() -> Any:
            waiting = asyncio.create_task(web.send("status", job, wait="20"))
            await asyncio.sleep(0.02)
            web.store.purge(job)
            return await waiting

        assert asyncio.run(both()).status_code == 404


class TestBody:
    def test_it_tells_whose_it_is_what_it_was_given_and_how_each_attempt_went(self) -> None:
        web = Web(annotations=ToolAnnotations(read_only=True))
        job = web.bench.submit()
        began = model.utc_now() - timedelta(minutes=5)
        web.store.write(
            replace(model.claim(web.bench.job(job), began, 60_000), prefill_summary='{"csv":"a,b"}')
        )
        # This read finds that the worker was lost.
        told = body(web("status", job))
        lost = {
            "attempt": 1,
            "startedAt": stamp(began),
            "endedAt": stamp(began + timedelta(minutes=1)),
            "outcome": "lost",
        }
        assert (told["owner"], told["inputSummary"]) == ("default", '{"csv":"a,b"}')
        assert (told["status"], told["attempts"]) == ("pending", [lost])
        web.bench.deliver()
        answer = web("status", job)
        told = body(answer)
        second = told["attempts"][1]
        assert told["attempts"] == [
            lost,
            {
                "attempt": 2,
                "startedAt": told["startedAt"],
                "endedAt": told["completedAt"],
                "outcome": "completed",
            },
        ]
        assert second["startedAt"] > lost["endedAt"]
        again = web("status", job, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, web.took) == (304, 1)

    def test_a_running_attempt_has_no_end_and_lists_are_short(self) -> None:
        web = Web()
        job = running(web)
        told = body(web("status", job))
        assert told["attempts"] == [{"attempt": 1, "startedAt": told["startedAt"]}]
        (listed,) = body(web("list"))["jobs"]
        assert {"attempts", "owner", "inputSummary"} & set(listed) == set()

    def test_a_row_of_an_older_release_tells_what_it_knows(self) -> None:
        web = Web()
        job = running(web)
        row = web.store._row(job.job_id, keys.JOB_ROW)
        assert row is not None
        del row["attempts"]
        assert "attempts" not in body(web("status", job))
        ended = web.store.write(model.fail(web.bench.job(job), model.utc_now(), ErrorCode.TIMEOUT, "late"))
        told = body(web("status", ended))
        assert told["attempts"] == [
            {
                "attempt": 1,
                "startedAt": told["startedAt"],
                "endedAt": told["completedAt"],
                "outcome": "timeout",
            }
        ]

    def test_a_job_that_waits_or_runs_says_when_to_ask_again(self) -> None:
        web = Web()
        job = web.bench.submit()
        assert web("status", job).headers["Retry-After"] == "2"
        job = web.store.write(model.claim(web.bench.job(job), model.utc_now(), 60_000))
        answer = web("status", job)
        assert answer.headers["Retry-After"] == "1"
        assert body(answer)["status"] == "in_progress"
        web.store.write(model.fail(job, model.utc_now(), ErrorCode.TOOL_ERROR, "no"))
        answer = web("status", job)
        assert "Retry-After" not in answer.headers
        assert (body(answer)["error"], body(answer)["errorCode"]) == ("no", "tool_error")

    def test_only_newer_lines(self) -> None:
        web = Web()
        job = running(web)
        web.store.write(replace(job, log_lines=260), lines(*[f"line {number}" for number in range(1, 261)]))
        whole = body(web("status", job))
        assert [line["seq"] for line in whole["logs"]] == list(range(61, 261))
        assert whole["logsDropped"] == 60
        newer = body(web("status", job, logsAfter="258"))
        assert [(line["seq"], line["message"], line["level"]) for line in newer["logs"]] == [
            (259, "line 259", "info"),
            (260, "line 260", "info"),
        ]
        assert body(web("status", job, logsAfter="999"))["logs"] == []

    def test_nothing_is_kept_by_anybody_on_the_way(self) -> None:
        web = Web()
        for job in (running(web), keys.new_job_id(), "malformed"):
            answer = web("status", job)
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.mimetype == "application/json"

    def test_a_large_result_is_read_only_to_be_told(self) -> None:
        web = Web(lambda: "x" * 50_000)
        job = web.bench.submit()
        web.bench.deliver()
        answer = web("status", job)
        assert (web.took, body(answer)["result"]) == (2, {"result": "x" * 50_000})
        again = web("status", job, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, web.took) == (304, 1)
        web("list")
        assert web.took == 1

    def test_a_result_that_is_lost_is_told(self) -> None:
        web = Web(lambda: "x" * 50_000)
        job = web.bench.submit()
        web.bench.deliver()
        web.store.blobs.clear()
        told = body(web("status", job))
        assert (told["status"], told["error"]) == ("completed", "The job's stored result is gone.")
        assert "result" not in told


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"wait": "26"}, "wait: must be a number of seconds from 0 to 25"),
        ({"wait": "-1"}, "wait: must be"),
        ({"wait": "nan"}, "wait: must be"),
        ({"wait": "inf"}, "wait: must be"),
        ({"wait": "1e1"}, "wait: must be"),
        ({"wait": "1_0"}, "wait: must be"),
        ({"wait": ""}, "wait: must be"),
        ({"wait": "soon"}, "wait: must be"),
        ({"wait": "٣"}, "wait: must be"),
        ({"logsAfter": "-1"}, "logsAfter: must be a whole number from 0 to"),
        ({"logsAfter": "1.5"}, "logsAfter: must be"),
        ({"logsAfter": "²"}, "logsAfter: must be"),
        ({"logsAfter": "9" * 400}, "logsAfter: must be"),
        ({"waitMs": "5"}, "unknown parameter 'waitMs'; known are logsAfter, wait"),
        ({"wait": "x", "logsAfter": "y", "z": ""}, "unknown parameter 'z'"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_legal(params: dict[str, str], said: str) -> None:
    web = Web()
    job = running(web)
    answer = web("status", job, **params)
    assert (answer.status_code, web.took) == (400, 0)
    assert said in body(answer)["error"]
    for name in params:
        assert name in body(answer)["error"]


def test_a_functions_key_is_no_parameter_of_ours() -> None:
    web = Web()
    assert web("status", running(web), code="key").status_code == 200


@pytest.mark.parametrize("function", ["status", "cancel", "artifact"])
def test_the_order_of_refusals(function: str) -> None:
    """Token, verb, id, owner: and nothing of it tells whether a job exists."""
    web = Web()
    job = web.bench.submit()
    method = "POST" if function == "cancel" else "GET"
    wrong = "GET" if function == "cancel" else "POST"
    refused = [
        web(function, one, token=token, method=verb, name="a", wait="x")
        for one in (job, keys.new_job_id(), "malformed")
        for token in (None, "", "wrong")
        for verb in (method, wrong)
    ]
    assert {(one.status_code, one.get_body()) for one in refused} == {
        (401, b'{"error":"Unauthorized: valid MCP access token required"}')
    }
    assert web.took == 0
    for one in (job, keys.new_job_id(), "malformed"):
        answer = web(function, one, method=wrong, name="a")
        assert (answer.status_code, web.took) == (405, 0)
        assert answer.headers["Allow"] == {"cancel": "POST", "status": "GET", "artifact": "GET, HEAD"}[function]
    told = set()
    for one, token in ((job, OTHER), (keys.new_job_id(), OTHER), ("malformed", OTHER)):
        answer = web(function, one, method=method, token=token, name="a")
        told.add((answer.status_code, answer.get_body()))
    assert told == {(404, b'{"error":"Job not found"}')}
    assert web.took == 0  # the malformed one


def test_storage_trouble_is_no_secret_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    web = Web()
    job = running(web)

    def broken(job_id: str) -> Any:
        raise ConnectionError("sentinel of the inside")

    web.store.with_logs = broken  # type: ignore[method-assign]
    answer = web("status", job)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "sentinel" not in answer.get_body().decode()
    assert "sentinel" in caplog.text


class TestCancel:
    def test_the_answers(self) -> None:
        web = Web()
        pending, asked = web.bench.submit(), running(web)
        answer = web("cancel", pending, method="POST")
        assert (answer.status_code, body(answer)["status"], body(answer)["errorCode"]) == (
            200,
            "failed",
            "cancelled",
        )
        assert "logs" not in body(answer)
        for _ in range(2):
            answer = web("cancel", asked, method="POST")
            assert (answer.status_code, body(answer)["status"]) == (202, "in_progress")
            assert body(answer)["cancelRequested"] is True
        assert body(web("status", asked))["cancelRequested"] is True
        answer = web("cancel", pending, method="POST")
        assert (answer.status_code, body(answer)) == (
            409,
            {"error": "The job has ended already: it is failed.", "status": "failed"},
        )
