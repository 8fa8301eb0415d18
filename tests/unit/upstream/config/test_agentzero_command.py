"""What Agent Zero makes of `command` and `args`, and what it destroys."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import MCPConfigError
from shared.upstream.config.command import split_args, split_command
from tests.unit.upstream.config.vectors import cases, defects, kept, named, server

CASES = cases("agentzero-command")
PROGRAMS = {"uvx", "npx", "docker", "mcp-remote"}


def split(entry: Any) -> tuple[str, list[str]]:
    executable, leading = split_command(entry.get("command"), entry.get("args"), PROGRAMS.__contains__)
    return executable, [*leading, *split_args(entry.get("args") or [])]


#: A fault is right too, and is what happens: false is no text.
FALSE = "false"


@pytest.mark.parametrize("case", kept(CASES, {FALSE}))
def test_kept(case: Any) -> None:
    assert split(case["input"]) == (case["output"]["executable"], case["output"]["args"])


def test_a_boolean_is_no_command() -> None:
    with pytest.raises(MCPConfigError, match="must be text, not boolean"):
        split(named(CASES, FALSE)["input"])


#: id -> executable and arguments, or what the fault says.
MENDED: dict[str, tuple[str, list[str]] | str] = {
    "windows-unquoted": ("C:\\Users\\me\\npx.cmd", ["-y", "p"]),
    "windows-with-args": ("C:\\Users\\me\\npx.cmd", ["-y", "p"]),
    "windows-unc": ("\\\\srv\\share\\tool.exe", ["x"]),
    "env-prefix": "variables do not belong into the command; set them in 'env'",
    "empty-quotes-and-args": "the program's name is empty",
    "null-byte": "must not hold a NUL character",
    "args-empty-item": ("uvx", ["", "x"]),
    "args-blank-item": ("uvx", ["  ", "x"]),
    "item-whole-line": ("npx", ["-y pkg --flag v"]),
    "item-path-with-dash-word": ("npx", ["/data/my -dir/x"]),
    "item-double-quoted": ("uvx", ['"quoted"']),
    "item-escaped-space": ("uvx", ["a\\ b"]),
    "item-windows-path": ("uvx", ["C:\\a\\b"]),
    "item-regex": ("uvx", ["^\\d+$"]),
    "item-header-value-dash": ("mcp-remote", ["--header", "X-Note: a -b"]),
    "item-sql": ("uvx", ["SELECT * FROM t -- comment"]),
    "item-json-dash": ("uvx", ['{"k": "-v"}']),
    "item-compact-json": ("uvx", ['{"k":"v"}']),
    "item-json-option-split": ("uvx", ["--json", '{"a":1}']),
    "item-option-hash": ("uvx", ["--x # y"]),
    "item-newline-option": ("uvx", ["--a\nb"]),
}
#: Not texts: faults of the entry. id -> the field.
FAULTS = {
    "args-string": "args",
    "args-true-null": "args.0",
    "args-nested-list": "args.0",
    "args-mapping-item": "args.0",
}
FILE = "path-with-space-alone"


def test_every_defect_has_an_answer() -> None:
    assert MENDED.keys() | FAULTS.keys() | {FILE} == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED))
def test_mended(case_id: str) -> None:
    wanted = MENDED[case_id]
    entry = named(CASES, case_id)["input"]
    if isinstance(wanted, str):
        with pytest.raises(MCPConfigError) as caught:
            split(entry)
        assert wanted in caught.value.message
    else:
        assert split(entry) == wanted


@pytest.mark.parametrize("case_id", sorted(FAULTS))
def test_what_is_no_text_is_a_fault(case_id: str) -> None:
    outcome = server(named(CASES, case_id)["input"])
    assert outcome.servers == {}
    assert FAULTS[case_id] in outcome.fields()


def test_an_existing_file_is_not_split(tmp_path: Path) -> None:
    program = tmp_path / "my app" / "run"
    program.parent.mkdir()
    program.write_text("")
    assert split_command(str(program)) == (str(program), [])
    assert split_command(f"{program} --x")[0] == str(program).split(" ")[0]


def test_a_quote_that_is_not_closed_is_a_fault() -> None:
    with pytest.raises(MCPConfigError, match="a quote is not closed"):
        split_command("uvx 'unterminated")


@pytest.mark.parametrize(
    "item",
    [
        "--header Authorization: Bearer abc",
        '--json {"a": 1}',
        "--a=b --c",
        "- b",
        "-x -y",
        "print(1 -2)",
        "-5 6",
    ],
)
def test_an_item_that_is_not_exactly_an_option_and_its_value_stays(item: str) -> None:
    assert split_args([item]) == [item]


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@settings(deadline=None)
@given(st.lists(texts, max_size=6))
def test_a_quoted_command_line_loses_nothing(args: list[str]) -> None:
    """What a shell's own quoting writes is read back, whatever is in it."""
    assert split_command(shlex.join(["uvx", *args]), None, {"uvx"}.__contains__) == ("uvx", args)


@settings(deadline=None)
@given(st.lists(texts, max_size=6))
def test_a_list_of_arguments_loses_nothing(args: list[str]) -> None:
    """Items stay as they are; one that is taken apart has only its blank and its quotes less."""
    pieces = iter(split_args(args))
    for item in args:
        first = next(pieces)
        if first != item:
            value = next(pieces)
            blank = item[len(first) : len(item) - len(value)].rstrip("'\"") if value else item[len(first) :]
            assert item.startswith(first)
            assert first.startswith("-")
            assert value in item
            assert set(blank) <= set(" \t'\"")
    assert next(pieces, None) is None


@settings(deadline=None)
@given(st.sampled_from(["-e", "--port", "--a.b-c"]), texts.filter(lambda text: not set(text) & set("'\"\n\r")))
def test_an_option_and_its_quoted_value_are_two(option: str, value: str) -> None:
    assert split_args([f"{option} '{value}'"]) == [option, value]
    assert split_args([f'{option}\t"{value}"']) == [option, value]
