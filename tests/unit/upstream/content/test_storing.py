"""Where media go: caps, names, and what becomes of a result when storage does not do its part."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from shared.errors import JobCancelledError, MCPTimeoutError, SettingsError
from shared.jobs import artifacts
from shared.tool.context import NoArtifacts
from shared.upstream.content import MCPToolResult, base64_text, media, read_result, reading, to_tool_result
from tests.unit.upstream.content.support import (
    CAP,
    PNG,
    WAV,
    Broken,
    Call,
    Settings,
    b64,
    facts,
    read,
    refusing,
)

SMALL = {"type": "image", "data": b64(PNG), "mimeType": "image/png"}
LARGE = {"type": "image", "data": b64(PNG + bytes(CAP)), "mimeType": "image/png"}


@pytest.fixture
def call() -> Call:
    return Call()


def kinds(answer: Any) -> list[str]:
    return [block["type"] for block in answer.content]


def test_a_result_has_a_cap_too(call: Call) -> None:
    audio = {"type": "audio", "data": b64(WAV + bytes(CAP - len(WAV))), "mimeType": "audio/wav"}
    answer = call.answer(*[audio] * 5, {"type": "audio", "data": b64(WAV), "mimeType": "audio/wav"})
    assert kinds(answer) == ["audio"] * 4 + ["resource_link"] * 2
    assert len(facts(answer)["media_paths"]) == 2


def test_files_of_one_result_never_share_a_name(call: Call) -> None:
    def one(uri: str, data: bytes) -> dict[str, Any]:
        return {"type": "resource", "resource": {"uri": uri, "blob": b64(data), "mimeType": "image/png"}}

    answer = call.answer(
        one("file:///a/x.png", PNG), one("file:///b/x.png", PNG + b"2"), one("file:///c/X.PNG", PNG + b"3")
    )
    names = [file["name"] for file in facts(answer)["attachments"]]
    assert names == ["x.png", "x-2.png", "X-3.PNG"]
    assert [call.file(name) for name in names] == [PNG, PNG + b"2", PNG + b"3"]


def test_a_result_has_a_hundred_files_and_the_rest_stays_inline_while_it_fits(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MOST_FILES", 2)
    answer = call.answer(SMALL, SMALL, SMALL, LARGE)
    assert kinds(answer) == ["image", "image", "image", "text"]
    assert "could not be stored: a result has at most 2 files" in answer.text
    assert len(facts(answer)["attachments"]) == 2


def test_storage_that_is_away_is_asked_once_and_costs_no_small_image(call: Call) -> None:
    call.artifacts = broken = Broken(OSError("secret host name"))
    answer = call.answer({"type": "text", "text": "a"}, SMALL, LARGE, SMALL, {"type": "text", "text": "b"})
    assert kinds(answer) == ["text", "image", "text", "image", "text"]
    assert answer.content[2]["text"] == (
        f"[An image (image/png, {len(PNG) + CAP} bytes) was left out: 1000 bytes an item and 4000 a result go "
        "inline, and it could not be stored: storage failed (OSError)]"
    )
    assert broken.asked == 1
    assert facts(answer)["notStored"] == "storage failed (OSError)"
    assert "attachments" not in facts(answer)


def test_storage_that_is_not_set_is_named(call: Call) -> None:
    call.artifacts = Broken(SettingsError("AzureWebJobsStorage is not set"))
    assert "could not be stored: AzureWebJobsStorage is not set" in call.answer(LARGE).text


def test_a_file_that_is_refused_does_not_keep_the_next_one(call: Call) -> None:
    call.artifacts = broken = refusing()
    answer = call.answer(LARGE, LARGE)
    assert kinds(answer) == ["text", "text"]
    assert "could not be stored: no room" in answer.text
    assert broken.asked == 2


@pytest.mark.parametrize("context", [True, False])
def test_a_call_without_a_place_for_files(context: bool, call: Call) -> None:
    call.artifacts = NoArtifacts()
    answer = call.place(read(SMALL, LARGE), context=context)
    assert kinds(answer) == ["image", "text"]
    assert "could not be stored: " in answer.text


def test_a_long_text_that_cannot_be_stored_is_cut_all_the_same(call: Call) -> None:
    call.artifacts = refusing()
    answer = call.answer({"type": "resource", "resource": {"uri": "file:///a", "text": "x" * 13_000}})
    (block,) = answer.content
    assert block["resource"]["text"] == "x" * 12_000 + "\n...[truncated]"
    assert facts(answer)["notStored"] == "no room"


def test_storage_that_hangs_costs_the_files_and_not_the_result(call: Call) -> None:
    go_on, entered = threading.Event(), threading.Event()

    class Hanging:
        def write(self, *_: Any) -> Any:
            entered.set()
            go_on.wait(30)
            raise OSError

    call.artifacts = Hanging()
    call.deadline = time.monotonic()  # so that the least time is left
    try:
        answer = call.answer(SMALL, LARGE)
    finally:
        go_on.set()
    assert entered.is_set()
    assert kinds(answer) == ["image", "text"]
    assert "storage did not answer within" in answer.text


def test_the_event_loop_goes_on_while_storage_is_waited_for(call: Call) -> None:
    go_on = threading.Event()

    class Slow:
        def write(self, name: str, data: Any, mime_type: str | None = None) -> Any:
            assert go_on.wait(10), "the loop stood still"
            return Call(store=call.store, job=call.job).context().artifacts.write(name, data, mime_type)

    call.artifacts = Slow()

    async def main() -> Any:
        asyncio.get_running_loop().call_later(0.01, go_on.set)
        return await to_tool_result(read(SMALL), call.context(), Settings())

    assert len(facts(asyncio.run(main()))["attachments"]) == 1


def test_a_job_that_nobody_waits_for_ends(call: Call) -> None:
    call.artifacts = Broken(JobCancelledError())
    with pytest.raises(JobCancelledError):
        call.answer(SMALL)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "mimeType": "image/png"},
        {"type": "audio", "mimeType": "audio/wav"},
        {"type": "film", "mimeType": "video/mp4"},
        {"type": "resource"},
    ],
)
def test_what_is_over_the_limit_of_a_file_is_not_even_decoded(
    block: dict[str, Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 300)

    def decoded(text: str) -> Any:
        raise AssertionError("decoded")

    monkeypatch.setattr(base64_text, "checked", decoded)
    data = b64(bytes(301))
    inner = {"resource": {"uri": "file:///a", "blob": data}} if block["type"] == "resource" else {"data": data}
    answer = call.answer({"type": "text", "text": "a"}, {**block, **inner})
    assert kinds(answer) == ["text", "text"]
    assert "was left out: it has 301 bytes, and 300 (100 MiB) is the most that is passed on" in answer.text


def test_a_hundred_mebibytes_is_the_limit_and_costs_the_block_only(call: Call) -> None:
    data = "A" * (artifacts.MAX_BYTES // 3 * 4 + 8)
    answer = call.answer(
        {"type": "text", "text": "a"}, {"type": "image", "data": data, "mimeType": "image/png"}
    )
    assert answer.content[0] == {"type": "text", "text": "a"}
    assert "An image (image/png) was left out: it has 10485760" in answer.content[1]["text"]
    assert call.requests == 0


@pytest.mark.parametrize("declared", ["image/png; charset=binary", "image/x y", "image/" + "x" * 300])
def test_an_odd_media_type_is_no_reason_not_to_store(declared: str, call: Call) -> None:
    answer = call.answer({**SMALL, "mimeType": declared})
    assert answer.content == ({**SMALL, "mimeType": declared},)
    (file,) = facts(answer)["attachments"]
    assert file["mimeType"] in (declared, "image/png", "application/octet-stream")


def test_a_call_that_came_to_no_answer(call: Call) -> None:
    error = MCPTimeoutError("'find' took longer than 5 seconds", "docs")
    answer = call.place(MCPToolResult.error_result(error, {"server": "docs", "tool": "find"}))
    assert (answer.is_error, answer.text) == (True, "'find' took longer than 5 seconds")
    assert answer.meta["toolbox/errorCode"] == "upstream_timeout"
    assert call.requests == 0


def test_large_data_are_read_on_a_thread_and_small_ones_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.upstream.content import convert

    seen: list[str] = []
    real = convert.from_wire

    def spy(*args: Any, **kwargs: Any) -> MCPToolResult:
        seen.append(threading.current_thread().name)
        return real(*args, **kwargs)

    monkeypatch.setattr(convert, "from_wire", spy)

    async def main(block: dict[str, Any]) -> MCPToolResult:
        return await read_result({"content": [block]}, server="s", tool="t", duration_ms=1)

    large = b64(bytes(1 << 20))
    for block in (
        SMALL,
        {**SMALL, "data": large},
        {"type": "resource", "resource": {"uri": "a:b", "blob": large}},
    ):
        assert asyncio.run(main(block)).success
    assert seen[0] == threading.main_thread().name
    assert all(name.startswith("storage") for name in seen[1:])
    assert len(seen) == 3
