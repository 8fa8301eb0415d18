"""A log of the costliest characters beside a result as large as a row takes: within what real storage takes.

Azurite checks few of these limits, so they are checked here, as
https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model has them.
"""

from __future__ import annotations

import math
import time
from typing import Any, Final

import pytest
from azure.data.tables import TableClient

from shared.jobs import keys
from shared.jobs.logs import LINES
from shared.jobs.payload import ROW_BYTES
from shared.jobs.store import TABLE
from shared.tool import Context
from tests.integration.faults.engine import Engine
from tests.integration.faults.support import PASSWORD, Site
from tests.support.fault_proxy import FaultProxy

pytestmark = pytest.mark.integration

KIB, MIB = 1024, 1024 * 1024
BURST: Final = 10_000
LONG: Final = 10_000
TEXTS: Final = ("漢", "😀", "\x00\x1f\x7f\u2028", 'é\t"\\', "👩‍👩‍👧‍👦")


def line(number: int) -> str:
    """Line `number` of the burst. One in seven, and most of the last, are too long to be kept whole."""
    text = TEXTS[number % len(TEXTS)]
    length = LONG if number % 7 == 0 or number > BURST - LINES * 3 // 4 else number % 90
    return f"{number} {(text * (length // len(text) + 1))[:length]}"


def work(size: int, lines: int, password: str, *, context: Context) -> dict[str, Any]:
    for number in range(1, lines + 1):
        context.logger.info(line(number))
    return {"body": "x" * size}


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_lines_are_kept_in_order_beside_a_large_result_within_the_limits(
    site: Site, more: int
) -> None:
    with FaultProxy(site.azurite.ports) as proxy, site.store_by(proxy.connection_string) as store:
        engine = Engine(store, work)
        probe = engine.submit({"size": 0, "lines": 0, "password": PASSWORD}).job_id
        engine.deliver(probe)
        empty = engine.job(probe).result
        assert empty is not None
        proxy.forget()

        size = ROW_BYTES - empty.size + more
        job_id = engine.submit({"size": size, "lines": BURST, "password": PASSWORD}).job_id
        began = time.monotonic()
        engine.deliver(job_id)
        took = time.monotonic() - began
        seen = proxy.seen()
        job, body = engine.job(job_id), engine.status(job_id)

    assert job.result is not None
    assert (job.result.size, job.result.in_blob) == (ROW_BYTES + more, more > 0)
    assert body["status"] == "completed"
    assert len(body["result"]["body"]) == size

    # "running", the burst, "completed"
    assert [entry["seq"] for entry in body["logs"]] == list(range(BURST + 3 - LINES, BURST + 3))
    assert body["logsDropped"] == BURST + 2 - LINES
    assert body["logs"][-1]["message"] == "completed"
    cut = 0
    for entry in body["logs"][:-1]:
        wanted, found = line(entry["seq"] - 1), entry["message"]
        if found == wanted:
            continue
        cut += 1
        kept, mark, _ = found.rpartition("… [cut]")
        assert mark
        assert wanted.startswith(kept)
        assert 4_096 - 4 <= len(found.encode()) <= 4_096
        assert len(wanted.encode()) > 4_096
    assert LINES * 3 // 4 <= cut < LINES

    transactions = [one for one in seen if one.operation == "transaction"]
    # The insert, the end, and at most one a second in between.
    assert len(transactions) <= 2 + math.ceil(took)
    assert max(one.size for one in transactions) <= 4 * MIB
    check_limits(site, job_id)
    site.check_remains()


def check_limits(site: Site, job_id: str) -> None:
    """What one transaction holds at most are all rows of the job, each once."""
    with TableClient.from_connection_string(site.connection, TABLE) as table:
        rows = [dict(row) for row in table.list_entities() if row["PartitionKey"] == keys.partition_key(job_id)]
    assert 2 <= len(rows) <= 100
    for row in rows:
        sizes = {name: size_of(value) for name, value in row.items()}
        assert max(sizes.values()) <= 64 * KIB, sizes
        assert sum(4 + 8 + 2 * len(name) + size for name, size in sizes.items()) <= MIB
        assert len(row) <= 252


def size_of(value: Any) -> int:
    """Bytes, as the service counts them: text is UTF-16."""
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode("utf-16-le")) if isinstance(value, str) else 8
