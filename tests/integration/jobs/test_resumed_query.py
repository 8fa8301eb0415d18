"""kill -9 of the worker in the middle of a query: the next attempt goes on behind the pages that were kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from infra.local.dataverse.authority import App
from infra.local.dataverse.faults import Fault, Kind
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, EnvironmentSpec, StandIn
from shared.jobs.model import Job, Status
from shared.tool.spec import JsonObject
from tests.integration.jobs.queries import Queries, wait_until

pytestmark = pytest.mark.integration

ROWS: Final = 4_800
PAGE: Final = 400
#: What follows in a name, so that a page of few rows is large enough to be kept at once.
PADDING: Final = "x" * 140
PAGES: Final = ROWS // PAGE
#: Pages that are read before the worker is killed, which waits for the next one then.
BEFORE: Final = 7
BY_FETCH: Final = (
    "<fetch><entity name='account'><attribute name='name'/><attribute name='numberofemployees'/>"
    "<order attribute='name'/></entity></fetch>"
)
WAYS: Final[dict[str, JsonObject]] = {
    "odata to csv": {"entityName": "account", "columns": ["name", "numberofemployees"], "format": "csv"},
    "fetch to json lines": {"fetchXml": BY_FETCH, "format": "jsonl"},
}


@pytest.fixture(scope="module")
def connection(new_storage: Callable[[], str]) -> str:
    """Of these tests alone: an app that shares the queue would take the jobs' messages."""
    return new_storage()


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    specs = [EnvironmentSpec("many", accounts=0)]
    with StandIn.start(specs, [App(CLIENT_ID, "sentinel-of-the-secret", TENANT)]) as stand_in:
        many = stand_in.environment("many")
        for number in range(ROWS):
            many.insert("account", {"name": f"Account {number:05}{PADDING}", "numberofemployees": number})
        yield stand_in


@pytest.fixture
def queries(dataverse: StandIn, connection: str) -> Iterator[Queries]:
    dataverse.faults.clear()
    dataverse.clear_requests()
    made = Queries(connection, dataverse, "many")
    yield made
    dataverse.faults.clear()
    made.close()


def killed(queries: Queries, dataverse: StandIn, arguments: JsonObject) -> Job:
    """A job whose first worker was killed while it waited for a page, all pages before it being kept."""
    job = queries.submit({**arguments, "pageSize": PAGE})
    held = dataverse.arm(Fault(Kind.SLOW, path="/accounts", nth=(BEFORE + 1,), delay=15))
    with queries.attempt(job) as process:
        wait_until(lambda: held.struck == 1 or process.poll() is not None)
        assert process.poll() is None, queries.job(job).error
        wait_until(lambda: queries.kept_pages(job) == BEFORE)
        process.kill()
        process.wait(10)
    assert queries.job(job).status is Status.IN_PROGRESS
    queries.lease_ends(job)
    dataverse.faults.clear()
    dataverse.clear_requests()
    return job


def check_whole(queries: Queries, dataverse: StandIn, job: Job) -> None:
    """Every row is in the file, none twice, in the order of the query; nothing that was kept is left."""
    ended = queries.job(job)
    assert (ended.status, ended.error, ended.attempt) == (Status.COMPLETED, "", 2)
    assert queries.result(job)["rowCount"] == ROWS
    rows = queries.rows(job)
    assert [row["accountid"] for row in rows] == dataverse.environment("many").ids("account")
    assert [int(row["numberofemployees"]) for row in rows] == list(range(ROWS))
    left = queries.stored(job)
    assert [name for name in left if "part" in name or name in ("checkpoint", "in")] == []


@pytest.mark.parametrize("way", WAYS)
def test_the_next_attempt_asks_for_the_pages_that_are_left_alone(
    queries: Queries, dataverse: StandIn, way: str
) -> None:
    job = killed(queries, dataverse, WAYS[way])
    kept = queries.stored(job)
    assert sum("/part-1/" in name for name in kept) == BEFORE
    assert not any(b"Account 0" in data or b"cookie" in data for data in kept.values())

    queries.run(job)
    assert len(dataverse.requests("accounts", "GET")) == PAGES - BEFORE
    lines = queries.lines(job)
    assert f"goes on behind page {BEFORE}: an earlier attempt has kept {BEFORE * PAGE} rows" in lines
    assert f"page {PAGES}: {PAGE} rows, {ROWS} in all" in lines
    check_whole(queries, dataverse, job)


def test_a_place_that_the_service_does_not_know_any_more_is_begun_anew(
    queries: Queries, dataverse: StandIn
) -> None:
    job = killed(queries, dataverse, WAYS["odata to csv"])
    refusal = Fault(
        Kind.ERROR, path="skiptoken", nth=(1,), status=400, code="0x80040203", message="Invalid cookie"
    )
    dataverse.arm(refusal)
    queries.run(job)
    assert [request.status for request in dataverse.requests("accounts", "GET")] == [400] + [200] * PAGES
    (line,) = [line for line in queries.lines(job) if line.startswith("begins anew")]
    assert f"behind page {BEFORE}" in line
    assert "Invalid cookie" in line
    check_whole(queries, dataverse, job)


def test_kept_rows_that_are_gone_are_read_again(queries: Queries, dataverse: StandIn) -> None:
    job = killed(queries, dataverse, WAYS["odata to csv"])
    queries.store.delete_parts(job.job_id)
    queries.run(job)
    assert len(dataverse.requests("accounts", "GET")) == PAGES
    assert any("cannot be read: checkpoint: a kept part is gone" in line for line in queries.lines(job))
    check_whole(queries, dataverse, job)


def test_a_refusal_on_the_way_is_the_jobs_error(queries: Queries, dataverse: StandIn) -> None:
    """Only at the place where it goes on is it taken for a place that is not known any more."""
    job = killed(queries, dataverse, WAYS["odata to csv"])
    dataverse.arm(Fault(Kind.ERROR, path="skiptoken", nth=(2,), status=400, message="No such column"))
    ended = queries.run(job)
    assert (ended.status, "No such column" in ended.error) == (Status.FAILED, True)
    assert [name for name in queries.stored(job) if "part" in name or name in ("checkpoint", "in")] == []
