"""From a text to its profile and picture: the order in which the other modules do their parts. No I/O."""

from typing import Final, Protocol

from shared.tool import ToolError
from tools.csv_profile import faults, histogram
from tools.csv_profile.model import ColumnType, CsvProfile
from tools.csv_profile.reading import Source, batches
from tools.csv_profile.sniffing import Sniffed, checked_delimiter, has_header, sniff
from tools.csv_profile.table import Table, column_names, type_warnings

_MAX_WARNINGS: Final = 50
_NUMERIC: Final = (ColumnType.INTEGER, ColumnType.NUMBER)


class Reporter(Protocol):
    """Who wants to know how a long call is doing. What it raises ends the call."""

    def started(self, message: str) -> None:
        """The text is a table; `message` says of which shape."""

    def advanced(self, share: float, rows: int) -> None:
        """`share` of the text (0 to 1, never less than before) has been read, and `rows` data rows in it."""


def profile_csv(
    text: str, delimiter: str | None, header: bool | None, reporter: Reporter
) -> tuple[CsvProfile, bytes | None]:
    """The profile of `text` and a PNG of its first numeric column, if it has one.

    ToolError: an argument is illegal, or the text cannot be read as CSV.
    """
    delimiter = checked_delimiter(delimiter)
    start, warnings = faults.content_start(text)
    faults.refuse_non_text(text, start)
    warnings += faults.text_warnings(text)
    sniffed = sniff(text, start, delimiter)
    source = Source(text, position=start, settled=start)
    records = batches(source, sniffed.dialect)
    if not sniffed.rows:
        next(records)  # says what is wrong with the first record
        raise ToolError("csv has no record that can be read.")
    if not sniffed.found:
        what = "No delimiter was found" if delimiter is None else f"There is no {delimiter!r} in the first rows"
        warnings.append(f"{what}, so each line is one cell. Pass another delimiter if that is wrong.")
    if header is None:
        header, warning = _detected_header(sniffed)
        warnings += warning
    names, name_warnings = column_names(sniffed.rows, header=header)
    used = sniffed.dialect.delimiter
    reporter.started(
        f"Reading {len(text):,} characters: {len(names):,} column(s), delimiter {used!r}, "
        f"{'a' if header else 'no'} header."
    )
    table = Table(names, sniffed.rows[0] if header else None)
    for batch in records:
        table.add(batch)
        reporter.advanced(source.position / len(text), table.row_count)

    columns = table.profiles()
    warnings += [*name_warnings, *table.row_warnings(), *type_warnings(columns)]
    drawn = next((index for index, column in enumerate(columns) if column.type in _NUMERIC), None)
    profile = CsvProfile(
        row_count=table.row_count,
        column_count=len(columns),
        delimiter=used,
        header=header,
        columns=columns,
        histogram_column=None if drawn is None else columns[drawn].name,
        warnings=_bounded(warnings),
    )
    bars = None if drawn is None else table.columns[drawn].histogram()
    return profile, None if drawn is None or bars is None else histogram.draw(columns[drawn], bars)


def _detected_header(sniffed: Sniffed) -> tuple[bool, list[str]]:
    header, certain = has_header(sniffed.rows)
    if certain:
        return header, []
    taken_for = "the header" if header else "data"
    return header, [
        f"The first row was taken for {taken_for}, which the cells below do not prove. Pass header otherwise."
    ]


def _bounded(warnings: list[str]) -> list[str]:
    if len(warnings) <= _MAX_WARNINGS:
        return warnings
    return [*warnings[:_MAX_WARNINGS], f"... and {len(warnings) - _MAX_WARNINGS:,} more warnings."]
