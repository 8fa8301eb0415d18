"""docs/upstream.md names everything there is to know, and its examples are legal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import shared.upstream
from shared import errors
from shared.upstream.config.fields import KNOWN_KEYS, TransportType
from shared.upstream.config.loading import load
from shared.upstream.config.model import CommandType, ErrorHandler
from shared.upstream.connection.state import ServerState
from shared.upstream.gateway import Drift
from shared.upstream.names import alias, normalize
from shared.upstream.policy import Policy
from shared.upstream.settings import PublishedNames, UpstreamSettings

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "upstream.md").read_text("utf-8")
#: Words and names in code style.
NAMED = {word for code in re.findall(r"`([^`\n]+)`", PAGE) for word in re.findall(r"[A-Za-z_][\w.]*", code)}
BLOCKS = re.findall(r"```(json|yaml)\n(.*?)```", PAGE, re.DOTALL)
SETTING = re.compile(r'"((?:TOOLBOX|MCP)_[A-Z_]+)"')


def test_every_public_name_is_there_and_documented() -> None:
    assert len(shared.upstream.__all__) > 10
    for name in shared.upstream.__all__:
        assert getattr(shared.upstream, name) is not None
    assert set(shared.upstream.__all__) - NAMED == set()
    with pytest.raises(AttributeError, match="it offers AudioContent"):
        _ = shared.upstream.nothing


def test_every_error_is_documented_with_its_code() -> None:
    found: dict[str, type[errors.ToolboxError]] = {
        name: one
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.ToolboxError) and "MCP" in name
    }
    found["MissingTransportFieldError"] = errors.MissingTransportFieldError
    assert len(found) > 5
    for name, one in found.items():
        (row,) = [
            line for line in PAGE.splitlines() if line.startswith("| `") and f"`{name}`" in line.split("|")[1]
        ]
        assert f"`{one.code}`" in row, name


def test_every_setting_is_documented_here_and_with_the_others() -> None:
    text = (ROOT / "shared" / "upstream" / "settings.py").read_text("utf-8")
    names = set(SETTING.findall(text))
    assert len(names) == 10
    assert names - NAMED == set()
    others = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert {name for name in names if f"`{name}`" not in others} == set()


def test_every_key_has_a_row() -> None:
    table = PAGE.partition("## Configuration")[2].partition("## Settings")[0]
    rows = {
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    assert rows == set(KNOWN_KEYS)


@pytest.mark.parametrize("kind", [TransportType, CommandType, ErrorHandler, ServerState, Drift, PublishedNames])
def test_every_value_of_a_closed_set_is_named(kind: Any) -> None:
    assert {str(value) for value in kind} - NAMED == set()


def test_every_example_of_a_configuration_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_TOKEN", "token")
    (tmp_path / "shared-files").mkdir()
    transports = set()
    count = 0
    for language, text in BLOCKS:
        if "mcpServers" in text or language == "yaml":
            count += 1
            settings = UpstreamSettings(root=tmp_path, servers_text=text)
            loaded = load(settings, refresh=True)
            assert (loaded.faults, loaded.warnings) == ((), ()), text
            assert loaded.servers
            transports |= {config.transport for config in loaded.servers.values()}
    assert count >= 7
    assert transports == set(TransportType)


def test_the_example_of_a_policy_is_one() -> None:
    (text,) = [text for _, text in BLOCKS if '"owners"' in text]
    policy = Policy.parse(text)
    assert policy.allows("ana", None, "mcp:crm:find") is True
    assert policy.allows("ben", None, "mcp:crm:find") is False
    assert policy.allows("ana", None, "mcp:crm:delete_all") is False
    assert policy.allows("ben", "lab", "mcp:files:write_file") is False


def test_the_names_of_the_example_are_ours() -> None:
    assert normalize("My Server") == "my_server"
    assert f"`{alias('my_server.read.file')}`" in PAGE
