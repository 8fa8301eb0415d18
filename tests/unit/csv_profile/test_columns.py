"""Types and statistics of single columns."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.csv_profile.support import column, profiled
from tools.csv_profile.bins import MAX_BARS, Bins
from tools.csv_profile.column import Column
from tools.csv_profile.model import ColumnType
from tools.csv_profile.values import DistinctSketch, ValueTally


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "+3", "0"], "integer"),
        (["1", "2.5"], "number"),
        ([".5", "1.", "1e5", "-1.5E-3"], "number"),
        (["true", "FALSE", "Yes", "no"], "boolean"),
        (["2024-02-29", "1999-12-31"], "date"),
        (["2024-02-29T10:00", "2024-02-29 10:00:01.5+02:00", "2024-02-29T08:00:00Z"], "datetime"),
        (["2024-02-29", "2024-02-29T10:00"], "datetime"),
        (["", "  ", "\t"], "empty"),
        (["007", "12"], "text"),
        (["00.5"], "text"),
        (["1,000"], "text"),
        (["1_000"], "text"),
        (["٣"], "text"),
        (["1.5", "inf"], "text"),
        (["1e999"], "text"),
        (["9" * 309], "text"),
        (["9" * 5000], "text"),
        (["2023-02-29"], "text"),
        (["29.02.2024"], "text"),
        (["2024-02-29T25:00"], "text"),
        (["2024-06-01", "5"], "text"),
        (["true", "1"], "text"),
        (["1\n2"], "text"),
        (["-"], "text"),
    ],
)
def test_type(cells: list[str], expected: str) -> None:
    assert column(cells).type == expected
    # In batches of one cell each: the type does not depend on how cells come together.
    alone = Column("x", 100)
    for cell in cells:
        alone.add([cell])
    assert alone.profile() == column(cells)


def test_white_space_around_a_cell_does_not_count() -> None:
    found = column([" 1", "1 ", "\u00a02"])
    assert (found.type, found.distinct, found.min, found.max) == ("integer", 2, 1, 2)


def test_null_words_are_missing_in_a_column_of_numbers_and_values_in_a_column_of_text() -> None:
    numbers = column(["1", "NA", "null", "3", "", "NaN"])
    assert (numbers.type, numbers.missing, numbers.distinct, numbers.mean) == ("integer", 4, 2, 2.0)
    countries = column(["DE", "NA", "NA", ""])
    assert (countries.type, countries.missing, countries.distinct) == ("text", 1, 2)
    assert countries.top is not None
    assert [(top.value, top.count) for top in countries.top] == [("NA", 2), ("DE", 1)]
    assert column(["NA", "NA"]).type == "text"


def test_integers_beyond_a_double_stay_exact() -> None:
    found = column(["9007199254740993", "-9007199254740993", "5"])
    assert (found.min, found.max) == ("-9007199254740993", "9007199254740993")
    edge = column([str(2**53 - 1), str(-(2**53 - 1))])
    assert (edge.min, edge.max) == (-(2**53 - 1), 2**53 - 1)


@pytest.mark.parametrize(
    ("cells", "mean"),
    [
        (["1e16", "1", "-1e16"], 1 / 3),
        (["0.1"] * 10, 0.1),
        (["1.7e308", "1.7e308"], 1.7e308),
        (["-1.7e308", "1.7e308", "1.7e308", "-1.7e308"], 0.0),
        (["9007199254740993", "9007199254740995"], 9007199254740994.0),
    ],
)
def test_the_mean_does_not_lose_digits_or_overflow(cells: list[str], mean: float) -> None:
    assert column(cells).mean == pytest.approx(mean, rel=1e-15)


def test_datetimes_are_ordered_as_moments_and_shown_as_written() -> None:
    found = column(["2024-01-01T12:00:00+05:00", "2024-01-01T08:00:00Z", "2024-01-01T07:30"])
    assert (found.min, found.max) == ("2024-01-01T12:00:00+05:00", "2024-01-01T08:00:00Z")
    dates = column(["2024-03-01", "0001-01-01", "9999-12-31"])
    assert (dates.min, dates.max) == ("0001-01-01", "9999-12-31")


def test_text_has_lengths_and_its_most_frequent_values() -> None:
    found = column(["red", "blue", "red", "x" * 500, ""])
    assert (found.min_length, found.max_length, found.missing, found.distinct) == (3, 500, 1, 3)
    assert found.top is not None
    assert (found.top[0].value, found.top[0].count, found.top_exact) == ("red", 2, True)
    assert max(len(top.value) for top in found.top) <= 64
    assert found.top[-1].value.endswith("…")


def test_long_values_that_begin_alike_are_different() -> None:
    found = column(["x" * 200 + "a", "x" * 200 + "b", "x" * 200 + "a"])
    assert found.distinct == 2


def test_a_few_odd_cells_in_a_column_of_numbers_are_named() -> None:
    found = profiled("\n".join(["id,n", *(f"{n},{n}" for n in range(99)), "99,oops"]))
    assert found.columns[1].type == "text"
    assert found.columns[1].mixed == {ColumnType.INTEGER: 99, ColumnType.TEXT: 1}
    assert any("'n' is text because of 1 cell" in warning for warning in found.warnings)


def test_boolean_words_among_words_are_words() -> None:
    assert column(["No", "He", "Li"]).mixed is None


def test_many_distinct_values_are_estimated_and_marked() -> None:
    found = column([f"ORD-{n:06}" for n in range(120_000)])
    assert not found.distinct_exact
    assert found.distinct == pytest.approx(120_000, rel=0.08)
    assert found.top_exact is False


def test_frequent_values_survive_many_rare_ones() -> None:
    cells = [value for n in range(60_000) for value in (f"rare {n}", "often" if n % 2 else "also")]
    found = column(cells)
    assert found.top is not None
    assert [top.value for top in found.top[:2]] == ["also", "often"]
    # A lower bound that loses no more than a small part.
    assert all(29_000 <= top.count <= 30_000 for top in found.top[:2])


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_tally_never_keeps_more_than_its_cap(repeats: int) -> None:
    tally = ValueTally(100)
    for start in range(0, 5_000, 50):
        tally.add(Counter({f"{n} {'x' * (n % 90)}": repeats for n in range(start, start + 50)}), 100)
        assert len(tally.top(10**6)) <= 100
    assert all(count > 0 for _, count in tally.top(10**6))


@pytest.mark.parametrize("form", ["{:07}", "ORD-{:06}-A", "user {}@example.org", "{:x}", "0.{:06}"])
def test_ids_that_count_up_are_estimated_as_well_as_random_ones(form: str) -> None:
    sketch = DistinctSketch(4_096)
    sketch.add([form.format(n) for n in range(200_000)])
    sketch.add([form.format(n) for n in range(100_000)])
    assert sketch.estimate() == pytest.approx(200_000, rel=0.06)


finite = st.floats(allow_nan=False, allow_infinity=False)


# Apart from numbers that vanish beside the others, see the module.
comparable = st.one_of(
    st.just(0.0), st.floats(1e-150, 1e150), st.floats(-1e150, -1e-150), st.integers(-(2**60), 2**60)
)


@given(st.lists(comparable, min_size=1, max_size=60))
def test_bins_count_everything_and_do_not_depend_on_order(numbers: list[float]) -> None:
    def bars(batches: list[list[float]], whole: bool) -> tuple[tuple[int, ...], float]:
        bins = Bins()
        for batch in batches:
            bins.add(batch, [1] * len(batch))
        histogram = bins.histogram(whole=whole)
        return histogram.counts, histogram.width

    for whole in (False, True):
        at_once, width = bars([sorted(numbers)], whole)
        assert (at_once, width) == bars([[number] for number in numbers], whole)
        assert sum(at_once) == len(numbers)
        assert len(at_once) <= MAX_BARS
        assert at_once[0]
        assert at_once[-1]
        assert not whole or width >= 1


@given(st.lists(finite, min_size=1, max_size=40))
def test_the_mean_is_that_of_exact_arithmetic(numbers: list[float]) -> None:
    found = column([*map(repr, numbers), "1e0"])
    exact = [*numbers, 1.0]
    expected = float(sum(map(Fraction, exact)) / len(exact))
    assert found.mean is not None
    # fsum rounds the sum of a batch once, the division once more.
    assert math.isclose(found.mean, expected, rel_tol=1e-15, abs_tol=5e-324)
    assert (found.min, found.max) == (min(exact), max(exact))
