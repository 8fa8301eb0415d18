"""The lock file: what is written is read back, is the same each time, and a damaged one is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ConfigError
from shared.upstream import lock
from shared.upstream.lock import Lock, LockedPrompt, LockedTool, Schemas, hash_of
from shared.upstream.model import UpstreamTool

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOL = LockedTool(
    name="docs_read_6e32feee",
    server="docs",
    tool="read",
    title="Read",
    description="Reads a page.",
    scopes={
        "global": Schemas("sha256:1", SCHEMA, {"type": "object"}),
        "project:sales": Schemas("sha256:2", {}),
    },
    timeout_ms=60_000,
    annotations={"readOnlyHint": True},
    icons=({"src": "https://example.com/i.png"},),
    meta={"k": "v"},
    notes=("changed",),
)
PROMPT = LockedPrompt(
    "docs_ask", "docs", "ask", "Ask", "Asks.", ({"name": "q", "required": True},), {"global": "h"}
)

texts = st.text(max_size=20)
schemas = st.dictionaries(texts, st.none() | st.booleans() | texts | st.lists(texts, max_size=3), max_size=3)
tools = st.builds(
    LockedTool,
    name=texts,
    server=texts,
    tool=texts,
    title=texts,
    description=texts,
    scopes=st.dictionaries(
        st.sampled_from(["global", "project:a", "project:b"]),
        st.builds(Schemas, texts, schemas, st.none() | schemas, st.booleans()),
        min_size=1,
    ),
    timeout_ms=st.integers(1, 10**9),
    disabled=st.booleans(),
    annotations=schemas,
    icons=st.lists(schemas, max_size=2).map(tuple),
    meta=schemas,
    notes=st.lists(texts, max_size=2).map(tuple),
)


def test_what_is_written_is_read_back() -> None:
    both = Lock("dotted", (replace(TOOL, name="other", tool="other", disabled=True), TOOL), (PROMPT,))
    assert lock.parse(both.to_text()) == both


@given(st.lists(tools, max_size=3, unique_by=lambda one: (one.server, one.tool)))
def test_any_lock_is_read_back(made: list[LockedTool]) -> None:
    found = lock.parse(Lock("safe", tuple(made)).to_text())
    by_name = {(one.server, one.tool): one for one in made}
    assert {(one.server, one.tool): one for one in found.tools} == by_name


def test_the_same_lock_is_the_same_text_in_whatever_order() -> None:
    other = replace(TOOL, tool="a", name="docs_a")
    assert Lock("safe", (TOOL, other)).to_text() == Lock("safe", (other, TOOL)).to_text()


def test_no_file_is_an_empty_lock(tmp_path: Path) -> None:
    assert lock.read(tmp_path / "upstream.lock.json") == Lock()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON of the form that sync writes"),
        ("[]", "is no JSON of the form"),
        ("{}", "lacks 'version'"),
        ('{"version": 2, "names": "safe", "tools": [], "prompts": []}', "has version 2, this app reads 1"),
        ('{"version": 1, "names": "safe", "tools": [{}], "prompts": []}', "lacks 'scopes'"),
        ('{"version": 1, "names": "safe", "tools": 5, "prompts": []}', "is no JSON of the form"),
    ],
)
def test_a_damaged_file_says_what_is_wrong_and_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "upstream.lock.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        lock.read(path)
    assert said in caught.value.message
    assert "python3 dev.py upstream sync" in caught.value.message


def test_a_tool_whose_name_is_no_text_is_refused() -> None:
    body = json.loads(Lock("safe", (TOOL,)).to_text())
    body["tools"][0]["name"] = 5
    with pytest.raises(ConfigError):
        lock.parse(json.dumps(body))


@pytest.mark.parametrize(
    "change",
    [
        {"title": "T"},
        {"description": "D"},
        {"input_schema": {"type": "object", "required": ["a"]}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ],
)
def test_the_hash_sees_everything_that_an_agent_is_told(change: dict[str, object]) -> None:
    tool = UpstreamTool("read")
    assert hash_of(replace(tool, **change)) != hash_of(tool)  # type: ignore[arg-type]


def test_the_hash_does_not_see_the_order_of_keys() -> None:
    first = UpstreamTool("t", input_schema={"type": "object", "properties": {"a": {}, "b": {}}})
    second = UpstreamTool("t", input_schema={"properties": {"b": {}, "a": {}}, "type": "object"})
    assert hash_of(first) == hash_of(second)
