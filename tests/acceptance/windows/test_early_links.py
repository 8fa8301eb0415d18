"""A two-way call whose wait ends before a person has answered: the client is not left without a way on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import mcp
import pytest

from tests.acceptance.windows.conftest import Windows, serve

pytestmark = pytest.mark.acceptance

#: ms
WAIT = 400


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[Windows]:
    """An app whose calls wait no longer than `WAIT`, on a storage of its own."""
    with serve(tmp_path_factory.mktemp("hasty"), new_storage(), TOOLBOX_MAX_WAIT_MS=str(WAIT)) as served:
        yield served


def called(windows: Windows, name: str, arguments: dict[str, Any]) -> Any:
    """What the official SDK's client makes of a call. It checks the answer against the listed schema."""

    async def main() -> Any:
        async with mcp.Client(windows.app.endpoint) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(main())


def test_a_wait_that_ends_early_gives_a_link_that_opens_the_window(hasty: Windows) -> None:
    asked = {"question": "Why?", "__pptb": {"executionMode": "windowed", "mode": "two-way"}}
    answer = called(hasty, "form", asked)
    assert not answer.is_error
    told = answer.structured_content
    assert (told["status"], told["waitLimitMs"], told["window"]["state"]) == ("accepted", WAIT, "waiting")
    link = told["window"]["url"]
    # A client that shows text only has the link as well.
    assert any(link in block.text for block in answer.content)

    job_id, window = hasty.open(link)
    assert job_id == told["jobId"]
    assert window["context"]["question"] == "Why?"
    assert hasty.app.http.get(window["page"]).status_code == 200
    assert hasty.gives(window["session"], job_id, {"answer": "because"}).status_code == 200

    later = called(hasty, "job_status", {"jobId": job_id, "waitMs": 10_000})
    assert (later.structured_content["status"], later.structured_content["result"]) == (
        "completed",
        {"answer": "because"},
    )
