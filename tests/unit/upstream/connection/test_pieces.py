"""The parts without any I/O: states, lines, tails, secrets, levels, faults, entries of lists."""

from __future__ import annotations

import asyncio
import itertools
import random
from unittest import mock

import pytest
from mcp.shared.exceptions import MCPError as WireError
from mcp_types import CONNECTION_CLOSED

from shared.errors import MCPConnectionError, MCPProtocolError, MCPToolNotFoundError
from shared.redaction import Redactor
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.faults import (
    Failure,
    FailureKind,
    NotSentError,
    leaf,
    one_line,
    status_failure,
    too_large,
    wrong_content,
)
from shared.upstream.connection.inbox import failed, messages
from shared.upstream.connection.levels import level_of, text_of
from shared.upstream.connection.lines import LineSplitter, OverlongLine
from shared.upstream.connection.process import Child
from shared.upstream.connection.secrets import redactor
from shared.upstream.connection.state import IllegalMoveError, ServerState, moved
from shared.upstream.connection.tail import Tail
from shared.upstream.connection.translate import opening_error, request_error
from shared.upstream.model import UpstreamPrompt, UpstreamTool
from tests.support.upstream import server

LEGAL = {
    ("created", "connecting"),
    ("created", "disconnected"),
    ("connecting", "connected"),
    ("connecting", "disconnected"),
    ("connecting", "error"),
    ("connected", "connected"),
    ("connected", "disconnected"),
    ("connected", "error"),
    ("disconnected", "error"),
}


@pytest.mark.parametrize(("state", "to"), [*itertools.product(ServerState, ServerState)])
def test_legal_moves_and_no_others(state: ServerState, to: ServerState) -> None:
    if (state.value, to.value) in LEGAL:
        assert moved(state, to) is to
    else:
        with pytest.raises(IllegalMoveError, match=f"from {state} to {to}"):
            moved(state, to)


def test_ends_are_ends() -> None:
    assert [state.value for state in ServerState if state.ended] == ["disconnected", "error"]


# Lines


@pytest.mark.parametrize("seed", range(20))
def test_lines_however_they_are_cut(seed: int) -> None:
    dice = random.Random(seed)
    lines = [bytes(dice.choices(b"abc", k=dice.randrange(0, 40))) for _ in range(30)]
    data = b"\n".join([*lines, b""])
    splitter, found, at = LineSplitter(20), [], 0
    while at < len(data):
        step = dice.randrange(1, 50)
        found += list(splitter.feed(data[at : at + step]))
        at += step
    assert splitter.rest() is None
    assert [len(one) if isinstance(one, bytes) else one.size for one in found] == [len(line) for line in lines]
    for one, line in zip(found, lines, strict=True):
        assert one == line if len(line) <= 20 else isinstance(one, OverlongLine)


def test_rest_of_a_pipe_that_closes_in_a_line() -> None:
    splitter = LineSplitter(100)
    assert list(splitter.feed(b"one\ntw")) == [b"one"]
    assert splitter.rest() == b"tw"
    assert splitter.rest() is None


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{', b"}}", 7),
        (b'{"id":"call-3","result":{', b'},"jsonrpc":"2.0"}', "call-3"),
        (b'{"result":{"id":1,', b'},"jsonrpc":"2.0","id":12}', 12),
        (b'{"result":{', b'"x"},"id":"a","jsonrpc":"2.0"}', "a"),
        (b'{"result":{"id":1,', b"}}", None),
        (b'{"method":"x","params":{', b'"id":5}}', None),
    ],
)
def test_whose_answer_an_overlong_message_was(start: bytes, end: bytes, found: object) -> None:
    splitter = LineSplitter(2_000)
    got = [line for part in (start, b"x" * 100_000, end + b"\n") for line in splitter.feed(part)]
    assert isinstance(got[0], OverlongLine)
    assert got[0].message_id == found


def test_memory_of_an_overlong_line_is_bounded() -> None:
    import tracemalloc

    splitter = LineSplitter(10_000)
    tracemalloc.start()
    for _ in range(1_000):
        assert list(splitter.feed(b"y" * 10_000)) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


# Tails


def test_tail_keeps_the_last_lines_within_its_bytes() -> None:
    tail = Tail(line_bytes=20, total_bytes=50)
    assert not tail
    for n in range(100):
        tail.add(f"line {n}\n\n  \n")
    assert tail.text().splitlines() == [f"line {n}" for n in range(94, 100)]
    assert tail.dropped == 94
    assert tail.text(2) == "line 98\nline 99"
    tail.add("é" * 100)
    assert len(tail.text().splitlines()[-1].encode()) <= 20
    assert tail.text().endswith("…[cut]")


def test_secret_is_taken_out_before_a_line_is_cut() -> None:
    secret = "s3cr3t-" + "k" * 30
    tail = Tail(Redactor([secret]), line_bytes=60)
    tail.add("x" * 30 + secret)
    assert "s3cr3t" not in tail.text()
    tail.add("Authorization: Bearer abcdefghijklmnop")
    assert "abcdefgh" not in tail.text()


def test_what_of_a_configuration_is_secret() -> None:
    config = server(
        command="npx",
        args=("-y", "--api-key", "ARG-value-1", "--token=ARG-value-2", "plain-argument"),
        env={"LOG": "verbose", "KEY": "ENV-value-1", "MODE": "production"},
        config={"password": "CONFIG-value"},
        headers={"X-Any": "HEADER-value-1", "Authorization": "Bearer HEADER-value-2"},
        transport="http",
        url="https://host.example/mcp?sig=URL-value-1",
    )
    text = (
        "ARG-value-1 ARG-value-2 ENV-value-1 CONFIG-value HEADER-value-1 HEADER-value-2 URL-value-1 "
        "plain-argument production host.example"
    )
    shown = redactor(config)(text)
    assert "value" not in shown
    assert shown.endswith("plain-argument production host.example")


# Levels


def test_levels() -> None:
    """HoloDeck FR-027; this app has four levels, so what is graver than an error says so."""
    levels = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency", "verbose")
    assert [level_of(level) for level in levels] == [
        *("debug", "info", "info", "warn", "error", "error", "error", "error", "info")
    ]
    assert text_of("info", None, "plain") == "plain"
    assert text_of("alert", "db", {"é": 1}) == '[alert] [db] {"é": 1}'


# Faults


def test_failure_travels_in_an_error_and_cannot_be_forged() -> None:
    failure = Failure(FailureKind.STATUS, "HTTP 401", 401, sent=False)
    assert Failure.of(failed(3, failure).error.data) == failure
    assert Failure.of({"toolbox-0000": {"kind": "gone", "text": "", "status": None, "sent": False}}) is None
    assert Failure.of(None) is None


@pytest.mark.parametrize(
    ("status", "session", "kind", "sent", "sse"),
    [
        (400, False, FailureKind.STATUS, False, False),
        (401, False, FailureKind.STATUS, False, False),
        (404, False, FailureKind.STATUS, False, True),
        (404, True, FailureKind.GONE, False, False),
        (405, True, FailureKind.STATUS, False, True),
        (502, True, FailureKind.STATUS, True, False),
        (999, False, FailureKind.STATUS, True, False),
    ],
)
def test_statuses(status: int, session: bool, kind: FailureKind, sent: bool, sse: bool) -> None:
    """Rows 16, 18."""
    failure = status_failure(status, "", "", session=session)
    assert (failure.kind, failure.sent, failure.may_be_sse) == (kind, sent, sse)
    if kind is FailureKind.STATUS:
        assert f"HTTP {status}" in failure.text


def test_bodies_of_error_answers() -> None:
    assert status_failure(500, "<html><title> Bad\n gateway </title>", "text/html").text.endswith(
        ": a page titled 'Bad gateway'"
    )
    assert status_failure(500, "<html><p>", "text/html").text.endswith(": a page")
    assert len(status_failure(500, "x" * 5_000).text) < 400
    assert "text/html" in wrong_content("text/html; charset=utf-8").text
    assert "no content type" in wrong_content("").text
    assert too_large(64 * 2**20, 100 * 2**20).text == "the answer is 100 MiB; at most 64 MiB are taken"


def test_groups_are_reduced_to_the_error_that_tells() -> None:
    inner = ValueError("inner")
    assert leaf(ExceptionGroup("a", [ExceptionGroup("b", [inner])])) is inner
    assert leaf(ExceptionGroup("a", [ExceptionGroup("b", [OSError()]), inner])) is inner
    assert leaf(inner) is inner


def test_text_of_others_is_one_plain_line() -> None:
    assert one_line("a\n\tb\x1b[31m  c\u202e") == "a b [31m c"
    assert one_line("x" * 10, 5) == "xxxxx…"


def told(error: Exception, tool: str | None = "work") -> Exception:
    return request_error(error, "demo", None, "the call of 'work'", tool, Redactor(["k3y-value"]))


def test_errors_of_requests() -> None:
    refused = told(WireError(-32000, "no k3y-value"))
    assert isinstance(refused, MCPProtocolError)
    assert refused.error_code == -32000
    assert str(refused) == "Server 'demo' refused the call of 'work': no [redacted] (code -32000)."
    assert isinstance(told(WireError(-32602, "Unknown tool: work")), MCPToolNotFoundError)
    assert isinstance(told(WireError(-32602, "Tool work not found")), MCPToolNotFoundError)
    assert not isinstance(told(WireError(-32602, "Unknown tool: work"), None), MCPToolNotFoundError)
    assert not isinstance(told(WireError(-32602, "a is required")), MCPToolNotFoundError)
    broken = told(WireError(CONNECTION_CLOSED, "SSE stream ended without a response"))
    assert isinstance(broken, DeadConnectionError)
    assert broken.sent
    unsent = told(NotSentError("the pipe is closed"))
    assert isinstance(unsent, DeadConnectionError)
    assert not unsent.sent


def test_errors_of_opening() -> None:
    def why(error: BaseException) -> Exception:
        return opening_error(error, "demo", "npx", Redactor(["k3y-value"]))

    assert isinstance(why(WireError(-32603, "no k3y-value")), MCPProtocolError)
    assert "k3y" not in str(why(WireError(-32603, "no k3y-value")))
    ended = why(WireError(CONNECTION_CLOSED, "Connection closed"))
    assert isinstance(ended, MCPConnectionError)
    assert ended.command == "npx"
    assert str(why(OSError("k3y-value"))) == "Server 'demo' cannot be reached: OSError: [redacted]."


# Messages and entries


def test_messages_of_a_batch_and_what_is_none() -> None:
    batch = '[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","method":"notifications/x"}]'
    assert len(messages(batch)) == 2
    assert len(messages(b'{"jsonrpc":"2.0","id":1,"result":{}}')) == 1
    for text in ("hello", "5", "{}", '[{"a":1}]', b"\xff\xfe"):
        with pytest.raises(ValueError):
            messages(text)


def test_entries_of_lists_take_what_is_well_formed() -> None:
    tool = UpstreamTool.from_wire(
        {
            "name": "a.b",
            "title": 5,
            "description": "d",
            "inputSchema": [],
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "icons": [{"src": "x"}, 3],
            "_meta": {"k": 1},
        }
    )
    assert tool == UpstreamTool(
        "a.b",
        None,
        "d",
        {"type": "object"},
        {"type": "object"},
        {"readOnlyHint": True},
        ({"src": "x"},),
        {"k": 1},
    )
    unusable: list[object] = [None, {}, {"name": ""}, {"name": 5}, []]
    for entry in unusable:
        assert UpstreamTool.from_wire(entry) is None
        assert UpstreamPrompt.from_wire(entry) is None
    prompt = UpstreamPrompt.from_wire(
        {"name": "p", "arguments": [{"name": "a", "required": True}, {"x": 1}, 2]}
    )
    assert prompt == UpstreamPrompt("p", arguments=({"name": "a", "required": True},))


def test_what_the_pipe_took_counts_as_sent_though_the_child_is_gone() -> None:
    async def main() -> list[str]:
        said = []
        for taken in (True, False):
            child = Child(Tail(), lambda data: None, lambda: None)
            child._open = {0}
            with mock.patch.object(child, "_pipe", return_value=mock.Mock(is_closing=lambda: False)):
                child.pause_writing()
                writing = asyncio.create_task(child.write(b"x"))
                await asyncio.sleep(0)
                if taken:
                    child.resume_writing()
                child._open = set()  # the child has ended before the writer goes on
                child._writable.set()
                done = await asyncio.gather(writing, return_exceptions=True)
                said.append(type(done[0]).__name__)
        return said

    assert asyncio.run(main()) == ["NoneType", "BrokenPipeError"]


def test_a_pipe_that_the_event_loop_has_closed_is_a_broken_one() -> None:
    child = Child(Tail(), lambda data: None, lambda: None)
    child._open = {0}
    closed = mock.Mock(write=mock.Mock(side_effect=RuntimeError("<Transport 0x7f>; the handler is closed")))
    with mock.patch.object(child, "_pipe", return_value=closed), pytest.raises(BrokenPipeError):
        asyncio.run(child.write(b"x"))
    assert child.written == 0
