"""The search for secrets that the other tests end with: it reaches everything that storage and logs hold."""

from __future__ import annotations

from typing import Any

import pytest

from shared.invocations.log import InvocationLog
from shared.invocations.record import Outcome, Record
from shared.invocations.store import TableInvocationStore
from shared.jobs import keys
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
