"""Reading a configuration's text: whole, or entry by entry, and never something else than what is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.upstream.config import scan, text
from shared.upstream.config.parts import Document
from shared.upstream.config.text import Syntax, read_text
from tests.unit.upstream.config.vectors import read

GOOD = '"good": {"command": "npx", "args": ["-y", "pkg"]}'


@pytest.mark.parametrize(
    "broken",
    [
        '{"command": npx}',
        '{"command": "C:\\Users"}',
        '{"args": ["-y" "p"]}',
        '{"a": 1, "a": 2}',
        "{1.2.3}",
        "`x`",
    ],
)
def test_one_broken_entry_does_not_take_the_others_with_it(broken: str) -> None:
    for entries in (f'"bad": {broken}, {GOOD}', f'{GOOD}, "bad": {broken},', f"/* c */ {GOOD}, bad: {broken}"):
        outcome = read(f'{{"theme": 1, "mcpServers": {{{entries}}} // end\n}}')
        assert set(outcome.servers) == {"good"}
        (fault,) = outcome.faults
        assert (fault.name, fault.key) == ("bad", "bad")
        assert "cannot be read" in fault.message


def test_one_broken_entry_of_a_list() -> None:
    outcome = read('[{"name": "good", "command": "npx", "args": ["pkg"]}, {"name": "bad", "command": npx}]')
    assert set(outcome.servers) == {"good"}
    assert [(fault.name, fault.field) for fault in outcome.faults] == [("bad", "[1]")]


TOOL = '{"type": "mcp", "name": "good", "server": "s", "command": "npx", "args": ["pkg"]}'
TWICE = '{"type": "mcp", "name": "bad", "server": "s", "command": "npx", "command": "npx"}'
NUMBER = '{"type": "mcp", "name": "bad", "server": "s", "command": "npx", "env": {8080: x}}'
ENTRY = '{"command": "npx", "args": ["pkg"]}'
DOUBLED = '{"command": "npx", "command": "npx"}'


@pytest.mark.parametrize(
    ("written", "places"),
    [
        (f'{{"tools": [{TOOL}, {TWICE}]}}', ["tools[1]"]),
        (f'{{"tools": [{TWICE}, {TOOL}]}}', ["tools[0]"]),
        (f'{{"mcpServers": {{"bad": {DOUBLED}}}, "tools": [{TOOL}]}}', ["mcpServers.bad"]),
        (f'{{"tools": [{TWICE}], "mcpServers": {{"good": {ENTRY}}}}}', ["tools[0]"]),
        (f'{{"servers": {{"bad": {DOUBLED}, "good": {ENTRY}}}}}', ["servers.bad"]),
        (f'{{"mcpServers": [{DOUBLED}, {{"name": "good", "url": "https://h/"}}]}}', ["mcpServers[0]"]),
        (f"tools: [{TOOL}, {NUMBER}]", ["tools[1]"]),
        (f"tools:\n- {TWICE}\n- {TOOL}", ["tools[0]"]),
        (f"mcpServers:\n  bad: {{env: {{8080: x}}}}\n  good: {ENTRY}", ["mcpServers.bad"]),
        (f"mcpServers:\n  8080: {ENTRY}\n  good: {ENTRY}", ["mcpServers"]),
        (f"mcpServers:\n  bad: {DOUBLED}\ntools: [{TOOL}]", ["mcpServers.bad"]),
        (f"mcpServers: {{bad: {DOUBLED}}}\ntools: [{TOOL}, {NUMBER}]", ["mcpServers.bad", "tools[1]"]),
        (f"servers:\n- {DOUBLED}\n- {{name: good, url: 'https://h/'}}", ["servers[0]"]),
        (f"- {NUMBER}\n- {TOOL}", ["[0]"]),
        (f"mcpServers:\n  good: {ENTRY}\n  bad: &a [*a]", ["mcpServers.bad"]),
    ],
)
def test_each_entry_of_every_form_stands_alone(written: str, places: list[str]) -> None:
    outcome = read(written)
    assert set(outcome.servers) == {"good"}
    assert sorted(fault.field for fault in outcome.faults) == places
    assert all("cannot be read; in this entry, " in fault.message for fault in outcome.faults)


@pytest.mark.parametrize("form", ['{{"mcpServers": {{{}}}}}', "mcpServers: {{{}}}"])
def test_of_two_entries_with_one_name_the_first_that_can_be_read_stays(form: str) -> None:
    first, second = '"a": {"url": "https://one/"}', '"a": {"url": "https://two/"}'
    outcome = read(form.format(f"{first}, {second}"))
    assert [config.url for config in outcome.servers.values()] == ["https://one/"]
    assert [fault.message for fault in outcome.faults] == [
        "there is another entry with this name before it, which stays"
    ]
    outcome = read(form.format(f'"a": {DOUBLED}, {second}'))
    assert [config.url for config in outcome.servers.values()] == ["https://two/"]
    assert len(outcome.faults) == 1


def test_a_broken_tool_of_another_type_is_no_server() -> None:
    for written in (
        f'{{"tools": [{{"type": "function", "name": "good", "x": 1, "x": 2}}, {TOOL}]}}',
        f"tools: [{{type: function, name: good, 8080: x}}, {TOOL}]",
    ):
        outcome = read(written)
        assert set(outcome.servers) == {"good"}
        assert outcome.faults == ()
        assert [warning.field for warning in outcome.warnings] == ["tools[0]"]


def test_entries_behind_a_broken_one_keep_their_numbers() -> None:
    for written in (f'{{"tools": [{TWICE}, 5, {TOOL}]}}', f"tools: [{TWICE}, 5, {TOOL}]"):
        outcome = read(written)
        assert set(outcome.servers) == {"good"}
        assert {fault.field for fault in outcome.faults} == {"tools[0]", "tools[1]"}


def test_what_is_wrong_beside_broken_entries_is_told_too() -> None:
    outcome = read(f'{{"theme": dark, "tools": [{TOOL}, {TWICE}], "tools": []}}')
    assert set(outcome.servers) == {"good"}
    assert [fault.field for fault in outcome.faults] == ["theme", "tools", "tools[1]"]
    for written in (f"theme: {{8080: x}}\ntools: [{TOOL}]", f"tools: [{TOOL}]\ntools: [{TOOL}]"):
        assert [(fault.name, fault.field) for fault in read(written).faults] == [("", "text")]


def test_no_tag_of_a_text_makes_an_entry_vanish() -> None:
    outcome = read(f"tools:\n- !gap ''\n- {TOOL}\n- {NUMBER}")
    assert set(outcome.servers) == {"good"}
    assert [fault.field for fault in outcome.faults] == ["tools[0]", "tools[2]"]


def test_what_is_broken_around_the_entries_is_the_whole_text_s_fault() -> None:
    outcome = read(f'{{"theme": dark, "mcpServers": {{{GOOD}}}}}')
    assert outcome.servers == {}
    assert [(fault.name, fault.field) for fault in outcome.faults] == [("", "text")]


@pytest.mark.parametrize("form", ['{"x":', "[", "{", '{"a": "', "/* ", '["a", /*', "'"])
def test_a_text_that_is_cut_off_is_a_fault(form: str) -> None:
    with pytest.raises(ValueError, match=r"cut off|not JSON|not YAML"):
        read_text(form)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_a_text_that_is_nested_without_end_is_a_fault(depth: int) -> None:
    for opening in ("[", '{"a":', "[/* */"):
        with pytest.raises(ValueError, match=r"nested|cut off|strict"):
            read_text(opening * depth)
    with pytest.raises(ValueError, match=r"nested|not YAML|YAML may have"):
        read_text("- " * depth + "x")


def test_a_text_that_is_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="longer than"):
        read_text(" [" + "1," * 600_000)
    monkeypatch.setattr(text, "MAX_TOLERANT_CHARACTERS", 20)
    with pytest.raises(ValueError, match="strict JSON"):
        read_text("[1, 2, 3, 4, 5, 6, 7, 8, ]")
    with pytest.raises(ValueError, match="YAML may have"):
        read_text("a: 1\nb: 2\nc: 3\nd: 4\ne: 5")
    assert read_text("[1, 2, 3, 4, 5, 6, 7, 8, 9]") == Document([1, 2, 3, 4, 5, 6, 7, 8, 9])


def test_halves_of_a_character() -> None:
    assert read_text(r'["\ud83d\ude00", // c' + "\n]") == Document(["\N{GRINNING FACE}"])
    for written in (r'"\ud83d"', r'"\ude00\ud83d" // c', '"\ud83d"'):
        with pytest.raises(ValueError, match="half a character"):
            read_text(written, Syntax.JSON)


# YAML


def test_yaml() -> None:
    found = read("""
        mcpServers:
          docs:
            command: npx
            args: &args ["-y", "pkg"]
          more:
            command: npx
            args: *args
    """)
    assert [config.args for config in found.servers.values()] == [("-y", "pkg")] * 2
    assert found.faults == ()


def test_the_name_of_a_file_says_its_syntax() -> None:
    assert Syntax.of_file("x.yaml") is Syntax.of_file("x.yml") is Syntax.YAML
    assert read_text('{"a": 1, b: [c, 2020-01-01]}', Syntax.YAML) == Document(
        {"a": 1, "b": ["c", "2020-01-01"]}
    )
    with pytest.raises(ValueError, match="not JSON"):
        read_text("a: 1", Syntax.JSON)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("a: 1\na: 2", "line 2 column 1: a key stands twice"),
        ("a: {b: 1, b: 2}", "a key stands twice"),
        ("8080: x", "a key must be text"),
        ("? [a]\n: b", "a key must be text"),
        ("a: !!python/object/apply:os.system [id]", "not YAML"),
        ("a: !!binary aGk=", "must be text, a number"),
        ("a: &a [*a]", "holds itself"),
        ("a: *b", "not YAML"),
        ("a: 1\n---\nb: 2", "not YAML"),
        ("a:\n\t- b", "not YAML"),
        ("a: \x00", "not YAML"),
    ],
)
def test_yaml_that_is_refused(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_text(written)


def test_a_bomb_in_one_entry_leaves_the_others_on() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    outcome = read(f"tools:\n- {TOOL}\n- name: bad\n  " + "\n".join(lines))
    assert set(outcome.servers) == {"good"}
    (fault,) = outcome.faults
    assert "once its aliases are followed" in fault.message


def test_aliases_cannot_blow_up() -> None:
    """A billion values in a few lines: counted before a single one is built."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(ValueError, match="once its aliases are followed"):
        read_text("\n".join(lines))
    merges = ["a0: &a0 {x: 1}"]
    merges += [f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(ValueError, match="once its aliases are followed"):
        read_text("\n".join(merges))


# Properties


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(values, st.booleans())
def test_what_json_writes_is_read_as_it_was(value: Any, ascii_only: bool) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only)
    assert read_text(written, Syntax.JSON) == Document(value)


@settings(deadline=None)
@given(values, st.sampled_from(["// c\n", "/* ] } */ ", " "]))
def test_comments_and_trailing_commas_change_nothing(value: Any, comment: str) -> None:
    written = f"{comment}[{json.dumps(value)} {comment},{comment}]{comment}"
    assert read_text(written, Syntax.JSON) == Document([value])


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text('{}[]:,"\\ /*ab1', max_size=40))
def test_any_text_gives_a_value_or_a_safe_fault(written: str) -> None:
    """No other error, and what JSON itself reads is read the same."""
    try:
        found = read_text(written)
    except ValueError:
        return
    try:
        strict = json.loads(written.removeprefix("\ufeff").strip() or "null")
    except ValueError:
        return
    if written[:1] in ("{", "[") and found is not None and not found.broken:
        assert found.value == strict


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), values, min_size=1, max_size=4))
def test_the_outline_finds_every_entry(servers: dict[str, Any]) -> None:
    written = json.dumps({"other": [1, {"a": "}"}], "mcpServers": servers})
    whole = scan.outline(written)
    assert whole is not None
    inside = scan.outline(whole.members[1].text)
    assert inside is not None
    assert {member.key: json.loads(member.text) for member in inside.members} == servers


@settings(deadline=None)
@given(values)
def test_what_yaml_writes_is_read_as_it_was(value: Any) -> None:
    written = yaml.safe_dump(value)
    assert read_text(written, Syntax.YAML) in (Document(value), None)
