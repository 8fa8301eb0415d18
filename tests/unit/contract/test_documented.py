"""What the documentation lists of a call, completely: its options, and what its record holds."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from shared.contract.envelope import parse
from shared.errors import EnvelopeError
from shared.invocations.record import Outcome, Record
from shared.tool.binding import envelope_schema
from shared.tool.spec import ExecutionMode, RunRules, ToolSpec

DOCS = Path(__file__).resolve().parents[3] / "docs"


def section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text("utf-8")
    assert heading in text
    return re.split(r"\n#+ ", text.partition(f"{heading}\n")[2])[0]


def test_the_options_in_the_docs_are_those_that_are_published_and_taken() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", section("tools.md", "### Options of a call"), re.MULTILINE)
    job = ToolSpec("t", "t", "T", "D", {}, None, RunRules(execution_modes=(ExecutionMode.HEADLESS,)))
    assert sorted(documented) == sorted(envelope_schema(job)["properties"])
    with pytest.raises(EnvelopeError) as caught:
        parse({"option": 1})
    assert sorted(documented) == sorted(caught.value.message.partition("known are ")[2].split(", "))


def test_the_fields_of_a_record_in_the_docs_are_those_it_has() -> None:
    told = section("contract.md", "## The invocation log").strip().partition("\n\n")[0]
    documented = set(re.findall(r"`(\w+)`", told))
    texts = {item.name: "text" for item in fields(Record) if item.type == "str"}
    known: dict[str, Any] = {**texts, "id": f"{0:032x}", "outcome": Outcome.FAILED, "duration_ms": 1}
    record = Record(**known)
    missing = record.fields().keys() - documented
    assert not missing
