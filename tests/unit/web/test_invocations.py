"""`GET /mcp/invocations`: jobs and all other calls of an owner, in one list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import azure.functions as func
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared import ids
from shared.invocations import reading
from shared.invocations.record import Line, Outcome, Record, entities
from shared.invocations.store import RowPage, StoredRow
from shared.jobs import model
from shared.jobs.inline_artifacts import inline_record
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.store import Page
from shared.jobs.testing import MemoryJobStore
from shared.settings import Settings
from shared.tool.spec import ExecutionMode, JsonObject, Mode, ToolSpec
from shared.web import history
from shared.web.invocations import InvocationsApi
from tests.unit.invocations.test_log import a_record
from tests.unit.jobs.bench import SEALER
from tests.unit.web.support import OTHER, SETTINGS, TOKEN, body

BASE = 1_900_000_000_000


class MemoryRows:
    """Rows as the table would keep and give them."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self.scans = 0

    def write(self, records: Sequence[Record]) -> None:
        for row in entities([Line(record.id, record.line()) for record in records]):
            self.rows[row["PartitionKey"], row["RowKey"]] = row

    def scan(self, before: str, limit: int, token: str | None = None) -> RowPage:
        self.scans += 1
        wanted = sorted(
            key
            for key, row in self.rows.items()
            if (not before or row["oldest"] < before) and list(key) > json.loads(token or "[]")
        )
        found = [self.rows[key] for key in wanted[:limit]]
        page = tuple(StoredRow(ids.of_inverted(row["RowKey"]), row["lines"]) for row in found)
        return RowPage(page, json.dumps(wanted[limit - 1]) if len(wanted) > limit else None)

    def around(self, identifier: str) -> tuple[StoredRow, ...]:
        self.scans += 1
        return tuple(
            StoredRow(ids.of_inverted(row["RowKey"]), row["lines"])
            for row in self.rows.values()
            if row["oldest"] <= identifier <= ids.of_inverted(row["RowKey"])
        )


class List:
    """The HTTP functions on both tables in memory."""

    def __init__(self, sealer: Sealer = SEALER, settings: Settings = SETTINGS) -> None:
        self.rows = MemoryRows()
        self.jobs = MemoryJobStore()
        self.api = InvocationsApi(settings, sealer, lambda: self.rows, lambda: self.jobs)
        #: Scans of (records, jobs) that the last request took.
        self.took = (0, 0)

    def call(self, moment: int, **values: Any) -> str:
        """One stored call; its id."""
        record = a_record(
            **{"id": ids.new_id(BASE + moment), "owner": "default", "execution_mode": "inline", **values}
        )
        self.rows.write([record])
        return record.id

    def job(self, moment: int, owner: str = "default", **values: Any) -> str:
        came = ids.new_id(BASE + moment)
        job = Job(
            job_id=came,
            owner=owner,
            tool_id="t",
            tool_name="t",
            mode=Mode.ONE_WAY,
            execution_mode=ExecutionMode.HEADLESS,
            correlation_id=ids.correlation_id(came),
            timeout_ms=1_000,
            max_attempts=1,
            created_at=model.utc_now(),
            input_at="",
        )
        self.jobs.create(replace(job, **values), b"")
        return came

    def get(
        self,
        given: Mapping[str, str] | None = None,
        /,
        *,
        token: str = TOKEN,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        **params: str,
    ) -> func.HttpResponse:
        request = func.HttpRequest(
            method=method,
            url="http://localhost/mcp/invocations",
            headers={"X-MCP-Auth-Token": token, **(headers or {})},
            params={**(given or {}), **params},
            route_params={},
            body=b"",
        )
        before = (self.rows.scans, self.jobs.requests["scan"])
        answer = asyncio.run(self.api.list(request))
        self.took = (self.rows.scans - before[0], self.jobs.requests["scan"] - before[1])
        return answer

    def one(
        self,
        identifier: str,
        *,
        token: str | None = TOKEN,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        **params: str,
    ) -> func.HttpResponse:
        request = func.HttpRequest(
            method=method,
            url="http://localhost/mcp/invocations",
            headers={**({} if token is None else {"X-MCP-Auth-Token": token}), **(headers or {})},
            params=params,
            route_params={"id": identifier},
            body=b"",
        )
        before = (self.rows.scans, self.jobs.requests.total())
        answer = asyncio.run(self.api.one(request))
        self.took = (self.rows.scans - before[0], self.jobs.requests.total() - before[1])
        return answer

    def shown(self, token: str = TOKEN, **params: str) -> list[JsonObject]:
        answer = self.get(params, token=token)
        assert answer.status_code == 200, answer.get_body()
        found: list[JsonObject] = body(answer)["invocations"]
        return found

    def all(
        self,
        given: Mapping[str, str] | None = None,
        /,
        *,
        token: str = TOKEN,
        most_pages: int = 400,
        most_scans: int = history.SCANS,
        **params: str,
    ) -> list[str]:
        """Ids over all pages."""
        found: list[str] = []
        for _ in range(most_pages):
            answer = self.get({**(given or {}), **params}, token=token)
            assert answer.status_code == 200, answer.get_body()
            assert max(self.took) <= most_scans
            found += [entry["id"] for entry in body(answer)["invocations"]]
            if "cursor" not in body(answer):
                return found
            params["cursor"] = body(answer)["cursor"]
        raise AssertionError("the pages do not end")


def test_calls_and_jobs_are_one_list_newest_first_for_one_request_to_each_table() -> None:
    listed = List()
    old, job, new = listed.call(1_000), listed.job(2_000), listed.call(3_000)
    assert [entry["id"] for entry in listed.shown()] == [new, job, old]
    assert listed.took == (1, 1)
    assert "cursor" not in body(listed.get())


def test_a_call_tells_what_is_known_of_it() -> None:
    listed = List()
    call = listed.call(
        0,
        tool_name="work",
        outcome=Outcome.FAILED,
        duration_ms=7,
        mode="two-way",
        prefill_summary='{"a":1}',
        error="no such file",
        error_code="tool_error",
    )
    assert listed.shown() == [
        {
            "id": call,
            "correlationId": f"mcp-{call}",
            "toolId": "t",
            "toolName": "work",
            "status": "failed",
            "outcome": "failed",
            "mode": "two-way",
            "executionMode": "inline",
            "owner": "default",
            "createdAt": "2030-03-17T17:46:40.000Z",
            "durationMs": 7,
            "inputSummary": '{"a":1}',
            "error": "no such file",
            "errorCode": "tool_error",
        }
    ]


def test_a_job_tells_how_it_stands_and_its_duration_only_once_it_has_ended() -> None:
    listed = List()
    job_id = listed.job(0, prefill_summary="{}")
    job = listed.jobs.get(job_id)
    assert job is not None
    now = model.utc_now()
    running = listed.jobs.write(
        replace(model.claim(job, now, 60_000), progress_percent=42, progress_message="on")
    )
    (entry,) = listed.shown()
    assert (entry["status"], entry["outcome"], entry["attempt"]) == ("in_progress", "accepted", 1)
    assert entry["progress"] == {"percent": 42, "message": "on"}
    assert (entry["jobId"], entry["statusUrl"]) == (job_id, f"/mcp/jobs/{job_id}/status")
    assert "durationMs" not in entry
    assert entry["createdAt"] == "2030-03-17T17:46:40.000Z"
    end = model.fail(running, now, ErrorCode.TIMEOUT, "x" * 9_000)
    came = 1_900_000_000.0
    listed.jobs.write(
        replace(end, completed_at=end.created_at.fromtimestamp(came + 1.5, end.created_at.tzinfo))
    )
    (entry,) = listed.shown()
    assert (entry["status"], entry["errorCode"], entry["durationMs"]) == ("failed", "timeout", 1_500)
    assert len(entry["error"]) == 2_000


def test_a_lost_workers_job_is_shown_as_mended() -> None:
    listed = List()
    job = listed.jobs.get(listed.job(0))
    assert job is not None
    listed.jobs.write(model.claim(job, model.utc_now() - timedelta(minutes=5), 1))
    (entry,) = listed.shown()
    assert (entry["status"], entry["errorCode"]) == ("failed", "worker_lost")
    assert listed.shown(status="in_progress") == []


def test_an_inline_call_that_left_files_is_one_entry() -> None:
    listed = List()
    call = listed.call(0, outcome=Outcome.FAILED, error="boom")
    spec = ToolSpec("t", "t", "T", "", {"type": "object"}, None)
    listed.jobs.create(inline_record(spec, call, "default", mode=Mode.TWO_WAY, timeout_ms=1_000), b"")
    (entry,) = listed.shown()
    assert (entry["id"], entry["jobId"]) == (call, call)
    assert (entry["status"], entry["error"]) == ("failed", "boom")
    assert listed.shown(status="completed") == []


def test_everybody_sees_their_own_and_the_calls_of_nobody_are_the_operators() -> None:
    listed = List()
    mine = [listed.job(1), listed.call(0)]
    hers = [listed.job(3, "ana"), listed.call(2, owner="ana")]
    nobody = listed.call(
        9, owner="", outcome=Outcome.REJECTED, prefill_summary='{"salary":1}', error="no token"
    )
    assert listed.all() == [nobody, *mine]
    assert listed.all(token=OTHER) == hers
    (entry,) = listed.shown(status="rejected")
    # Whose arguments those were is not known.
    assert (entry["error"], "inputSummary" in entry, "owner" in entry) == ("no token", False, False)
    assert listed.shown(token=OTHER, status="rejected") == []


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({"tool": "other"}, ["call of other", "job of other"]),
        ({"status": "completed"}, ["call of other", "completed call"]),
        ({"status": "failed"}, ["failed call", "failed job"]),
        ({"status": "rejected"}, ["rejected call"]),
        ({"status": "pending"}, ["job of other", "windowed job"]),
        ({"status": "in_progress"}, ["running job"]),
        ({"mode": "two-way"}, ["failed call"]),
        ({"executionMode": "windowed"}, ["windowed job"]),
        ({"executionMode": "headless", "status": "failed"}, ["failed job"]),
        ({"tool": "x' or owner ne 'default"}, []),
    ],
)
def test_filters(params: dict[str, str], wanted: list[str]) -> None:
    listed = List()
    now = model.utc_now()
    running: Any = {"status": Status.IN_PROGRESS, "lease_until": now + timedelta(hours=1), "started_at": now}
    names = {
        listed.call(9, tool_name="other", outcome=Outcome.NO_RESULT, execution_mode=""): "call of other",
        listed.call(8): "completed call",
        listed.call(7, outcome=Outcome.FAILED, mode="two-way"): "failed call",
        listed.call(6, outcome=Outcome.REJECTED): "rejected call",
        listed.job(5, tool_name="other"): "job of other",
        listed.job(4, status=Status.FAILED, error="e", error_code=ErrorCode.TOOL_ERROR): "failed job",
        listed.job(3, **running): "running job",
        listed.job(2, execution_mode=ExecutionMode.WINDOWED): "windowed job",
    }
    for limit in ("50", "1"):
        assert [names[entry] for entry in listed.all(params, limit=limit)] == wanted


def test_a_table_that_cannot_hold_what_is_asked_for_is_not_asked() -> None:
    listed = List()
    listed.shown(status="pending")
    assert listed.took == (0, 1)
    listed.shown(status="rejected")
    assert listed.took == (1, 0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 30_000), st.integers(0, 20_000), st.sampled_from(["call", "job", "hers", "her job"])
        ),
        max_size=40,
    ),
    st.integers(1, 7),
    st.integers(1, 6),
)
def test_every_call_comes_once_and_in_order_whatever_the_pages_and_rows(
    happened: list[tuple[int, int, str]], limit: int, in_a_row: int
) -> None:
    """Calls take long, rows hold several of them and overlap, other owners' lie between."""
    listed = List()
    wanted: list[str] = []
    ended: list[tuple[int, Record]] = []
    for moment, took, kind in happened:
        if kind.endswith("job"):
            made = listed.job(moment, "ana" if kind == "her job" else "default")
        else:
            record = a_record(id=ids.new_id(BASE + moment), owner="ana" if kind == "hers" else "default")
            ended.append((moment + took, record))
            made = record.id
        if kind in ("call", "job"):
            wanted.append(made)
    records = [record for _, record in sorted(ended, key=lambda pair: pair[0])]
    for at in range(0, len(records), in_a_row):
        # Stored, and stored again with one more: the first answer was lost.
        listed.rows.write(records[at : at + in_a_row - 1])
        listed.rows.write(records[at : at + in_a_row])
    assert listed.all(limit=str(limit)) == sorted(wanted, reverse=True)


def test_the_usual_page_costs_one_request_to_each_table_also_further_down() -> None:
    listed = List()
    wanted = sorted(
        [listed.call(n * 20_000) for n in range(60)] + [listed.job(n * 20_000 + 1) for n in range(60)]
    )
    params: dict[str, str] = {"limit": "50"}
    found = []
    for _ in range(3):
        page = body(listed.get(params))
        assert listed.took == (1, 1)
        found += [entry["id"] for entry in page["invocations"]]
        params["cursor"] = page.get("cursor", "")
    assert found == wanted[::-1]
    assert params["cursor"] == ""


@pytest.mark.parametrize("kind", ["call", "job"])
def test_a_page_of_one_kind_costs_one_request_too(kind: str) -> None:
    listed = List()
    wanted = [getattr(listed, kind)(number * 20_000) for number in range(9)][::-1]
    params: dict[str, str] = {"limit": "3"}
    for at in (0, 3, 6):
        page = body(listed.get(params))
        assert [entry["id"] for entry in page["invocations"]] == wanted[at : at + 3]
        assert max(listed.took) == 1
        params["cursor"] = page.get("cursor", "")


def test_what_overlaps_never_stops_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page begins, every row has calls that were shown and others: more than a page may unpack."""
    monkeypatch.setattr(reading, "MOST_RECORDS", 5)
    listed = List()
    wanted = []
    for number in range(30):
        records = [a_record(id=ids.new_id(BASE + at + number), owner="default") for at in (100, 4_000)]
        listed.rows.write(records)
        wanted += [record.id for record in records]
    assert listed.all(limit="3", most_scans=20) == sorted(wanted, reverse=True)


def test_a_page_does_bounded_work_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy app: what an owner has lies far below what the others have."""
    monkeypatch.setattr(reading, "MOST_RECORDS", 50)
    listed = List()
    mine = listed.call(0)
    for second in range(1, 61):
        listed.rows.write([a_record(id=ids.new_id(BASE + second * 1_000 + n), owner="ana") for n in range(10)])
    first = listed.get()
    assert (body(first)["invocations"], "cursor" in body(first)) == ([], True)
    assert listed.all() == [mine]


def test_a_scan_that_finds_nothing_for_long_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage may look at a part of a range and give no row of it."""
    listed = List()
    mine = listed.job(0)
    call = listed.call(5)
    scan, asked = listed.jobs.scan, []

    def slow(query: Any, limit: int, token: str | None = None) -> Any:
        step = int(token or "0")
        asked.append(step)
        if step >= 2 * history.SCANS:
            return scan(query, limit, None)
        listed.jobs.requests["scan"] += 1
        return Page((), str(step + 1))

    monkeypatch.setattr(listed.jobs, "scan", slow)
    # Which of its jobs are newer than the call is not known yet.
    assert listed.shown() == []
    asked.clear()
    assert listed.all(most_pages=4) == [call, mine]
    assert asked == list(range(2 * history.SCANS + 1))


WAITING = {"executionMode": "windowed", "status": "pending"}


class TestWaitingWindows:
    """What the page asks for every few seconds."""

    def window(self, listed: List, minutes: float, **values: Any) -> str:
        """A windowed job that began so long ago, and waits for a day."""
        moment = int((model.utc_now() - timedelta(minutes=minutes)).timestamp() * 1_000) - BASE
        values = {"execution_mode": ExecutionMode.WINDOWED, "timeout_ms": 86_400_000, **values}
        return listed.job(moment, **values)

    def test_they_cost_one_request_of_a_range_that_does_not_grow_with_the_table(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed = List()
        fresh, old = self.window(listed, 1), self.window(listed, 29)
        # Jobs of another kind that nobody has taken up, for longer than a page would look.
        plain = ExecutionMode.HEADLESS
        headless = [
            self.window(listed, 120 + number, execution_mode=plain) for number in range(history.SCANS * 100 + 1)
        ]
        scan, looked = listed.jobs.scan, []

        def slow(query: Any, limit: int, token: str | None = None) -> Any:
            looked.append(query)
            return scan(query, limit, token)

        monkeypatch.setattr(listed.jobs, "scan", slow)
        page = body(listed.get(WAITING, limit="20"))
        assert ([entry["id"] for entry in page["invocations"]], "cursor" in page) == ([fresh, old], False)
        assert listed.took == (0, 1)
        (query,) = looked
        assert query.before < ids.inverted(headless[0])
        # The other filters look at everything, as they did.
        assert listed.all({"executionMode": "headless", "status": "pending"}) == headless
        assert listed.all({"executionMode": "windowed"}) == [fresh, old]

    def test_none_is_left_out_while_it_can_be_open(self) -> None:
        """The settings say how long that is: here the cap of all jobs, which a window may name as well."""
        listed = List()
        longest = max(SETTINGS.window_timeout_ms, SETTINGS.max_timeout_ms) / 60_000
        last = self.window(listed, longest - 0.5)
        # Where a setting was lowered, windows from before have their old deadlines.
        lowered = self.window(listed, longest + 30)
        self.window(listed, longest + 61)
        assert listed.all(WAITING) == [last, lowered]
        assert listed.all({**WAITING, "tool": "t"}, limit="1") == [last, lowered]

    def test_a_longer_window_reaches_further(self) -> None:
        longer = SETTINGS._replace(window_timeout_ms=86_400_000)
        listed = List(settings=longer)
        day = self.window(listed, 23 * 60)
        assert listed.all(WAITING) == [day]


def test_a_row_that_cannot_be_read_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    listed = List()
    found = [listed.call(moment * 10_000) for moment in range(3)]
    for row in listed.rows.rows.values():
        if ids.of_inverted(row["RowKey"]) == found[1]:
            row["lines"] = b"damaged"
    assert listed.all() == [found[2], found[0]]
    assert found[1] in caplog.text


class TestTag:
    def test_nothing_new_is_304_and_news_are_told(self) -> None:
        listed = List()
        for moment in range(3):
            listed.call(moment)
        job_id = listed.job(5)
        first = listed.get(limit="2")
        tag = first.headers["ETag"]
        assert tag.startswith('W/"')
        assert listed.get(limit="2").headers["ETag"] == tag  # though its cursor is another text
        again = listed.get(headers={"If-None-Match": tag}, limit="2")
        assert (again.status_code, again.get_body(), again.headers["ETag"]) == (304, b"", tag)
        assert listed.get(headers={"If-None-Match": tag}, limit="1").status_code == 200
        job = listed.jobs.get(job_id)
        assert job is not None
        running = listed.jobs.write(model.claim(job, model.utc_now(), 60_000))
        changed = listed.get(headers={"If-None-Match": tag}, limit="2")
        assert (changed.status_code, body(changed)["invocations"][0]["status"]) == (200, "in_progress")
        tag = changed.headers["ETag"]
        # A lease that is renewed changes nothing that is shown.
        listed.jobs.write(model.renew(running, model.utc_now(), 90_000))
        assert listed.get(headers={"If-None-Match": tag}, limit="2").status_code == 304

    def test_another_owners_news_are_no_news(self) -> None:
        listed = List()
        tag = listed.get().headers["ETag"]
        listed.call(0, owner="ana")
        listed.job(1, "ana")
        assert listed.get(headers={"If-None-Match": tag}).status_code == 304


class TestCursor:
    def test_it_works_for_nobody_else_and_for_no_other_list(self) -> None:
        listed = List()
        for moment in range(3):
            listed.call(moment)
            listed.call(moment, owner="ana")
        cursor = body(listed.get(limit="1"))["cursor"]
        assert listed.get(token=OTHER, cursor=cursor).status_code == 400
        other = listed.get(cursor=cursor, tool="t")
        assert (other.status_code, listed.took) == (400, (0, 0))
        assert "other filters" in body(other)["error"]
        for foreign in (SEALER.cursor("default", '{"PartitionKey": "a", "RowKey": "b"}'), "x", f"{cursor}A"):
            answer = listed.get(cursor=foreign)
            assert (answer.status_code, listed.took) == (400, (0, 0))
            assert body(answer)["error"].startswith("cursor: must be")

    def test_it_says_nothing(self) -> None:
        listed = List()
        for moment in range(3):
            listed.call(moment * 10_000)
        newest = listed.shown()[0]["id"]
        first, second = (body(listed.get(limit="1"))["cursor"] for _ in range(2))
        assert first != second
        assert newest not in first

    def test_without_a_seal_key_there_is_none_but_the_list(self) -> None:
        listed = List(Sealer(()))
        for moment in range(3):
            listed.call(moment)
        page = body(listed.get(limit="2"))
        assert (len(page["invocations"]), "cursor" in page) == (2, False)
        assert "TOOLBOX_SEAL_KEY" in page["incomplete"]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"limit": "0"}, "limit: must be a whole number from 1 to 100"),
        ({"status": "done"}, "status: must be one of pending, in_progress, completed, failed, rejected"),
        ({"mode": "both"}, "mode: must be one of one-way, two-way"),
        ({"executionMode": "x"}, "executionMode: must be one of inline, headless, windowed"),
        ({"owner": "ana"}, "unknown parameter 'owner'"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_legal(params: dict[str, str], said: str) -> None:
    listed = List()
    answer = listed.get(params)
    assert (answer.status_code, listed.took) == (400, (0, 0))
    assert said in body(answer)["error"]


def test_without_a_token_or_with_another_verb_nothing_is_listed() -> None:
    listed = List()
    assert listed.get(token="wrong", limit="x").status_code == 401
    answer = listed.get(method="POST")
    assert (answer.status_code, answer.headers["Allow"], listed.took) == (405, "GET", (0, 0))


class TestOne:
    def test_a_call_of_any_kind_is_told_as_the_list_tells_it(self) -> None:
        listed = List()
        calls = [listed.call(1_000, prefill_summary='{"a":1}'), listed.call(2_000, outcome=Outcome.REJECTED)]
        calls += [listed.job(3_000), listed.call(4_000, outcome=Outcome.FAILED, error="boom")]
        spec = ToolSpec("t", "t", "T", "", {"type": "object"}, None)
        record = inline_record(spec, calls[-1], "default", mode=Mode.TWO_WAY, timeout_ms=1_000)
        listed.jobs.create(record, b"")
        shown = {entry["id"]: entry for entry in listed.shown()}
        for call in calls:
            answer = listed.one(call)
            assert (answer.status_code, body(answer)) == (200, shown[call])
            assert listed.took == (1, 1)
        assert shown[calls[-1]]["status"] == "failed"  # as its own record says, not that of its files

    def test_it_is_found_among_the_calls_that_share_its_row(self) -> None:
        listed = List()
        records = [a_record(id=ids.new_id(BASE + moment), owner="default") for moment in (0, 900, 1_800)]
        listed.rows.write(records)
        assert [body(listed.one(record.id))["id"] for record in records] == [record.id for record in records]
        # Within the row's span, and not in it.
        assert listed.one(ids.new_id(BASE + 1_000)).status_code == 404

    def test_what_has_not_changed_is_304(self) -> None:
        listed = List()
        job = listed.jobs.get(listed.job(0))
        assert job is not None
        tag = listed.one(job.job_id).headers["ETag"]
        again = listed.one(job.job_id, headers={"If-None-Match": tag})
        assert (again.status_code, again.get_body()) == (304, b"")
        listed.jobs.write(model.claim(job, model.utc_now(), 60_000))
        assert listed.one(job.job_id, headers={"If-None-Match": tag}).status_code == 200

    def test_a_lost_workers_job_is_told_as_mended(self) -> None:
        listed = List()
        job = listed.jobs.get(listed.job(0))
        assert job is not None
        listed.jobs.write(model.claim(job, model.utc_now() - timedelta(minutes=5), 1))
        assert body(listed.one(job.job_id))["errorCode"] == "worker_lost"

    def test_unknown_malformed_and_other_owners_are_the_same_404(self) -> None:
        listed = List()
        hers = [listed.call(1_000, owner="ana"), listed.job(2_000, "ana")]
        nobodys = listed.call(3_000, owner="", outcome=Outcome.REJECTED)
        answers = [listed.one(call) for call in (*hers, ids.new_id(BASE + 1_000), "x", "..", hers[0].upper())]
        answers += [listed.one(nobodys, token=OTHER)]
        assert {(answer.status_code, answer.get_body()) for answer in answers} == {
            (404, b'{"error":"Invocation not found"}')
        }
        assert {tuple(sorted(answer.headers.items())) for answer in answers} == {
            tuple(sorted(answers[0].headers.items()))
        }
        assert listed.one(hers[0], token=OTHER).status_code == 200
        assert "inputSummary" not in body(listed.one(nobodys))

    def test_an_id_that_is_none_costs_nothing(self) -> None:
        listed = List()
        listed.one("x' or owner ne 'default")
        assert listed.took == (0, 0)

    def test_the_token_comes_first_then_the_verb_then_the_parameters(self) -> None:
        listed = List()
        call = listed.call(0)
        for identifier in (call, "x"):
            for method in ("GET", "POST"):
                answer = listed.one(identifier, token=None, method=method, odd="1")
                assert answer.status_code == 401
                assert answer.get_body() == b'{"error":"Unauthorized: valid MCP access token required"}'
            answer = listed.one(identifier, method="DELETE", odd="1")
            assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
        assert listed.one(call, odd="1").status_code == 400
        assert listed.took == (0, 0)

    def test_a_damaged_row_hides_no_other(self) -> None:
        listed = List()
        call = listed.call(1_000)
        (row,) = listed.rows.rows.values()
        listed.rows.rows["0", "0"] = {**row, "RowKey": ids.inverted(ids.new_id(BASE + 1_500)), "lines": b"?"}
        assert listed.one(call).status_code == 200
