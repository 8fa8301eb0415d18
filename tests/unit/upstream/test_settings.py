"""The settings of upstream servers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.errors import EnvelopeError, SettingsError
from shared.upstream.settings import PublishedNames, UpstreamSettings, upstream_settings


def test_defaults(tmp_path: Path) -> None:
    assert upstream_settings({}, tmp_path) == UpstreamSettings(root=tmp_path)
    found = UpstreamSettings()
    assert (found.tool_timeout, found.init_timeout, found.cleanup_timeout, found.grace) == (120, 10, 5, 7)
    assert (found.media_bytes, found.names, found.commands) == (262_144, PublishedNames.SAFE, ())
    assert (found.root / "function_app.py").is_file()


def test_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text('{"deny": []}')
    found = upstream_settings(
        {
            "MCP_SERVERS": '{"mcpServers": {}}',
            "TOOLBOX_UPSTREAM_COMMANDS": "node, deno  node",
            "TOOLBOX_UPSTREAM_TOOL_TIMEOUT": "2.5",
            "TOOLBOX_UPSTREAM_INIT_TIMEOUT": "30",
            "TOOLBOX_UPSTREAM_CLEANUP_TIMEOUT": "1",
            "TOOLBOX_UPSTREAM_GRACE": "0.5",
            "TOOLBOX_UPSTREAM_MEDIA_BYTES": "0",
            "TOOLBOX_UPSTREAM_POLICY": "@policy.json",
            "TOOLBOX_UPSTREAM_NAMES": "Dotted",
            "TOOLBOX_PROJECTS": '{"ana": "sales", "ben": ["plan", "sales"]}',
        },
        tmp_path,
    )
    assert found == UpstreamSettings(
        root=tmp_path,
        servers_text='{"mcpServers": {}}',
        commands=("node", "deno"),
        tool_timeout=2.5,
        tool_timeout_given=True,
        init_timeout=30,
        cleanup_timeout=1,
        grace=0.5,
        media_bytes=0,
        policy='{"deny": []}',
        names=PublishedNames.DOTTED,
        projects={"ana": ("sales",), "ben": ("plan", "sales")},
    )


def test_where_servers_are_configured(tmp_path: Path) -> None:
    assert upstream_settings({}, tmp_path).servers_file is None
    for name in ("mcp_servers.yml", "mcp_servers.yaml", "mcp_servers.json"):
        (tmp_path / name).write_text("")
        assert upstream_settings({"MCP_SERVERS": " "}, tmp_path).servers_file == tmp_path / name
    other = tmp_path / "other.json"
    other.write_text("")
    assert upstream_settings({"MCP_SERVERS": " @other.json "}, tmp_path).servers_file == other
    text = upstream_settings({"MCP_SERVERS": "{}"}, tmp_path)
    assert (text.servers_text, text.servers_file) == ("{}", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP_SERVERS", "@hunter2.json"),
        ("TOOLBOX_UPSTREAM_COMMANDS", "/usr/bin/node"),
        ("TOOLBOX_UPSTREAM_COMMANDS", "../hunter2"),
        ("TOOLBOX_UPSTREAM_COMMANDS", "-x"),
        ("TOOLBOX_UPSTREAM_TOOL_TIMEOUT", "0"),
        ("TOOLBOX_UPSTREAM_INIT_TIMEOUT", "-1"),
        ("TOOLBOX_UPSTREAM_CLEANUP_TIMEOUT", "nan"),
        ("TOOLBOX_UPSTREAM_GRACE", "1e3"),
        ("TOOLBOX_UPSTREAM_GRACE", "hunter2"),
        ("TOOLBOX_UPSTREAM_MEDIA_BYTES", "1.5"),
        ("TOOLBOX_UPSTREAM_MEDIA_BYTES", "999999999"),
        ("TOOLBOX_UPSTREAM_POLICY", "@hunter2.json"),
        ("TOOLBOX_UPSTREAM_NAMES", "hunter2"),
        ("TOOLBOX_PROJECTS", "hunter2"),
        ("TOOLBOX_PROJECTS", "[]"),
        ("TOOLBOX_PROJECTS", '{"ana": 5}'),
        ("TOOLBOX_PROJECTS", '{"ana": "../x"}'),
        ("TOOLBOX_PROJECTS", '{"ana": ["sales", ""]}'),
    ],
)
def test_a_fault_names_its_setting_and_not_its_value(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        upstream_settings({name: value}, tmp_path)
    assert caught.value.message.startswith(name)
    assert "hunter2" not in caught.value.message


def test_no_secret_in_the_repr() -> None:
    assert "hunter2" not in repr(UpstreamSettings(servers_text="hunter2", policy="hunter2"))


PROJECTS: dict[str, Any] = {"ana": ("sales", "plan"), "ben": ("plan",), "cat": ()}


@pytest.mark.parametrize(
    ("owner", "asked", "project"),
    [
        ("ana", None, "sales"),
        ("ana", "plan", "plan"),
        ("ben", None, "plan"),
        ("cat", None, None),
        ("dan", None, None),
    ],
)
def test_an_owner_s_project(owner: str, asked: str | None, project: str | None) -> None:
    assert UpstreamSettings(projects=PROJECTS).project_of(owner, asked) == project


@pytest.mark.parametrize("owner", ["ben", "cat", "dan"])
def test_a_project_of_somebody_else_is_refused_like_one_that_is_not_there(owner: str) -> None:
    """Never a fall back to the global servers, and no telling which projects there are."""
    settings = UpstreamSettings(projects=PROJECTS)
    said = []
    for asked in ("sales", "nothing"):
        with pytest.raises(EnvelopeError) as caught:
            settings.project_of(owner, asked)
        said.append(caught.value.message)
    assert said[0] == said[1]
    assert said[0].startswith("__pptb.project:")
    assert "sales" not in said[0]


def test_projects_that_are_known(tmp_path: Path) -> None:
    for name in ("zoo", ".git", "a b"):
        (tmp_path / "projects" / name).mkdir(parents=True)
    (tmp_path / "projects" / "file").write_text("")
    assert UpstreamSettings(root=tmp_path, projects=PROJECTS).known_projects() == ("plan", "sales", "zoo")


def test_settings_names_and_policy_load_nothing_heavy() -> None:
    """They are read while the app loads."""
    script = (
        "import sys, json\n"
        "import shared.upstream.settings, shared.upstream.names, shared.upstream.policy\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert not loaded & {
        "pydantic",
        "mcp",
        "httpx",
        "httpx2",
        "yaml",
        "json5",
        "azure",
        "jsonschema",
        "websockets",
    }
