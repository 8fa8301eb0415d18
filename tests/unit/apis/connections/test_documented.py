"""The page on connections has every key, every way to sign in, and examples that are legal."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from infra.local.dev import cli
from infra.local.dev.connection_new import new_connection
from shared.apis.connections import auth, reading
from shared.apis.connections.model import AuthType, EnvironmentKind
from shared.apis.connections.reasons import Kind

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "dataverse.md").read_text("utf-8")
PART = PAGE.partition("\n## Connections\n")[2].partition("\n## ")[0]
EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PART, re.DOTALL)]


def test_every_key_is_in_the_table() -> None:
    keys = re.findall(r"^\| `(\w+)` \|", PART.partition("### Every key")[2].partition("###")[0], re.MULTILINE)
    assert sorted(keys) == sorted(reading._FIELDS)


def test_every_word_is_there() -> None:
    words = [*AuthType, *EnvironmentKind, *Kind, *auth._FIELDS]
    assert [word for word in words if f"`{word}`" not in PART] == []


def test_every_way_to_sign_in_has_an_example_with_all_that_it_requires() -> None:
    ways = {example["type"]: example for example in EXAMPLES if isinstance(example, dict)}
    assert set(ways) == {str(kind) for kind in AuthType}
    for example in ways.values():
        faults: list[str] = []
        assert auth.read(example, "$", faults) is not None, faults


def test_the_example_of_the_setting_is_legal() -> None:
    (setting,) = [example for example in EXAMPLES if isinstance(example, list)]
    (found,) = reading.read_setting(json.dumps(setting))
    assert found.open_to("ana", "dataverse-query")


@pytest.mark.parametrize("line", re.findall(r"^python3 dev\.py (connection .*)$", PART, re.MULTILINE))
def test_the_commands_are_there_with_these_options(line: str) -> None:
    options = cli._parser().parse_args(shlex.split(line))
    if options.action == "add":
        assert new_connection(options, {}).name == "Prod"


def test_every_option_is_named() -> None:
    def parsers(parser: argparse.ArgumentParser) -> Any:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.items()

    connection = dict(parsers(cli._parser()))["connection"]
    options = {
        option
        for _, parser in parsers(connection)
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for option in action.option_strings
    }
    assert {"--secret-setting", "--timeout", "--json"} <= options
    assert {option for option in options if option not in PART} == {"-h", "--help"}


def test_the_setting_is_in_the_list_of_settings_and_in_the_example() -> None:
    assert "| `CONNECTIONS` |" in (ROOT / "docs" / "settings.md").read_text("utf-8")
    example = json.loads((ROOT / "local.settings.json.example").read_text("utf-8"))
    assert reading.read_setting(example["Values"]["CONNECTIONS"]) == []
