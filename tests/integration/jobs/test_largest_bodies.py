"""The largest input and result that a job may have, through a real storage account, and one byte more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from infra.local.azurite import Azurite
from shared.contract.envelope import CallPlan
from shared.errors import PayloadError
from shared.jobs import keys, view
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import MAX_BODY_BYTES, Input, pack_input, pack_result
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.jobs.bench import SEALER, SETTINGS

pytestmark = pytest.mark.integration

TOKEN: Final = "sentinel-auth-token"
#: What is around a text in a stored body.
AROUND_INPUT: Final = len(pack_input(Input({"text": "", "size": 10_000_000}, TOKEN)))
AROUND_RESULT: Final = len(pack_result(ToolResult(structured={"text": ""})))


@tool(name="work", description="Works.", execution_modes=("headless",))
def work(size: int, text: str = "") -> dict[str, str]:
    """Gives a text of this size."""
    return {"text": text[:size].ljust(size, "x")}


class Engine:
    """The engine on a storage account of these tests alone."""

    def __init__(self, connection: str) -> None:
        self.store = TableJobStore(Storage(connection))
        entry = declared(work)
        assert entry is not None
        self.entry: ToolEntry = entry
        self.worker = Worker({"work": entry}, self.store, SEALER, SETTINGS)

    def submit(self, arguments: JsonObject) -> Job:
        plan = CallPlan(Mode.ONE_WAY, ExecutionMode.HEADLESS, 120_000, TOKEN)
        made = submit(self.entry.spec, arguments, plan, owner="default", store=self.store, sealer=SEALER)
        return asyncio.run(made)

    def run(self, job: Job) -> Job:
        asyncio.run(self.worker.handle(f'{{"jobId": "{job.job_id}"}}'))
        found = self.store.get(job.job_id)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Azurite.start(tmp_path_factory.mktemp("storage"), free_ports=True) as own:
        made = Engine(own.connection_string)
        yield made
        session = made.store._storage._transport.session
        assert session is not None
        session.close()


def test_an_input_and_a_result_of_64_mib_pass_whole_and_the_input_is_erased(engine: Engine) -> None:
    # Of several bytes a character: the limit is one of bytes.
    text = "漢" * ((MAX_BODY_BYTES - AROUND_INPUT) // 3)
    size = len(text) + (MAX_BODY_BYTES - AROUND_RESULT - len(text.encode()))
    job = engine.submit({"text": text, "size": size})
    blob = engine.store.get_blob(keys.input_blob(job.job_id))
    assert blob is not None
    assert len(blob) > MAX_BODY_BYTES - 10
    assert TOKEN.encode() not in blob
    assert text[:20].encode() not in blob

    ended = engine.run(job)
    assert (ended.status, ended.error) == (Status.COMPLETED, "")
    assert ended.result is not None
    assert ended.result.size == MAX_BODY_BYTES
    body = view.look(job.job_id, "default", engine.store).body(engine.store)
    assert body["result"]["text"] == text.ljust(size, "x")
    assert engine.store.get_blob(keys.input_blob(job.job_id)) is None


def test_one_byte_more_is_refused_with_the_limit(engine: Engine) -> None:
    with pytest.raises(PayloadError, match=rf"has {MAX_BODY_BYTES + 1} bytes as JSON; a job takes at most"):
        engine.submit({"text": "x" * (MAX_BODY_BYTES - AROUND_INPUT + 1), "size": 10_000_000})

    ended = engine.run(engine.submit({"size": MAX_BODY_BYTES - AROUND_RESULT + 1}))
    assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.INVALID_RESULT)
    assert f"{MAX_BODY_BYTES + 1} bytes as JSON; a job keeps at most" in ended.error
