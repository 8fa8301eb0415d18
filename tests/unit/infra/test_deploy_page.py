"""docs/deploy.md says what the files do: outputs, options, roles, and which commands need Azure."""

from __future__ import annotations

import re

from infra.azure.lint import syntax
from infra.azure.lint.schema.platform import ROLES
from infra.azure.lint.settings import app_settings
from infra.azure.lint.statements import parse
from tests.unit.infra.support import AZURE, BICEP, REPO

PAGE = (REPO / "docs" / "deploy.md").read_text("utf-8")


def test_values_that_are_asked_of_azd_are_outputs() -> None:
    outputs = {output.name for output in parse((AZURE / "main.bicep").read_text("utf-8")).of(syntax.Output)}
    asked = set(re.findall(r"azd env get-value (\w+)", PAGE))
    assert len(asked) >= 5
    assert asked <= outputs


def test_every_option_is_told_with_its_default() -> None:
    table = PAGE.partition("## Options")[2].partition("\n###")[0]
    told = dict(re.findall(r"^\| `(TOOLBOX_\w+)` \|.*\| (\S+) \|$", table, re.MULTILINE))
    text = (AZURE / "main.parameters.json").read_text("utf-8")
    variables = re.findall(r"\$\{(TOOLBOX_[A-Z_]+)=([^}]*)\}", text)
    assert told == {name: f"`{default}`" if default else "empty" for name, default in variables}


def test_every_role_is_told_with_its_reason() -> None:
    given = {
        name for path in BICEP for name, guid in ROLES.items() if guid in (AZURE / path).read_text("utf-8")
    }
    told = re.findall(
        r"^\| ((?:Storage|Key Vault|Monitoring) [A-Za-z ]+?)(?:, for who deploys)? \|", PAGE, re.MULTILINE
    )
    assert {"".join(name.split()).casefold() for name in told} == {name.casefold() for name in given}


def test_every_block_of_commands_says_that_it_needs_azure() -> None:
    blocks = re.findall(r"^ *```console\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 8
    assert [block for block in blocks if not block.lstrip().startswith("# needs Azure\n")] == []


def test_it_says_what_was_never_run() -> None:
    said = PAGE.partition("## Before")[0]
    for words in ("az bicep build", "azd provision --preview", "secrets.ps1", "**not** run"):
        assert words in said
    assert "**Not verified on Azure.**" in PAGE.partition("## Sign-in")[2]


def test_settings_of_the_sign_in_that_it_names_are_set() -> None:
    given = app_settings(parse((AZURE / "modules" / "app.bicep").read_text("utf-8")))
    assert "TOOLBOX_TRUST_EASYAUTH" in given
    assert any(name.endswith("webhookAuthorizationLevel") for name in given)
