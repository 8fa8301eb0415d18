"""The effective configuration: where it is read from, and how long it is kept."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.upstream.config.faults import Scope
from shared.upstream.config.loading import effective, is_current, load, load_all
from shared.upstream.settings import UpstreamSettings, upstream_settings

ENTRY = {"command": "npx", "args": ["-y", "pkg"]}
PRINT = """
import sys, pathlib
from shared.upstream.config.env_file import print_of
print(print_of(pathlib.Path(sys.argv[1])))
"""


def servers(**entries: Any) -> str:
    return json.dumps({"mcpServers": entries})


def write_project(root: Path, text: str, name: str = "sales", file: str = "mcp_servers.json") -> Path:
    folder = root / "projects" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    return folder


def test_a_project_lies_over_the_global_scope(tmp_path: Path) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a=ENTRY, b=ENTRY, c=ENTRY))
    write_project(tmp_path, servers(B={"url": "https://h/mcp"}, c={"disabled": True}, d=ENTRY))
    found = load(settings, "sales")
    assert found.faults == ()
    assert [(key, config.scope, config.project, config.disabled) for key, config in found.servers.items()] == [
        ("a", Scope.GLOBAL, None, False),
        ("b", Scope.PROJECT, "sales", False),
        ("c", Scope.PROJECT, "sales", True),
        ("d", Scope.PROJECT, "sales", False),
    ]
    assert list(effective(settings, "sales")) == ["a", "b", "d"]
    # The others do not see it.
    assert list(effective(settings)) == list(effective(settings, "other")) == ["a", "b", "c"]


def test_what_the_operator_has_switched_off_stays_off(tmp_path: Path) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a={**ENTRY, "disabled_tools": ["danger"]}))
    write_project(tmp_path, servers(a={**ENTRY, "disabled_tools": ["other"]}))
    assert load(settings, "sales").servers["a"].disabled_tools == ("danger", "other")


@pytest.mark.parametrize("entry", [False, "npx", {"url": "ftp://x"}, {"command": "bash"}])
def test_a_broken_entry_of_a_project_does_not_bring_the_global_server_back(tmp_path: Path, entry: Any) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a=ENTRY, b=ENTRY))
    write_project(tmp_path, servers(a=entry))
    found = load(settings, "sales")
    assert set(found.servers) == {"b"}
    (fault,) = found.faults
    assert (fault.name, fault.key, fault.scope, fault.project) == ("a", "a", Scope.PROJECT, "sales")


def test_an_entry_of_a_list_that_cannot_be_read_does_not_either(tmp_path: Path) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a=ENTRY, b=ENTRY))
    write_project(tmp_path, "tools: [{type: mcp, name: a, env: {8080: x}}]", file="mcp_servers.yaml")
    found = load(settings, "sales")
    assert set(found.servers) == {"b"}
    assert [(fault.key, fault.field, fault.scope) for fault in found.faults] == [
        ("a", "tools[0]", Scope.PROJECT)
    ]


def test_a_project_s_text_that_cannot_be_read_leaves_the_global_servers_on(tmp_path: Path) -> None:
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a=ENTRY))
    write_project(tmp_path, "not json")
    found = load(settings, "sales")
    assert set(found.servers) == {"a"}
    assert [(fault.scope, fault.field) for fault in found.faults] == [(Scope.PROJECT, "text")]


def test_every_fault_is_listed_and_no_entry_disables_another(tmp_path: Path) -> None:
    text = servers(
        one={"command": "bash", "args": [5], "request_timeout": 0},
        two={"url": "http://evil.example"},
        three={"url": "https://h/", "headers": {"X": "${NOPE}"}},
        four="text",
        good=ENTRY,
    )
    found = load(UpstreamSettings(root=tmp_path, servers_text=text))
    assert list(found.servers) == ["good"]
    assert sorted((fault.key, fault.field) for fault in found.faults) == [
        ("four", "mcpServers.four"),
        ("one", "args.0"),
        ("one", "command"),
        ("one", "request_timeout"),
        ("three", "NOPE"),
        ("two", "url"),
    ]


@pytest.mark.parametrize("name", ["mcp_servers.json", "mcp_servers.yaml", "mcp_servers.yml"])
def test_the_file_beside_the_app(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(servers(a={**ENTRY, "env_file": "vars.env"}))
    (tmp_path / "vars.env").write_text("A=1\n")
    settings = upstream_settings({}, tmp_path)
    assert load(settings).servers["a"].environment() == {"A": "1"}


def test_a_project_s_env_file_stands_beside_its_configuration(tmp_path: Path) -> None:
    folder = write_project(tmp_path, servers(a={**ENTRY, "env_file": "vars.env"}))
    (folder / "vars.env").write_text("A=project\n")
    assert load(UpstreamSettings(root=tmp_path), "sales").servers["a"].env_file_values == {"A": "project"}


def test_of_two_files_one_is_read_and_the_other_named(tmp_path: Path) -> None:
    write_project(tmp_path, servers(a=ENTRY))
    write_project(tmp_path, "mcpServers: {b: {}}", file="mcp_servers.yaml")
    found = load(UpstreamSettings(root=tmp_path), "sales")
    assert set(found.servers) == {"a"}
    assert [warning.message for warning in found.warnings] == [
        "mcp_servers.json is read, mcp_servers.yaml is not"
    ]


def test_a_file_that_cannot_be_read_is_a_fault_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "mcp_servers.json").write_bytes(b"\xff\xfe{")
    (fault,) = load(upstream_settings({}, tmp_path)).faults
    assert fault.message == "mcp_servers.json cannot be read: it is not UTF-8"
    gone = UpstreamSettings(root=tmp_path, servers_file=tmp_path / "gone.json")
    (fault,) = load(gone).faults
    assert fault.message == "gone.json cannot be read: No such file or directory"


def test_it_is_kept_until_a_file_changes(tmp_path: Path) -> None:
    text = servers(a={**ENTRY, "env": {"T": "${T}"}, "env_file": "vars.env"})
    (tmp_path / "vars.env").write_text("A=1")
    settings = UpstreamSettings(root=tmp_path, servers_text=text)
    write_project(tmp_path, servers(b=ENTRY))
    first = load(settings, "sales", environ={"T": "1"})
    assert load(settings, "sales", environ={"T": "1"}) is first
    # Another project, and another reader of the same one, leave it alone.
    load(settings, None, environ={"T": "1"})
    assert load(settings, "sales", environ={"T": "1"}) is first

    write_project(tmp_path, servers(b=ENTRY, c=ENTRY))
    second = load(settings, "sales", environ={"T": "1"})
    assert set(second.servers) == {"a", "b", "c"}
    assert second.key != first.key
    assert second.servers["a"].fingerprint == first.servers["a"].fingerprint

    third = load(settings, "sales", environ={"T": "2"})
    assert third.servers["a"].env == {"T": "2"}

    (tmp_path / "vars.env").write_text("A=2")
    fourth = load(settings, "sales", environ={"T": "2"})
    assert fourth.servers["a"].env_file_values == {"A": "2"}
    assert fourth.servers["a"].fingerprint != third.servers["a"].fingerprint
    assert fourth.servers["b"].fingerprint == third.servers["b"].fingerprint
    assert load(settings, "sales", environ={"T": "2"}) is fourth
    assert is_current(settings, "sales", fourth)

    fifth = load(settings, "sales", environ={"T": "2"}, refresh=True)
    assert fifth is not fourth
    assert (fifth.key, fifth.servers["a"].fingerprint) == (fourth.key, fourth.servers["a"].fingerprint)
    assert not is_current(settings, "sales", fourth)


def test_an_env_file_that_comes_or_goes_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "vars.env"
    text = servers(a={**ENTRY, "env_file": "vars.env"}, b=ENTRY)
    settings = UpstreamSettings(root=tmp_path, servers_text=text)
    without = load(settings)
    assert set(without.servers) == {"b"}
    assert load(settings) is without
    file.write_text("A=1")
    assert load(settings).servers["a"].env_file_values == {"A": "1"}
    file.write_bytes(b"\xff\xfe")
    (fault,) = load(settings).faults
    assert fault.message == "Cannot read environment file: it is not UTF-8"
    file.unlink()
    (fault,) = load(settings).faults
    assert fault.message == "Cannot read environment file: No such file or directory"


def test_what_is_kept_of_an_env_file_shows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "vars.env").write_text("A=hunter2")
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a={**ENTRY, "env_file": "vars.env"}))
    found = load(settings)
    (held,) = found.env_files.values()
    assert "hunter2" not in repr(found)
    # Keyed, so that nobody can try values until one fits.
    assert held != hashlib.blake2b(b"A=hunter2\0").hexdigest()
    other = subprocess.run(
        [sys.executable, "-c", PRINT, str(tmp_path / "vars.env")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert len(other.stdout.strip()) == len(held)
    assert other.stdout.strip() != held


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "-a", "a" * 65, ".hidden"])
def test_a_name_that_no_project_can_have_opens_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="1 to 64 of the characters"):
        load(UpstreamSettings(root=tmp_path), name)


def test_all_scopes(tmp_path: Path) -> None:
    write_project(tmp_path, servers(b=ENTRY))
    (tmp_path / "projects" / ".hidden").mkdir()
    settings = UpstreamSettings(root=tmp_path, servers_text=servers(a=ENTRY), projects={"ana": ("plan",)})
    assert {scope: set(one.servers) for scope, one in load_all(settings).items()} == {
        None: {"a"},
        "plan": {"a"},
        "sales": {"a", "b"},
    }


def test_names_that_fall_together_are_refused(tmp_path: Path) -> None:
    text = servers(**{"My Srv": ENTRY, "my-srv": {"url": "https://h/"}, "MY.SRV": ENTRY})
    found = load(UpstreamSettings(root=tmp_path, servers_text=text))
    assert [config.name for config in found.servers.values()] == ["My Srv"]
    assert [fault.name for fault in found.faults] == ["my-srv", "MY.SRV"]
    assert all("the same name, which is 'my_srv' for both" in fault.message for fault in found.faults)


def test_no_fault_shows_a_secret(tmp_path: Path) -> None:
    """Every value that may hold one, each of them wrong."""
    text = servers(
        a={"command": "hunter2 x", "args": ["--hunter2=x", 5], "env": {"A": ["hunter2"], "PATH": "hunter2"}},
        b={"url": "ftp://u:hunter2@h/?hunter2", "headers": {"X": "hunter2\n", "Y": {"hunter2": 1}}},
        c={"command": "uvx", "args": ["--python", "/hunter2", "x"], "config": ["hunter2"]},
        d={"type": "hunter2 hunter2", "url": ["hunter2"]},
        e={"url": "https://hunter2 x/", "timeout": "hunter2", "disabled_tools": "hunter2"},
        f={"command": "docker", "args": ["run", "-v", "/etc/hunter2:/x", "i"], "env_file": "hunter2.env"},
        g={"command": "FOO=hunter2 npx x", "disabled": "hunter2"},
        h={"command": "npx", "args": ["x"], "env": {"A": "${A:-hunter2}", "B": "${B}hunter2"}},
    )
    found = load(UpstreamSettings(root=tmp_path, servers_text=text))
    assert found.servers == {}
    assert {fault.key for fault in found.faults} == set("abcdefgh")
    said = [str(fault) + repr(fault) + str(fault.error) for fault in found.faults] + list(
        map(str, found.warnings)
    )
    assert not any("hunter2" in text for text in said)
