"""The result of `csv_profile`: what an agent reads, and the schema that clients validate it against."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class ColumnType(StrEnum):
    """The narrowest type that every cell of a column has; `kinds.py` states what cells of each look like."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    TEXT = "text"
    EMPTY = "empty"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TopValue(_Model):
    """A frequent value of a text or boolean column."""

    value: str = Field(description="The value; one of more than 64 characters is cut and ends with '…'.")
    count: int = Field(ge=1, description="Cells with this value (at least, where top_exact is false).")


class ColumnProfile(_Model):
    """What is known about one column after all rows were read."""

    name: str = Field(
        description="The header's name, made unique; column_1, column_2, ... where there is none."
    )
    type: ColumnType = Field(
        description="The type that all cells have. integer: no leading zeros, which make an id ('007' is "
        "text). number: a decimal point or exponent is allowed; no thousands separators, no NaN, no infinity. "
        "boolean: true, false, yes, no. date and datetime: ISO 8601. text: anything else, or a mix. "
        "empty: no cell has a value."
    )
    missing: int = Field(
        ge=0,
        description="Cells that are empty, blank, or absent because a row is short. In a column that is not "
        "text, also the words NA, N/A, NaN, NULL and None.",
    )
    distinct: int = Field(
        ge=0,
        description="Different values that are not missing, compared as text without the white space around "
        "them ('1' and '1.0' are two).",
    )
    distinct_exact: bool = Field(
        description="False when there are more than 50,000 different values (in tables of more than 4 columns: "
        "200,000 divided by the number of columns); distinct is then an estimate, "
        "usually within 5% (15% in tables of hundreds of columns)."
    )
    min: int | float | str | None = Field(
        default=None,
        description="Smallest value of an integer or number column, or earliest date or datetime as it is "
        "written. An integer beyond ±(2^53-1) is a string of its exact digits, because most JSON readers would "
        "round it.",
    )
    max: int | float | str | None = Field(default=None, description="Largest or latest value, like min.")
    mean: float | None = Field(default=None, description="Arithmetic mean of an integer or number column.")
    min_length: int | None = Field(
        default=None, description="Characters in the shortest value of a text column."
    )
    max_length: int | None = Field(
        default=None, description="Characters in the longest value of a text column."
    )
    top: list[TopValue] | None = Field(
        default=None, description="The most frequent values of a text or boolean column, most frequent first."
    )
    top_exact: bool | None = Field(
        default=None,
        description="False when the counts in top are lower bounds (too many different values to keep).",
    )
    mixed: dict[ColumnType, int] | None = Field(
        default=None,
        description="Where cells of several types make the column text: how many cells have which type.",
    )


class CsvProfile(_Model):
    """The profile of one CSV text."""

    row_count: int = Field(ge=0, description="Data rows: without the header and without blank lines.")
    column_count: int = Field(ge=1, description="Columns.")
    delimiter: str = Field(description="The delimiter that was used.")
    header: bool = Field(description="Whether the first row was used as the header.")
    columns: list[ColumnProfile] = Field(description="One entry a column, in the order of the text.")
    histogram_column: str | None = Field(
        default=None,
        description="The column that the histogram image shows (the first integer or number column).",
    )
    warnings: list[str] = Field(description="What a reader should know before trusting the numbers.")
