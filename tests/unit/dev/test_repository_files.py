"""Files that must agree with each other, and what no committed file may say."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from infra.local import azurite
from infra.local.dev import demo, paths

if TYPE_CHECKING:
    from pathlib import Path

DEPLOYED = {"function_app.py", "host.json", "requirements.txt", "shared", "tools"}
_COMPOSE = (paths.REPO / "infra" / "local" / "docker-compose.yml").read_text("utf-8")
# Spelt in pieces, so that this file does not name them.
_REGISTRIES = ("registry" + ".npmjs", "registry" + ".yarnpkg", "pypi" + ".org", "files.python" + "hosted")
_LOCK_FILES = ("requirements.txt", "requirements-dev.txt", "package-lock.json")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Every file that is, or is about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=paths.REPO,
        capture_output=True,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    files = [paths.REPO / name for name in listed.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def test_compose_publishes_the_ports_of_the_example_to_this_machine_only() -> None:
    published = re.findall(r'- "(\S+):(\d+):(\d+)"', _COMPOSE)
    # "UseDevelopmentStorage=true" of the example means these ports.
    assert [(host, int(outside)) for host, outside, _ in published] == [
        ("127.0.0.1", port) for port in azurite.DEFAULT_PORTS
    ]
    inside = [int(port) for port in re.findall(r"--(?:blob|queue|table)Port (\d+)", _COMPOSE)]
    assert [int(port) for _, _, port in published] == inside
    assert '"AzureWebJobsStorage": "UseDevelopmentStorage=true"' in paths.EXAMPLE_SETTINGS.read_text("utf-8")


def test_compose_runs_the_azurite_that_npm_installs_with_the_same_options() -> None:
    # A tag may come to mean another image; a digest may not.
    ((version, digest),) = re.findall(r"azure-storage/azurite:([^\s@]+)@(\S+)", _COMPOSE)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    assert f'"azurite": "{version}"' in (paths.REPO / "package.json").read_text("utf-8")
    for option in ("--silent", "--skipApiVersionCheck", "--disableTelemetry"):
        assert option in _COMPOSE


def test_default_connection_string_is_the_emulators() -> None:
    text = azurite.connection_string(azurite.DEFAULT_PORTS)
    for name, port in zip(("Blob", "Queue", "Table"), azurite.DEFAULT_PORTS, strict=True):
        assert f"{name}Endpoint=http://127.0.0.1:{port}/devstoreaccount1;" in text
    assert "AccountName=devstoreaccount1;" in text


def test_lock_files_name_no_host_and_lock_by_hash() -> None:
    for name in _LOCK_FILES:
        text = (paths.REPO / name).read_text("utf-8")
        assert '"resolved"' not in text
        assert not [host for host in _REGISTRIES if host in text], name
        assert not re.search(r"^\s*--?(?:index|extra-index|find-links|i\b|f\b)", text, re.MULTILINE), name
    for requirement in ("requirements.txt", "requirements-dev.txt"):
        text = (paths.REPO / requirement).read_text("utf-8")
        pinned = re.findall(r"^[A-Za-z0-9._-]+==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert pinned
        assert all("--hash=sha256:" in block for block in pinned)


def test_no_tracked_file_names_a_registry(tracked: list[Path]) -> None:
    found = [
        f"{file.relative_to(paths.REPO)}: {host}"
        for file in tracked
        for host in _REGISTRIES
        if host.encode() in file.read_bytes()
    ]
    assert not found


def test_deployed_is_only_what_runs(tracked: list[Path]) -> None:
    lines = (paths.REPO / ".funcignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    top = {file.relative_to(paths.REPO).parts[0] for file in tracked}
    kept = {
        name
        for name in top
        if not any(fnmatch.fnmatch(name, pattern.removeprefix("/")) for pattern in patterns)
    }
    assert kept <= DEPLOYED
    assert {"host.json", "requirements.txt"} <= kept
    # A pattern without a slash counts in every folder: nothing of a tool may fall under one.
    everywhere = [pattern for pattern in patterns if not pattern.startswith(("/", "!"))]
    deep = [part for file in tracked for part in file.relative_to(paths.REPO).parts if "tools" in file.parts]
    assert not [name for name in deep for pattern in everywhere if fnmatch.fnmatch(name, pattern)]


def test_workflow_pins_actions_by_commit_and_may_only_read() -> None:
    workflow = (paths.REPO / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    uses = re.findall(r"uses: (.*)", workflow)
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses)
    assert "permissions:\n  contents: read\n" in workflow
    assert "run: bash .ci/run" in workflow


def test_sample_of_the_demo_ships_with_the_tool(tracked: list[Path]) -> None:
    assert demo.SAMPLE in tracked
