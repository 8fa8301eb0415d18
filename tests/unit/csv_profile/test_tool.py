"""The tool as a whole: its declaration, the sample file, the picture, progress, speed and memory."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shared.tool import Context, McpImageContent, McpToolResponse
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.csv_profile.support import Watcher, profiled, read_png
from tools.csv_profile import csv_profile, reading
from tools.csv_profile.histogram import HEIGHT, WIDTH
from tools.csv_profile.model import CsvProfile
from tools.csv_profile.profile import profile_csv

ROOT = Path(__file__).parents[3]
SAMPLE = (ROOT / "tools" / "csv_profile" / "sample.csv").read_text(encoding="utf-8")
BLUE, WHITE = (38, 110, 184), (255, 255, 255)


class StopError(Exception):
    """What a sink raises when the job is cancelled."""


@dataclass
class Recorder:
    """A sink that remembers, and stops the tool at a given per cent."""

    stop_at: float = 101
    percents: list[float] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    cancelled: bool = False

    def progress(self, percent: object, message: object) -> None:
        assert isinstance(percent, int | float)
        self.percents.append(percent)
        if percent >= self.stop_at:
            raise StopError

    def log(self, level: str, message: object) -> None:
        self.lines.append(f"{level}: {message}")


def context_of(sink: Recorder) -> Context:
    return Context(
        tool_id="csv_profile",
        tool_name="csv_profile",
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.INLINE,
        correlation_id="c-1",
        timeout_ms=300_000,
        owner="default",
        sink=sink,
    )


def megabytes(count: int) -> str:
    """A table of integers, numbers, words, dates and unique texts of about `count` million characters."""
    pieces = ["id,score,colour,day,mail\n"]
    for first in range(0, count * 18_400, 18_400):
        rows = range(first, first + 18_400)
        pieces.append("".join(map(_row, rows)))
    return "".join(pieces)


def _row(n: int) -> str:
    colour = ("red", "green", "blue")[n % 3]
    score = n * 7919 % 100_003 / 8
    return f"{n},{score},{colour},2024-{n % 12 + 1:02}-{n % 28 + 1:02},user {n}@example.org\n"


def test_the_sample_has_the_known_facts_of_the_elements() -> None:
    found = profiled(SAMPLE)
    assert (found.row_count, found.column_count, found.header, found.delimiter) == (118, 11, True, ",")
    assert found.warnings == []
    by_name = {entry.name: entry for entry in found.columns}
    number = by_name["atomic_number"]
    assert (number.type, number.min, number.max, number.mean, number.missing) == ("integer", 1, 118, 59.5, 0)
    weight = by_name["standard_atomic_weight"]
    assert (weight.type, weight.min, weight.max) == ("number", 1.008, 238.03)
    group = by_name["group"]
    assert (group.type, group.missing, group.distinct) == ("integer", 28, 18)
    stable = by_name["has_stable_isotope"]
    assert stable.type == "boolean"
    assert {top.value: top.count for top in stable.top or ()} == {"true": 80, "false": 38}
    melting = by_name["melting_point_k"]
    assert (melting.type, melting.min, melting.max) == ("number", 13.99, 3695.0)
    block = by_name["block"]
    assert [(top.value, top.count) for top in block.top or ()] == [("d", 40), ("p", 36), ("f", 28), ("s", 14)]
    assert by_name["symbol"].distinct == by_name["name"].distinct == 118
    assert by_name["discovery_year"].missing == 10  # known since antiquity
    assert by_name["other_names"].max_length == len("hahnium, nielsbohrium, joliotium")


def test_the_tool_answers_with_a_profile_a_picture_and_log_lines() -> None:
    sink = Recorder()
    answer = csv_profile(SAMPLE, context=context_of(sink))
    assert isinstance(answer, McpToolResponse)
    assert CsvProfile.model_validate_json(json.dumps(answer.structured_content)) == profiled(SAMPLE)
    (image,) = answer.content
    assert isinstance(image, McpImageContent)
    assert image.mime_type == "image/png"
    read_png(base64.b64decode(image.to_wire()["data"]))
    assert sink.percents == [100]
    assert [line.partition(" ")[0] for line in sink.lines] == ["info:", "info:"]
    assert "118 rows" in sink.lines[-1]


def test_a_table_without_numbers_has_no_picture() -> None:
    answer = csv_profile("a,b\nx,y\n", context=context_of(Recorder()))
    assert list(answer.content) == []
    assert "histogram_column" not in answer.structured_content


def test_the_result_leaves_out_what_does_not_apply_to_a_type() -> None:
    text = "id,name,since\n1,Ann,2024-01-31\n2,Bea,2024-02-29\n"
    assert csv_profile(text, context=context_of(Recorder())).structured_content == {
        "row_count": 2,
        "column_count": 3,
        "delimiter": ",",
        "header": True,
        "histogram_column": "id",
        "warnings": [],
        "columns": [
            {"name": "id", "type": "integer", "missing": 0, "distinct": 2, "distinct_exact": True}
            | {"min": 1, "max": 2, "mean": 1.5},
            {"name": "name", "type": "text", "missing": 0, "distinct": 2, "distinct_exact": True}
            | {"min_length": 3, "max_length": 3, "top_exact": True}
            | {"top": [{"value": "Ann", "count": 1}, {"value": "Bea", "count": 1}]},
            {"name": "since", "type": "date", "missing": 0, "distinct": 2, "distinct_exact": True}
            | {"min": "2024-01-31", "max": "2024-02-29"},
        ],
    }


def test_the_picture_is_a_light_chart_whose_bars_follow_the_counts() -> None:
    cells = [str(value) for value in range(8) for _ in range(10 * (value + 1))]
    _, image = profile_csv("n\n" + "\n".join(cells), None, None, Watcher())
    assert image is not None
    png = read_png(image)
    assert (png.width, png.height) == (WIDTH, HEIGHT)
    assert png.share(WHITE) > 0.5
    assert 0.2 < png.share(BLUE) < 0.5
    blue = png.palette.index(BLUE)
    heights = [sum(row[x] == blue for row in png.pixels) for x in range(WIDTH)]
    runs = [height for height, before in zip(heights[1:], heights, strict=False) if height and not before]
    assert runs == sorted(runs)
    assert len(runs) == 8
    assert runs[-1] == pytest.approx(8 * runs[0], abs=8)


def test_the_picture_is_the_same_every_time() -> None:
    images = {profile_csv(SAMPLE, None, None, Watcher())[1] for _ in range(2)}
    assert len(images) == 1


@pytest.mark.parametrize(
    "cells",
    [
        ["5"],
        ["0", "0"],
        ["-1", "1"],
        ["1e308", "-1e308"],
        ["9" * 300, "1"],
        ["0.1", "0.30000000000000004"],
        ["5e-324"],
    ],
)
def test_any_range_can_be_drawn(cells: list[str]) -> None:
    _, image = profile_csv(
        "a name of 60 characters " + "é" * 36 + "\n" + "\n".join(cells), ",", True, Watcher()
    )
    assert image is not None
    assert read_png(image).share(BLUE) > 0.01


def test_a_long_text_reports_whole_per_cents_up_to_100_and_a_few_lines() -> None:
    text = megabytes(20)
    assert len(text) > 20_000_000
    sink = Recorder()
    answer = csv_profile(text, context=context_of(sink))
    found = CsvProfile.model_validate_json(json.dumps(answer.structured_content))
    assert found.row_count == text.count("\n") - 1
    assert found.columns[0].min == 0
    assert [entry.type for entry in found.columns] == ["integer", "number", "text", "date", "text"]
    assert sink.percents == sorted(set(sink.percents))
    assert sink.percents[-1] == 100
    assert 50 <= len(sink.percents) <= 100
    assert 3 <= len(sink.lines) <= 8


def test_progress_is_by_characters_read() -> None:
    watcher = Watcher()
    text = megabytes(1)
    profile_csv(text, None, None, watcher)
    assert watcher.shares == sorted(watcher.shares)
    for share, rows in zip(watcher.shares, watcher.rows, strict=True):
        assert share == pytest.approx(rows / watcher.rows[-1], abs=0.05)


def test_no_per_cent_is_reported_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 2_000)
    sink = Recorder()
    csv_profile(megabytes(1), context=context_of(sink))
    assert sink.percents == list(range(1, 101))


def test_a_cancelled_call_ends_soon_with_what_the_context_raised() -> None:
    sink = Recorder(stop_at=30)
    with pytest.raises(StopError):
        csv_profile(megabytes(2), context=context_of(sink))
    assert sink.percents[-1] < 60


# Not ru_maxrss: a child starts with the peak of the process that it was forked from.
MEASURE = """
import pathlib
from tests.unit.csv_profile.support import Watcher
from tests.unit.csv_profile.test_tool import megabytes
from tools.csv_profile.profile import profile_csv

def kibibytes(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(name + ":")[2].split()[0])

text = megabytes(20)
before = kibibytes("VmRSS")
found, image = profile_csv(text, None, None, Watcher())
print(found.row_count, (kibibytes("VmHWM") - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_20_megabytes_need_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, check=True, capture_output=True, text=True)
    rows, growth = done.stdout.split()
    assert int(rows) > 250_000
    assert float(growth) < 80
