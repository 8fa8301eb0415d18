"""Node.js and the npm packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dev.console import DevError
from infra.local.dev.node import NodePackages, major_version, require_node, require_npm

if TYPE_CHECKING:
    from tests.unit.dev.conftest import Script

_INSTALLS = 'mkdir -p node_modules/azurite && : > node_modules/azurite/azurite.js && echo "$@" >> calls'


@pytest.fixture
def packages(tmp_path: Path) -> NodePackages:
    lock = tmp_path / "package-lock.json"
    lock.write_text("{}")
    return NodePackages(tmp_path, [lock], expected=tmp_path / "node_modules" / "azurite" / "azurite.js")


def _install(packages: NodePackages, path: Path) -> None:
    packages.finish_install(packages.start_install({"PATH": str(path)}))


def test_installed_once_and_again_when_the_lock_changes(
    packages: NodePackages, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{script('node', 'echo v20.1.0').parent}:/usr/bin:/bin")
    path = script("npm", _INSTALLS).parent
    assert not packages.is_ready()
    _install(packages, path)
    assert packages.is_ready()
    assert (packages.folder / "calls").read_text().startswith("ci --ignore-scripts")
    packages.files[0].write_text('{"changed": true}')
    assert not packages.is_ready()
    _install(packages, path)
    assert packages.is_ready()


def test_missing_program_means_not_ready(packages: NodePackages, script: Script) -> None:
    script("node", "echo v20.1.0")
    _install(packages, script("npm", _INSTALLS).parent)
    packages.expected.unlink()
    assert not packages.is_ready()


def test_npm_failure_is_told_apart(packages: NodePackages, script: Script) -> None:
    script("node", "echo v20.1.0")
    path = script("npm", 'echo "npm error code ENOTFOUND"; exit 1').parent
    with pytest.raises(DevError) as caught:
        _install(packages, path)
    assert "ENOTFOUND" in caught.value.details
    assert "network" in caught.value.hint
    script("npm", 'echo "npm error ENOSPC: no space left on device"; exit 1')
    with pytest.raises(DevError) as caught:
        _install(packages, path)
    assert "disk is full" in caught.value.hint
    assert not packages.is_ready()


def test_no_node(tmp_path: Path) -> None:
    with pytest.raises(DevError, match="not found") as caught:
        require_node({"PATH": str(tmp_path)})
    assert "Install Node.js 20" in caught.value.hint


def test_node_too_old_and_npm_missing(script: Script, tmp_path: Path) -> None:
    environ = {"PATH": str(script("node", "echo v18.20.0").parent)}
    with pytest.raises(DevError, match=r"too old: .* is v18\.20\.0"):
        require_npm(environ, tmp_path)
    script("node", "echo v20.0.0")
    with pytest.raises(DevError, match="npm was not found"):
        require_npm(environ, tmp_path)


def test_major_version() -> None:
    assert major_version("v20.20.2\n") == 20
    assert major_version("nonsense") is None
