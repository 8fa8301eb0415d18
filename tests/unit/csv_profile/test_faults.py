"""Every kind of bad input gives a result that says so, or an error that says what is wrong."""

from __future__ import annotations

import csv
import io

import pytest

from shared.tool import ToolError
from tests.unit.csv_profile.support import column, profiled
from tools.csv_profile.reading import CHUNK, MAX_RECORD

TABLE = "id,name\n1,Ann\n2,Bea\n3,Cid\n"


def refusal(text: str, delimiter: str | None = None, header: bool | None = None) -> str:
    with pytest.raises(ToolError) as caught:
        profiled(text, delimiter, header)
    message = str(caught.value)
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "csv is empty"),
        (" \n\r\n\t\n", "csv is blank"),
        ("\ufeff", "csv is blank"),
        ("\ufeff\n \n", "csv is blank"),
        ("PK\x03\x04\x14\x00\x06\x00", "ZIP archive"),
        ("%PDF-1.7\n1 0 obj", "PDF document"),
        ("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "PNG image"),
        ("".join(map(chr, range(32))) * 20 + "a,b\n", "csv is not text"),
        ("\ufffd" * 50 + "a,b\n1,2\n", "csv is not text"),
        ("/data/May 2024.csv", "csv is a path or URL"),
        ("https://example.org/data?format=csv\n", "csv is a path or URL"),
        (TABLE.encode("utf-16-le").decode("latin-1"), "UTF-16"),
        (TABLE.encode("utf-16").decode("latin-1"), "UTF-16"),
        (TABLE.encode("utf-16-be").decode("latin-1"), "UTF-16"),
        ("\ufffe" + TABLE, "UTF-16"),
        ('a,b\n1,2\n3,"open\n4,5\n', "line 3 is never closed"),
        ('"', "line 1 is never closed"),
        ('a,b\n"multi\nline",2\n3,"open', "line 4 is never closed"),
        ('a,b\n1,2\n3,"' + "x,\n" * 50_000, "line 3 has a cell of more than 131,072"),
        ("a,b\n1," + "x" * 200_000 + "\n2,3\n", "line 2 has a cell of more than 131,072"),
        ("x" * 200_000, "line 1 has a cell of more than 131,072"),
        ("a,b\n1,2\n" + "x," * MAX_RECORD, "line 3 is longer than 1,048,576"),
        ("a,b\n1,2\n" + '"x\n",' * MAX_RECORD, "line 3 is longer than 1,048,576"),
        (",".join(map(str, range(1001))), "1,001 columns; at most 1,000"),
    ],
)
def test_refused_with_a_reason(text: str, said: str) -> None:
    assert said in refusal(text)


@pytest.mark.parametrize(
    ("delimiter", "said"),
    [
        ("", "delimiter is an empty text"),
        (";;", "delimiter is 2 characters"),
        ('"', "delimiter is '\"'"),
        ("\n", r"delimiter is '\n'"),
        ("\r", r"delimiter is '\r'"),
        ("\0", r"delimiter is '\x00'"),
        ("\ud800", r"delimiter is '\ud800'"),
        ("x" * 10_000, "delimiter is 10,000 characters"),
    ],
)
def test_an_illegal_delimiter_is_refused(delimiter: str, said: str) -> None:
    assert said in refusal(TABLE, delimiter)


def test_an_error_does_not_repeat_the_data() -> None:
    assert "hunter2" not in refusal('user,password\nann,"hunter2\n')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ï»¿" + TABLE, "byte order mark that was read as Latin-1"),
        (TABLE.replace("Ann", "An\0n"), "1 NUL character"),
        (TABLE.replace("Ann", "An\ufffdn"), "1 replacement character"),
        (TABLE.replace("Ann", "An\ud800n"), "unpaired UTF-16 surrogates"),
        (TABLE.replace("Ann", "Andrée").encode().decode("latin-1"), "UTF-8 that was read as Latin-1"),
        (TABLE.replace("Ann", "“Ann€").encode().decode("cp1252", "replace"), "UTF-8 that was read as Latin-1"),
        (TABLE.replace("\n", "\r"), "4 carriage return"),
        (TABLE.replace("2,Bea\n", "2,Bea\n\n  \n"), "2 blank line(s) were skipped (lines 4, 5)"),
        (TABLE + "4\n", "1 row(s) have too few cells (line 5); the 1 absent cell"),
        (TABLE + "4,Dan,x,y\n", "1 row(s) have too many cells (line 5); the 2 extra cell"),
        ("id,name\n", "only a header"),
    ],
)
def test_profiled_with_a_warning(text: str, said: str) -> None:
    found = profiled(text)
    assert [column.name for column in found.columns] == ["id", "name"]
    assert any(said in warning for warning in found.warnings), found.warnings
    if found.row_count:
        assert (found.columns[0].type, found.columns[0].min, found.columns[0].max) == (
            "integer",
            1,
            found.row_count,
        )


def test_a_text_that_was_escaped_twice_is_named() -> None:
    found = profiled(TABLE.replace("\n", "\\n"))
    assert any("escaped once too often" in warning for warning in found.warnings)


def test_a_delimiter_that_does_not_occur_is_named() -> None:
    found = profiled(TABLE, ";")
    assert (found.column_count, found.delimiter) == (1, ";")
    assert any("no ';' in the first rows" in warning for warning in found.warnings)


def test_a_healthy_table_has_no_warnings() -> None:
    for text in (
        TABLE,
        "\ufeff" + TABLE,
        TABLE.replace("\n", "\r\n"),
        TABLE.replace("Ann", "Zoë, née Ünal 漢字"[:3]),
    ):
        assert profiled(text).warnings == []
        assert profiled(text).columns[0].name == "id"


def test_ragged_rows_keep_the_statistics_right_and_name_the_first_lines() -> None:
    rows = ["a,b,c"] + ["1,2,3"] * 3 + ["4,5"] * 8 + ['"6\n6",7,8,9'] + ["1"]
    found = profiled("\n".join(rows))
    assert found.row_count == 13
    assert [entry.missing for entry in found.columns] == [0, 1, 9]
    short, long = (warning for warning in found.warnings if "row(s)" in warning)
    assert short.startswith("9 row(s) have too few cells (lines 5, 6, 7, 8, 9 and 4 more); the 10 absent")
    assert long.startswith("1 row(s) have too many cells (line 13); the 1 extra")


def test_line_numbers_count_line_breaks_inside_quotes() -> None:
    found = profiled('a,b\n"x\ny\r\nz",1\n2\n')
    assert any("too few cells (line 5)" in warning for warning in found.warnings)


def test_line_numbers_hold_far_into_a_long_text() -> None:
    text = "a,b\n" + '"two\nlines",1\n' * 60_000 + "short\n" + "x,1\n" * 60_000
    assert any("too few cells (line 120002)" in warning for warning in profiled(text).warnings)


def test_header_names_are_made_unique() -> None:
    found = profiled("a,a,,a_2, b ,\n1,2,3,4,5,6\n", header=True)
    assert [entry.name for entry in found.columns] == ["a", "a_3", "column_3", "a_2", "b", "column_6"]
    assert any("'a'" in warning for warning in found.warnings)
    assert any("2 column(s) have no name" in warning for warning in found.warnings)


def test_no_header() -> None:
    found = profiled("1,Ann\n2,Bea\n")
    assert (found.header, found.row_count) == (False, 2)
    assert [entry.name for entry in found.columns] == ["column_1", "column_2"]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("name,score\nAnn,1.5\nBea,2.5\n", True),
        ("Ann,1.5\nBea,2.5\n", False),
        ("country,2019,2020\nPeru,1.5,2.5\nChad,3.5,4.5\n", True),
        ("2019,2020\n2021,2022\n", False),
        ("name,town\nAnn,Lima\nBea,Lima\n", True),
        ("Ann,Lima\nBea,Lima\n", False),
        ("when,what\n2024-01-01,a\n2024-01-02,b\n", True),
        ("2024-01-01,a\n2024-01-02,b\n", False),
        ("Report of May\nname,score\nAnn,1\nBea,2\n", False),
        ("a,b\n", True),
        ("a,1\n", False),
    ],
)
def test_the_header_is_detected(text: str, header: bool) -> None:
    assert profiled(text).header is header
    for forced in (True, False):
        assert profiled(text, header=forced).header is forced


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_sniffed(delimiter: str) -> None:
    text = TABLE.replace(",", delimiter).replace("Ann", '"Ann, or; or| or\tAnna"')
    found = profiled(text)
    assert (found.delimiter, found.column_count, found.row_count) == (delimiter, 2, 3)


def test_decimal_commas_do_not_make_columns() -> None:
    assert profiled("1,5;2,5\n3,5;4,5\n").delimiter == ";"


@pytest.mark.parametrize("delimiter", [":", "^", " ", "\x1f", "x", "\\t", "→"])
def test_any_other_delimiter_can_be_given(delimiter: str) -> None:
    found = profiled(TABLE.replace(",", delimiter.replace("\\t", "\t")), delimiter)
    assert (found.column_count, found.row_count, found.columns[0].type) == (2, 3, "integer")


def test_quotes_after_a_space_still_quote() -> None:
    found = profiled('a, "b"\n1, "x, y"\n2, "z"\n')
    assert [entry.name for entry in found.columns] == ["a", "b"]
    assert (found.warnings, found.columns[1].max_length) == ([], 4)


def test_one_column_is_a_table_too() -> None:
    found = profiled("age\n31\n\n44\n")
    assert (found.row_count, found.column_count, found.columns[0].mean) == (2, 1, 37.5)
    assert any("No delimiter was found" in warning for warning in found.warnings)


def test_many_blank_lines_first() -> None:
    found = profiled("\n" * 200_000 + TABLE)
    assert (found.header, found.row_count, found.columns[0].name) == (True, 3, "id")


def test_a_header_longer_than_the_sample() -> None:
    names = [f"{'n' * 90}_{index}" for index in range(900)]
    found = profiled(",".join(names) + "\n" + ",".join(["1"] * 900) + "\n")
    assert (found.header, found.column_count, found.row_count) == (True, 900, 1)
    assert found.columns[899].name == names[899]


def test_what_comes_out_can_be_sent_as_utf_8() -> None:
    found = profiled("\ud800,b\n\udfff,1\n", header=True)
    found.model_dump_json().encode()
    assert found.columns[0].name == "\ufffd"
    assert column(["x\udc00"] * 70_000).distinct == 1


def test_the_field_limit_of_the_process_is_not_changed() -> None:
    before = csv.field_size_limit()
    refusal("x" * 200_000)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("length", [*range(CHUNK - 3, CHUNK + 3), *range(MAX_RECORD - 3, MAX_RECORD)])
def test_line_ends_may_fall_on_the_border_of_what_is_read_at_once(length: int, end: str) -> None:
    widest = 116_000
    first = ",".join(["x" * widest] * (length // (widest + 1)))
    first += "," + "y" * (length - len(first) - 1)
    assert len(first) == length
    row = ",".join("1" * (first.count(",") + 1))
    found = profiled(f"{first}{end}{row}{end}{row}{end}", ",", False)
    assert (found.row_count, {entry.missing for entry in found.columns}) == (3, {0})
    assert not [warning for warning in found.warnings if "line(s)" in warning]


def test_quoted_line_ends_are_data() -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([["a", "b"], ["1\r\n2", "x\ry"], ["3\n4", "z"]])
    found = profiled(buffer.getvalue())
    assert (found.row_count, found.columns[0].distinct, found.columns[0].max_length) == (2, 2, 4)
