"""Properties that hold for random tables and for any text at all."""

from __future__ import annotations

import csv
import io

from hypothesis import example, given
from hypothesis import strategies as st

from shared.tool import ToolError
from tests.unit.csv_profile.support import Watcher, profiled, read_png
from tools.csv_profile.kinds import NULL_WORDS
from tools.csv_profile.model import CsvProfile
from tools.csv_profile.profile import profile_csv

integers = st.integers(-(10**20), 10**20).map(str)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff\ufffe\ufffd"), max_size=12)
cells = st.one_of(
    st.just(""), integers, words, st.sampled_from(["a,b", 'say "hi"', "x\ny", "x\r\ny", " pad ", "NA"])
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], str, str]:
    """Rows (the first one is the header), a delimiter, and the rows as CSV text."""
    width = draw(st.integers(1, 5))
    kinds = [draw(st.sampled_from([integers, cells])) for _ in range(width)]
    header = [f"name {index}" for index in range(width)]
    rows = draw(st.lists(st.tuples(*kinds).map(list), min_size=1, max_size=12))
    delimiter = draw(st.sampled_from(",;\t|:x"))
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer,
        delimiter=delimiter,
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"])),
    )
    writer.writerows([header, *rows])
    return [header, *rows], delimiter, buffer.getvalue()


@given(tables())
def test_a_written_table_comes_back(table: tuple[list[list[str]], str, str]) -> None:
    (header, *rows), delimiter, text = table
    try:
        found = profiled(text, delimiter, header=True)
    except ToolError as error:
        # A few random characters can make a short text look like binary data.
        assert "not text" in str(error)  # noqa: PT017
        return
    assert found.row_count == len(rows)
    assert [entry.name for entry in found.columns] == header
    for index, entry in enumerate(found.columns):
        values = [row[index].strip() for row in rows]
        nulls = {""} if entry.type == "text" else {"", *NULL_WORDS}
        present = [value for value in values if value not in nulls]
        assert entry.missing == len(values) - len(present)
        assert (entry.distinct, entry.distinct_exact) == (len(set(present)), True)
        if entry.type == "integer":
            numbers = list(map(int, present))
            assert int(entry.min or 0) == min(numbers)
            assert int(entry.max or 0) == max(numbers)
        if entry.type == "text":
            assert (entry.min_length, entry.max_length) == (min(map(len, present)), max(map(len, present)))
            assert sum(top.count for top in entry.top or ()) <= len(present)


any_character = st.characters(codec=None)
noise = st.text(
    st.one_of(st.sampled_from(" \t\r\n,;|\"'\0\ufeff\ud800.-+e019NAtrue:TZ"), any_character), max_size=80
)


@given(
    noise,
    st.one_of(st.none(), st.none(), st.sampled_from([",", ";", "\t", " ", "|", "a", "", ",,", '"'])),
    st.sampled_from([None, True, False]),
)
@example('a\r"', None, None)
@example('""\n""', None, None)
@example(",,\n,,", None, None)
@example("1e308\n1e308\n-1e308", None, False)
@example("5e-324\n0", None, False)
@example("0001-01-01T00:00+14:00\n9999-12-31T23:59-14:00", ",", False)
@example("\x1c\x1da,b", None, None)
def test_any_text_gives_a_profile_or_a_tool_error(
    text: str, delimiter: str | None, header: bool | None
) -> None:
    try:
        found, image = profile_csv(text, delimiter, header, Watcher())
    except ToolError as error:
        str(error).encode()
        return
    assert CsvProfile.model_validate_json(found.model_dump_json().encode()) == found
    assert (image is None) == (found.histogram_column is None)
    if image is not None:
        read_png(image)
    for entry in found.columns:
        assert entry.missing <= found.row_count
        assert entry.distinct <= found.row_count - entry.missing
