"""What a worker needs for a 20 MB job, measured in a process that only works the queue."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path

import pytest

from infra.local.azurite import Azurite
from shared.contract.envelope import CallPlan
from shared.jobs.payload import Sealer
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from shared.tool.decorator import declared
from shared.tool.spec import ExecutionMode, Mode
from tests.acceptance.conftest import SEAL_KEY, start_app, wait_until
from tools.csv_profile import csv_profile

pytestmark = pytest.mark.acceptance

LIMIT_MB = 250


def megabytes(pid: int, what: str) -> float:
    """VmRSS (now) or VmHWM (peak) of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc, which only Linux has")
def test_a_20_mb_csv_as_a_job(tmp_path: Path) -> None:
    # An Azurite of its own: the other tests' workers must not take the job.
    with Azurite.start(tmp_path / "storage", free_ports=True) as azurite:
        measure(azurite, tmp_path)


def measure(azurite: Azurite, folder: Path) -> None:
    tool = declared(csv_profile)
    assert tool is not None
    store = TableJobStore(Storage(azurite.connection_string))
    sealer = Sealer((base64.b64decode(SEAL_KEY),))
    plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 300_000)
    line = "{number},{number}.25,name {number},2026-01-15\n"
    rows = "".join(line.format(number=number) for number in range(520_000))
    text = "id,value,name,day\n" + rows
    assert len(text) > 20_000_000

    worker = start_app(folder, azurite.connection_string, "--only-triggers", "queue")
    try:
        idle = megabytes(worker.process.pid, "VmRSS")
        job = asyncio.run(submit(tool.spec, {"csv": text}, plan, owner="default", store=store, sealer=sealer))

        def ended() -> bool:
            found = store.get(job.job_id)
            return found is not None and found.status.terminal

        wait_until(ended, 60)
        growth = megabytes(worker.process.pid, "VmHWM") - idle
        finished = store.get(job.job_id)
        assert finished is not None
        assert finished.status == "completed", finished.error
        print(f"idle {idle:.0f} MB, growth {growth:.0f} MB")
        assert growth <= LIMIT_MB
    finally:
        worker.stop()
