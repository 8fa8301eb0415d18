"""The search for secrets that the other tests end with: it reaches everything that storage and logs hold."""

from __future__ import annotations

from typing import Any

import pytest

from shared.invocations.log import InvocationLog
from shared.invocations.record import Outcome, Record
from shared.invocations.store import TableInvocationStore
from shared.jobs import keys
from shared.jobs.model import Status
from shared.jobs.store import TABLE
from shared.storage import Storage
from shared.tool import Context
from tests.integration.faults.engine import Engine
from tests.integration.faults.support import SENTINEL, Site

pytestmark = pytest.mark.integration


def test_it_finds_secrets_in_rows_lines_records_bodies_and_messages(site: Site) -> None:
    def leaks(*, context: Context) -> dict[str, Any]:
        context.update_progress(1, "working")
        context.logger.info(SENTINEL)
        context.artifacts.write("file.txt", SENTINEL)
        return {"body": SENTINEL}

    engine = Engine(site.store, leaks)
    job_id = engine.submit().job_id
    site.check_secrets()
    engine.deliver(job_id)
    storage = Storage(site.connection)
    log = InvocationLog(lambda: TableInvocationStore(storage))
    log.add(
        lambda: Record(
            id=keys.new_job_id(),
            tool_id="t",
            tool_name="t",
            outcome=Outcome.COMPLETED,
            duration_ms=1,
            error=SENTINEL,
        )
    )
    assert log.flush()
    storage._transport.session.close()
    where = [place for place, data in site.stored() if SENTINEL.encode() in data]
    found = " ".join(where)
    for place in ("/job/result", "/log-00/lines", "(inflated)", "/artifact-1/file.txt"):
        assert place in found
    with pytest.raises(AssertionError, match="job/result"):
        site.check_secrets()


@pytest.mark.parametrize("what", ["input", "input in a blob", "checkpoint", "part"])
def test_what_an_ended_job_has_left_is_found(site: Site, what: str) -> None:
    """Nothing of an unfinished one counts, and nothing that an ended one may have."""

    def keeps(*, context: Context) -> str:
        context.checkpoint.save({"page": 1}, b"rows")
        context.artifacts.write("in.txt", "a file of the job's")
        return "x" * 40_000

    engine = Engine(site.store, keeps)
    ended, pending = engine.submit().job_id, engine.submit({"padding": "x" * 40_000}).job_id
    engine.deliver(ended)
    assert engine.job(ended).status is Status.COMPLETED
    site.store.put_blob(keys.part_blob(pending, 1, 0), b"sealed")
    site.check_remains()
    left = {
        "input": f"{keys.partition_key(ended)}/{keys.INPUT_ROW}",
        "checkpoint": f"{keys.partition_key(ended)}/{keys.CHECKPOINT_ROW}",
        "input in a blob": keys.input_blob(ended),
        "part": keys.part_blob(ended, 1, 3),
    }[what]
    if what in ("input", "checkpoint"):
        partition, row = left.split("/")
        storage = Storage(site.connection)
        storage.table(TABLE).create_entity({"PartitionKey": partition, "RowKey": row, "sealed": b"sealed"})
        storage._transport.session.close()
    else:
        site.store.put_blob(left, b"sealed")
    with pytest.raises(AssertionError, match=left):
        site.check_remains()
