"""Whichever way it is deployed: what goes to Azure is the zip that `dev.py package` makes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.dev import paths
from tests.unit.infra.support import AZURE, REPO

#: Stands in the place of `python3`: tells what it is given, and ends as it is told to.
PYTHON = """#!/bin/sh
pwd > "$TOLD"
printf '%s\\n' "$@" >> "$TOLD"
exit "$ENDS_WITH"
"""


def service() -> dict[str, Any]:
    (found,) = yaml.safe_load((REPO / "azure.yaml").read_text("utf-8"))["services"].values()
    assert isinstance(found, dict)
    return found


def run_hook(folder: Path, *, ends_with: int) -> tuple[int, list[str]]:
    """(its exit code, what it has run: the folder, then the arguments)."""
    stand_in, told = folder / "bin" / "python3", folder / "told"
    stand_in.parent.mkdir()
    stand_in.write_text(PYTHON)
    stand_in.chmod(0o755)
    environ = {
        **os.environ,
        "PATH": f"{stand_in.parent}:{os.environ['PATH']}",
        "TOLD": str(told),
        "ENDS_WITH": str(ends_with),
    }
    script = REPO / service()["hooks"]["prepackage"]["posix"]["run"]
    done = subprocess.run(["sh", str(script)], cwd=folder, env=environ, check=False, timeout=20)
    return done.returncode, told.read_text().splitlines()


def test_azd_sends_what_its_hook_makes(tmp_path: Path) -> None:
    """azd takes a zip that `dist` of a custom service names as it is; of `python` it would zip the sources."""
    assert service()["language"] == "custom"
    assert REPO / service()["dist"] == paths.PACKAGE
    code, (folder, *arguments) = run_hook(tmp_path, ends_with=0)
    assert code == 0
    assert Path(folder).samefile(REPO), "wherever azd runs it"
    assert arguments == ["dev.py", "package"]


def test_nothing_is_deployed_when_the_package_cannot_be_made(tmp_path: Path) -> None:
    assert run_hook(tmp_path, ends_with=3)[0] == 3


def test_the_workflow_makes_the_package_and_sends_that() -> None:
    workflow = yaml.safe_load((REPO / ".github" / "workflows" / "deploy.yml").read_text("utf-8"))
    (job,) = workflow["jobs"].values()
    commands = [str(step.get("run", "")) for step in job["steps"]]
    (deploy,) = [command for command in commands if command.startswith("azd deploy")]
    assert "--from-package" in deploy
    assert REPO / deploy.split("--from-package ")[1].split()[0] == paths.PACKAGE
    assert commands.index("python3 dev.py package") < commands.index(deploy)


def test_the_page_names_the_same_command() -> None:
    page = (REPO / "docs" / "deploy.md").read_text("utf-8")
    assert "python3 dev.py package\nazd deploy app --from-package dist/app.zip" in page


@pytest.mark.parametrize("script", ["package.sh", "package.ps1"])
def test_both_systems_run_the_same(script: str) -> None:
    assert "python3 dev.py package" in (AZURE / "hooks" / script).read_text("utf-8")
