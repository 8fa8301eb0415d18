"""Server-sent events, however their bytes are cut; the HTTP library's own reader is the measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import httpx2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.upstream.connection.events import Event, EventReader, EventTooLargeError


def read(parts: Iterable[bytes], most: int = 1_000) -> list[Event]:
    reader = EventReader(most)
    return [*(event for part in parts for event in reader.feed(part)), *reader.end()]


def theirs(data: bytes) -> list[Event]:
    """What the HTTP library makes of the whole."""
    asked = httpx2.Request("GET", "http://127.0.0.1")
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data, request=asked)
    return [
        Event(event.event, event.data.encode(), event.id, event.retry) for event in httpx2.EventSource(answer)
    ]


_PIECES = [b"data: a", b"data:{}", b"data", b"event: message", b"event:x", b"id: 7", b"id", b"retry: 20"]
_PIECES += [b": note", b"other: b", b"data:  two", "data: ü€".encode(), b"", b"\n", b"\r", b"\r\n", b"\n\n"]


@given(st.lists(st.sampled_from(_PIECES), max_size=40), st.lists(st.integers(0, 200), max_size=12))
def test_however_the_bytes_are_cut(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces)
    assume(not data.endswith(b"\r"))  # which the library takes for the end of an event as well
    at = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [data[start:end] for start, end in itertools.pairwise(at)]
    assert read(parts) == theirs(data)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"data: {}\n\n", [Event("message", b"{}", "", None)]),
        (b"\xef\xbb\xbfdata: {}\n\n", [Event("message", b"{}", "", None)]),
        (b"data: a\rdata: b\r\r", [Event("message", b"a\nb", "", None)]),
        (b"data: a\r\ndata: b\r\n\r\n", [Event("message", b"a\nb", "", None)]),
        (b"id: 1\n\ndata: x\n\n", [Event("message", b"", "1", None), Event("message", b"x", "1", None)]),
        (b"id: a\0b\ndata: x\n\n", [Event("message", b"x", "", None)]),
        (b"retry: soon\ndata: x\n\n", [Event("message", b"x", "", None)]),
        (b"retry: 99999999999999999999\ndata: x\n\n", [Event("message", b"x", "", None)]),
        (b"data: never ended", []),
        (b"data: never ended\n", []),
        (b"data: never ended\r", []),
    ],
)
def test_what_the_specification_says(data: bytes, found: list[Event]) -> None:
    assert read([data]) == found
    assert read([data[:3], *(data[at : at + 1] for at in range(3, len(data)))]) == found


@pytest.mark.parametrize("cut", [1, 7, 4_096])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_event_is_bounded_while_it_comes(cut: int, end: bytes) -> None:
    """In one line that never ends, and in many short ones."""
    for data in (b"data: " + b"x" * 2_000 + end, b"data: x\n" * 200 + end):
        with pytest.raises(EventTooLargeError, match="exceeded the 1000 byte limit"):
            read(data[at : at + cut] for at in range(0, len(data), cut))


def test_the_bound_is_of_one_event() -> None:
    assert len(read([b"data: " + b"x" * 900 + b"\n\n"] * 5)) == 5
