from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.jobs.logs import (
    CHUNK_BYTES,
    CUT_MARK,
    LINE_BYTES,
    LINES,
    RING,
    Level,
    LogRing,
    cut,
    read_lines,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
TEXT = st.text(max_size=200) | st.sampled_from(
    ["漢" * 3000, "🎈" * 1100, "\x00\x1f" * 2050, "a" * 4096, "a" * 9000]
)


class Stored:
    """The rows as a table would hold them."""

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.written = 0

    def flush(self, ring: LogRing) -> None:
        changed = ring.take_dirty()
        assert sum(len(data) for _, data in changed) < 4 * 1024 * 1024 * 3 // 4
        for slot, data in changed:
            assert 0 <= slot < RING
            assert len(data) <= CHUNK_BYTES
            self.rows[slot] = data
            self.written += 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, st.booleans()), max_size=120), st.integers(1, 6))
def test_the_newest_lines_are_kept_whole_and_in_order(lines: list[tuple[str, bool]], repeat: int) -> None:
    """Whatever the lines' sizes are and whenever they are flushed."""
    ring, stored = LogRing(), Stored()
    told = []
    for text, flush in lines * repeat:
        ring.append(Level.INFO, text, NOW)
        told.append(cut(text).decode())
        if flush:
            stored.flush(ring)
    stored.flush(ring)
    found = read_lines(stored.rows.values())
    assert [line.message for line in found] == told[-LINES:]
    assert [line.sequence for line in found] == list(range(1, len(told) + 1))[-LINES:]
    assert ring.lines == len(told)


@pytest.mark.parametrize("size", [0, 10, 4096])
def test_a_later_attempt_goes_on_behind_the_earlier_one(size: int) -> None:
    stored = Stored()
    lines, chunk = 0, 0
    for attempt in range(4):
        ring = LogRing(lines, chunk)
        for number in range(70):
            ring.append(Level.WARN, f"{attempt}/{number} ".ljust(size, "x"), NOW)
        stored.flush(ring)
        lines, chunk = ring.lines, ring.next_chunk
    found = read_lines(stored.rows.values())
    assert [line.sequence for line in found] == list(range(81, 281))
    assert found[-1].message.startswith("3/69 ")


def test_a_burst_costs_no_more_than_the_ring() -> None:
    ring, stored = LogRing(), Stored()
    for number in range(10_000):
        ring.append(Level.DEBUG, f"line {number}", NOW)
    stored.flush(ring)
    assert stored.written <= RING
    assert [line.message for line in read_lines(stored.rows.values())][-1] == "line 9999"
    stored.flush(ring)
    assert stored.written <= RING


def test_only_changed_chunks_are_written_again() -> None:
    ring, stored = LogRing(), Stored()
    for number in range(120):
        ring.append(Level.INFO, f"line {number}", NOW)
    stored.flush(ring)
    before = stored.written
    ring.append(Level.INFO, "one more", NOW)
    stored.flush(ring)
    assert stored.written == before + 1


def test_what_could_not_be_written_is_written_next_time() -> None:
    ring = LogRing()
    ring.append(Level.INFO, "lost on the way", NOW)
    ring.put_back(slot for slot, _ in ring.take_dirty())
    stored = Stored()
    stored.flush(ring)
    assert [line.message for line in read_lines(stored.rows.values())] == ["lost on the way"]


def test_a_line_keeps_its_level_and_time() -> None:
    ring, stored = LogRing(), Stored()
    ring.append(Level.ERROR, "x", NOW)
    stored.flush(ring)
    (line,) = read_lines(stored.rows.values())
    assert (line.sequence, line.timestamp, line.level.word, line.message) == (1, NOW, "error", "x")


@given(st.text(max_size=3000).map(lambda text: text * 5))
def test_a_cut_is_between_characters_and_marked(text: str) -> None:
    data = cut(text)
    assert len(data) <= LINE_BYTES
    whole = text.encode("utf-8", "replace").decode()
    if data.decode() != whole:
        assert data.decode().endswith(CUT_MARK)
        assert whole.startswith(data.decode()[: -len(CUT_MARK)])
        assert len(data) > LINE_BYTES - 4


def test_a_damaged_chunk_is_read_as_far_as_it_goes() -> None:
    ring = LogRing()
    ring.append(Level.INFO, "whole", NOW)
    ((_, data),) = ring.take_dirty()
    assert [line.message for line in read_lines([data + b"\x00\x00", b""])] == ["whole"]
