"""Large JSON is read as `json.loads` reads it, and in pieces, between which the process goes on."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import large_json
from shared.large_json import reading, writing

#: Small enough for pieces to end everywhere in what the tests write.
PIECES = (16, 17, 24, 40, 64)
TEXTS = st.text(max_size=60) | st.text('\\"/,[]{}: \n\t', max_size=60) | st.text("😀é\ud83d\ude00", max_size=30)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(TEXTS, inner, max_size=8),
    max_leaves=60,
)


def read(text: str, piece: int, in_vain: int = 32) -> Any:
    """What comes of a text that is cut into pieces of `piece` characters, `in_vain` of which may be read so at
    first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", piece)
        patch.setattr(reading, "_PIECES_IN_VAIN", in_vain)
        patch.setattr(large_json, "SMALL", 0)
        return large_json.loads(text)


def outcome(parse: Callable[[str], Any], text: str) -> str:
    try:
        return repr(parse(text))
    except ValueError:
        return "refused"


@given(
    VALUES,
    st.sampled_from(PIECES),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.sampled_from([",", " ,\t"]),
    st.sampled_from([0, 1, 32]),
)
def test_it_reads_what_the_library_reads(
    value: Any, piece: int, indent: int | None, is_ascii: bool, comma: str, in_vain: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii, separators=(comma, " : "))
    assert repr(read(text, piece, in_vain)) == repr(json.loads(text))


@given(VALUES, st.sampled_from(PIECES), st.integers(0), st.sampled_from([*'{}[]",:\\ 0-x\x01', "\\u12", ""]))
def test_it_refuses_what_the_library_refuses(value: Any, piece: int, place: int, put: str) -> None:
    whole = json.dumps(value)
    place %= len(whole) + 1
    for text in (whole[:place] + put + whole[place:], whole[:place] + put + whole[place + 1 :], whole[:place]):
        assert outcome(lambda text: read(text, piece), text) == outcome(json.loads, text)


@given(VALUES, st.sampled_from((1, 3, 8, 16, 40)), st.sampled_from((0, 1, 128)))
def test_it_writes_what_the_library_writes(value: Any, piece: int, looks: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "PIECE", piece)
        patch.setattr(writing, "_LOOKS_AT_FIRST", looks)
        assert large_json.dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "text",
    [
        '"' + "\\ud83d\\ude00" * 40 + '"',
        '"' + "a\\ud83d" * 40 + '"',
        '"' + "\ud83d\\ude00" * 40 + '"',
        '"' + "\\\\" * 99 + '"',
        '"' + "\\" * 99 + '"',
        '"\\ud83d\\u12"',
        '["' + "x" * 99,
        '"\x01' + "x" * 99 + '"',
        '{"a": 1, ' * 9 + '"b": ' + "[" * 20 + "1" + "]" * 20 + "}" * 9,
        '{"a": 1, "a": [' + "1, " * 40 + "2]}",
        "[" + "1, " * 99 + "]",
        "[" + "1, " * 99 + "2],[3]",
        "[1],[2]",
        "[" + " " * 99 + "]",
        "{" + " " * 99 + "}",
        '{"a": 1' + " " * 99 + "}x",
        "1" * 99,
        "-",
        "tru",
        "[" + "true, " * 40 + "nul]",
        "",
        " " * 99,
        "\ufeff[]",
        '[1, "a,b' + "c, " * 40 + '"]',
        "[[1,2],[3,4]," * 9 + "5" + "]" * 9,
        '{"a"' + " " * 99 + ':1,"b" 2}',
        '{"a":1,' + " " * 99 + "}",
        "{" + '"k": {"v": [1, 2]}, ' * 40 + '"k": 5}',
        "[" + "1.5e3, " * 40 + "1e400]",
    ],
)
@pytest.mark.parametrize("piece", PIECES)
def test_at_the_edges_of_pieces(text: str, piece: int) -> None:
    assert outcome(lambda text: read(text, piece), text) == outcome(json.loads, text)


def test_constants_are_as_the_caller_wants_them() -> None:
    text = f"[{'1, ' * 40_000}NaN]"
    assert math.isnan(large_json.loads(text)[-1])

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    for one in (text, "NaN"):
        with pytest.raises(ValueError, match="NaN is no JSON"):
            large_json.loads(one, refuse)


def test_what_is_nested_too_deeply_is_told_as_such() -> None:
    deep = 100_000
    with pytest.raises(RecursionError):
        large_json.loads("[" * deep + "]" * deep)
    big = json.dumps("x" * reading.PIECE)
    with pytest.raises(RecursionError):
        large_json.loads(f'{{"a": [{big}, ' * 1_000 + "1" + "]}" * 1_000)


LARGE: dict[str, Callable[[random.Random], Any]] = {
    "numbers": lambda rng: [rng.randrange(10**6) for _ in range(300_000)],
    "records": lambda rng: [{"id": n, "name": f"r{n}, x", "tags": ["a", "b"]} for n in range(40_000)],
    "by name": lambda rng: {f"id-{n}": {"n": n, "at": [n, n]} for n in range(40_000)},
    "one text": lambda rng: {"file": rng.randbytes(1_000_000).hex()},
    "escaped text": lambda rng: ["Größe\n" * 300_000],
    "nothing but brackets": lambda rng: [[[], {}]] * 200_000,
    "texts with commas": lambda rng: [f"a, b {n}" for n in range(100_000)],
    "in one field": lambda rng: {"a": {"b": {"c": [{"d": [{"e": list(range(200_000))}]}]}}},
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("indent", [None, 2])
def test_no_step_reads_more_than_a_piece(
    kind: str, indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's lock is held from the beginning of a step to its end, also by one that comes to nothing."""
    longest = 0

    class Watched(json.JSONDecoder):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            scan: Any = self.scan_once  # type: ignore[has-type]

            def watched(text: str, at: int) -> Any:
                nonlocal longest
                end = len(text)
                try:
                    value, end = scan(text, at)
                finally:
                    longest = max(longest, end - at)
                return value, end

            self.scan_once = watched

    text = json.dumps(LARGE[kind](random.Random(7)), indent=indent)
    expected = json.loads(text)
    monkeypatch.setattr(json, "JSONDecoder", Watched)
    assert large_json.loads(text) == expected
    assert 0 < longest <= reading.PIECE + 2


@pytest.mark.parametrize("kind", LARGE)
def test_no_step_writes_much_more_than_a_piece(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0
    encode = writing._encode

    def watched(value: Any) -> str:
        nonlocal longest
        text = encode(value)
        longest = max(longest, len(text))
        return text

    monkeypatch.setattr(writing, "_encode", watched)
    value = LARGE[kind](random.Random(7))
    assert large_json.dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert 0 < longest <= 4 * writing.PIECE


def test_the_collector_rests_meanwhile_and_afterwards_has_no_more_to_do_than_before() -> None:
    told: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        told.append(phase)

    text = json.dumps([[n] for n in range(100_000)])
    gc.collect()
    gc.callbacks.append(note)
    try:
        found = large_json.loads(text)
        assert told == []
        assert gc.get_count()[0] < 1_000 < len(found)
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    with pytest.raises(ValueError, match="delimiter"):
        large_json.loads(text[:-1])
    assert gc.isenabled()


def test_a_collector_that_others_have_stopped_stays_stopped() -> None:
    gc.disable()
    try:
        large_json.loads(json.dumps(list(range(50_000))))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_of_two_readers_the_last_wakes_the_collector() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def constant(name: str) -> Any:
        inside.set()
        assert go_on.wait(20)

    text = f"[{'1, ' * 40_000}NaN]"
    reader = threading.Thread(target=large_json.loads, args=(text, constant))
    reader.start()
    assert inside.wait(20)
    large_json.loads(text)
    assert not gc.isenabled()
    go_on.set()
    reader.join(20)
    assert gc.isenabled()


def test_work_is_done_elsewhere_and_its_errors_come_back() -> None:
    def work(*, wanted: str) -> str:
        if not wanted:
            raise ValueError("nothing wanted")
        return f"{wanted} on {threading.current_thread().name}"

    async def main() -> None:
        assert (await large_json.run(work, wanted="x")).startswith("x on large-json")
        with pytest.raises(ValueError, match="nothing wanted"):
            await large_json.run(work, wanted="")

    asyncio.run(main())


TOWER = "[" * 200 + "1," * 20_000 + "1" + "]" * 200
#: Texts whose pieces end in the wrong place again and again.
HARD = (
    f"[{TOWER},{TOWER},{TOWER}]",
    f"[{TOWER}]".replace("1", "[]"),
    "{" + ",".join(f'"{key}":{TOWER}' for key in "abc") + "}",
    "[" + ",".join(["[]," * 10_600 + "[[]," + "[]," * 600 + "[]]"] * 5) + "]",
    "{" + ",".join(f'"key{number}":{{"a":[1,2],"b":[3,4]}}' for number in range(6_000)) + "}",
)


@pytest.mark.parametrize("text", HARD)
def test_what_is_read_in_vain_is_bounded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each level of what lies within each other, and not a piece for each short item."""
    handed = 0
    init = reading.Reader.__init__

    def counting(self: reading.Reader, text: str, decoder: json.JSONDecoder) -> None:
        init(self, text, decoder)
        scan = self._scan

        def counted(part: str, start: int) -> tuple[Any, int]:
            nonlocal handed
            handed += len(part) if part is not text else 0
            return scan(part, start)

        self._scan = counted

    monkeypatch.setattr(reading.Reader, "__init__", counting)
    assert large_json.loads(text) == json.loads(text)
    # Of pieces of which only the first item is read, each is one of the shortest.
    short = reading.PIECE // reading._SHORTER[0]
    allowed = (reading._IN_VAIN + 2) * len(text) + reading._PIECES_IN_VAIN * reading.PIECE
    assert handed <= allowed + short * text.count("[]")


@pytest.mark.parametrize("text", HARD)
def test_how_often_large_values_are_looked_at_is_bounded(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    weigh = writing._weight

    def counting(value: Any) -> int:
        nonlocal looks
        weight = weigh(value)
        looks += weight > writing.PIECE
        return weight

    monkeypatch.setattr(writing, "_weight", counting)
    assert large_json.dumps(json.loads(text)) == text
    assert looks <= writing._LOOKS_AT_FIRST + 2 * writing._LOOKS * len(text) // writing.PIECE
