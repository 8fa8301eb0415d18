"""docs/operations.md lists everything that leaves the app, and nothing that does not."""

from __future__ import annotations

import re
from pathlib import Path

from shared.telemetry.names import METRICS, Attribute, SpanName

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n### {title}\n", 1)[1].split("\n### ", 1)[0]


def rows(text: str) -> list[list[str]]:
    found = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found[1:]]


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def test_every_span_and_attribute_is_listed() -> None:
    told = rows(section("Spans"))
    spans = {name.split()[0] for row in told for name in names_in(row[0])}
    assert spans == {str(name) for name in SpanName}
    attributes = {name for row in told for name in names_in(row[3])}
    assert attributes == {str(name) for name in Attribute} - {str(Attribute.RECORD)}


def test_every_metric_is_listed_with_its_kind_and_unit() -> None:
    told = {}
    for row in rows(section("Metrics")):
        (name,) = names_in(row[0])
        told[name] = row[1].partition(":")[0]
        assert {one for one in names_in(row[2]) if "." in one} <= {str(name) for name in Attribute}, name
    assert told == {metric.name: f"{metric.shape}, `{metric.unit}`" for metric in METRICS}


def test_the_queries_ask_for_what_there_is() -> None:
    asked = set(re.findall(r"\"((?:toolbox|gen_ai|mcp|error)\.[a-z_.]+)\s?\"", section("Queries")))
    azure = {"toolbox.error_type", "toolbox.route", "toolbox.resends"}
    known = {str(name) for name in Attribute} | {metric.name for metric in METRICS} | azure | {"mcp.call"}
    assert len(asked) > 10
    assert asked <= known, asked - known
