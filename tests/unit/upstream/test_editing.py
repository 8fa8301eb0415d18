"""`upstream enable|disable`: the list in the configuration and the lock, and what is not touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError, MCPToolNotFoundError
from shared.upstream import lock
from shared.upstream.editing import switch
from shared.upstream.lock import Lock, LockedTool, Schemas
from shared.upstream.settings import UpstreamSettings

FILE = "mcp_servers.json"


def settings_of(root: Path, body: Any, *scopes: str, text: str | None = None) -> UpstreamSettings:
    root.mkdir(exist_ok=True)
    (root / FILE).write_text(json.dumps(body) if text is None else text)
    scopes = scopes or ("global",)
    tool = LockedTool("d_r", "my_docs", "read.file", "R", "Reads.", dict.fromkeys(scopes, Schemas("h", {})), 1)
    (root / lock.LOCK_FILE).write_text(Lock(tools=(tool,)).to_text())
    return UpstreamSettings(root=root, servers_file=root / FILE, projects={"ana": ("sales",)})


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"mcpServers": {"My Docs": {"url": "u"}}}, lambda found: found["mcpServers"]["My Docs"]),
        ({"mcpServers": [{"name": "a"}, {"name": "My Docs"}]}, lambda found: found["mcpServers"][1]),
        ({"servers": {"my-docs": {}}}, lambda found: found["servers"]["my-docs"]),
        ([{"name": "My Docs"}], lambda found: found[0]),
        ({"tools": [{"type": "mcp", "name": "My Docs"}]}, lambda found: found["tools"][0]),
        ({"name": "My Docs", "url": "u"}, lambda found: found),
    ],
)
def test_every_form_of_the_file(tmp_path: Path, body: Any, place: Any) -> None:
    settings = settings_of(tmp_path, body)
    for _ in range(2):
        assert switch(settings, "my_docs.read.file", None, disabled=True) == tmp_path / FILE
        found = json.loads((tmp_path / FILE).read_text())
        assert place(found)["disabled_tools"] == ["read.file"]
        assert lock.read(tmp_path / lock.LOCK_FILE).tools[0].disabled is True
    switch(settings, "my_docs.read.file", None, disabled=False)
    assert json.loads((tmp_path / FILE).read_text()) == body
    assert lock.read(tmp_path / lock.LOCK_FILE).tools[0].disabled is False
    assert sorted(one.name for one in tmp_path.iterdir()) == [FILE, lock.LOCK_FILE]


def test_a_projects_own_list(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"mcpServers": {"my docs": {}}}, "global", "project:sales")
    folder = settings.project_folder("sales")
    folder.mkdir(parents=True)
    (folder / FILE).write_text('{"mcpServers": {"my docs": {}}}')
    switch(settings, "my_docs.read.file", "sales", disabled=True)
    assert "disabled_tools" in (folder / FILE).read_text()
    assert "disabled_tools" not in (tmp_path / FILE).read_text()
    # The global scope still has it.
    assert lock.read(tmp_path / lock.LOCK_FILE).tools[0].disabled is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mcpServers": {}}', "there is no such server in mcp_servers.json"),
        ('{"mcpServers": {"my docs": {"disabled_tools": "read"}}}', "must be a list of tool names"),
        (
            '{"mcpServers": {"my docs": {}}, /* mine */ }',
            "would lose its comments: add 'read' to 'disabled_tools'",
        ),
        ("tools:\n- name: my docs\n", "by hand"),
        ("5", "there is no such server"),
        ('{"mcpServers": 5}', "there is no such server"),
    ],
)
def test_what_cannot_be_edited_says_what_to_do_and_stays(tmp_path: Path, text: str, said: str) -> None:
    settings = settings_of(tmp_path, None, text=text)
    before = (tmp_path / lock.LOCK_FILE).read_bytes()
    with pytest.raises(ConfigError) as caught:
        switch(settings, "my_docs.read", None, disabled=True)
    assert said in caught.value.message
    assert (tmp_path / FILE).read_text() == text
    assert (tmp_path / lock.LOCK_FILE).read_bytes() == before


def test_servers_that_stand_in_the_setting(tmp_path: Path) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text='{"mcpServers": {"docs": {}}}')
    with pytest.raises(ConfigError, match=r"MCP_SERVERS.*holds the servers itself"):
        switch(settings, "docs.read", None, disabled=True)


def test_names_and_projects_that_are_not_there(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {"mcpServers": {"docs": {}}})
    with pytest.raises(MCPToolNotFoundError):
        switch(settings, "docs", None, disabled=True)
    with pytest.raises(ConfigError, match="there is no project 'other'"):
        switch(settings, "docs.read", "other", disabled=True)
    with pytest.raises(ConfigError, match="'sales' has no servers of its own"):
        switch(settings, "docs.read", "sales", disabled=True)
