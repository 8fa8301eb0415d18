"""`artifact://{jobId}/{name}`, read as a client's request reaches it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from shared.builtin.artifact_files import artifact_files
from shared.errors import CallError
from shared.jobs import keys
from shared.tool import Context, McpResourceLinkContent
from shared.tool.resources import declared
from shared.tool.serving import resource_trigger
from tests.unit.jobs.bench import Bench
from tests.unit.web.support import OTHER, SETTINGS


@pytest.fixture
def bench() -> Bench:
    def work(*, context: Context) -> McpResourceLinkContent:
        context.artifacts.write("b.bin", b"\xff\0")
        context.artifacts.write("odd.txt", b"\xff", "text/plain")
        return context.artifacts.write("a.csv", "a,b\n1,ä\n")

    return Bench(work)


@pytest.fixture
def job_id(bench: Bench) -> str:
    job = bench.submit()
    bench.deliver()
    return job.job_id


def read(bench: Bench, uri: str, token: str | None = None) -> Any:
    entry = declared(artifact_files(lambda: bench.store))
    assert entry is not None
    headers = {} if token is None else {"X-MCP-Auth-Token": token}
    payload = {"uri": uri, "transport": {"properties": {"headers": headers}}}
    trigger = resource_trigger(entry, SETTINGS)

    async def answer() -> str:
        return await trigger(json.dumps(payload))

    return json.loads(json.loads(asyncio.run(answer()))["content"])


def test_the_owner_reads_texts_and_bytes(bench: Bench, job_id: str) -> None:
    uri = f"artifact://{job_id}/a.csv"
    assert read(bench, uri) == {"uri": uri, "mimeType": "text/csv", "text": "a,b\n1,ä\n"}
    for name, data, kind in (
        ("b.bin", b"\xff\0", "application/octet-stream"),
        ("odd.txt", b"\xff", "text/plain"),
    ):
        found = read(bench, f"artifact://{job_id}/{name}")
        assert (base64.b64decode(found["blob"]), found["mimeType"]) == (data, kind)


@pytest.mark.parametrize("token", [OTHER, "wrong", ""])
def test_nobody_else_does(bench: Bench, job_id: str, token: str) -> None:
    with pytest.raises(CallError, match="could not be read"):
        read(bench, f"artifact://{job_id}/a.csv", token)


def test_what_is_not_there_is_told_nothing_of(bench: Bench, job_id: str) -> None:
    before = bench.store.requests.total()
    with pytest.raises(CallError, match="could not be read"):
        read(bench, "artifact://malformed/a.csv")
    assert bench.store.requests.total() == before
    for uri in (
        f"artifact://{keys.new_job_id()}/a.csv",
        f"artifact://{job_id}/none",
        f"artifact://{job_id}/.x",
    ):
        with pytest.raises(CallError, match="could not be read"):
            read(bench, uri)
