"""The workflows: what they may do, what they run, and that zizmor finds nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.local.dev import checks, cli, paths
from tests.unit.infra.support import AZURE, REPO

GITHUB = REPO / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def workflow(path: Path) -> dict[Any, Any]:
    """`on` is a truth value in YAML 1.1: its key is True."""
    found = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version(path: Path) -> None:
    uses = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in uses)


def test_one_action_has_one_version() -> None:
    versions: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, rest in re.findall(r"uses: ([\w/-]+)@(.*)", path.read_text("utf-8")):
            versions.setdefault(name, set()).add(rest)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_only_a_deployment_that_somebody_starts_gets_a_token_for_azure() -> None:
    for path in WORKFLOWS:
        found = workflow(path)
        jobs = found["jobs"].values()
        asks = "write" in json.dumps([found.get("permissions"), [job.get("permissions") for job in jobs]])
        assert asks == (path.name == "deploy.yml")
    deploy = workflow(GITHUB / "workflows" / "deploy.yml")
    assert list(deploy[True]) == ["workflow_dispatch"]
    assert deploy["permissions"] == {}
    (job,) = deploy["jobs"].values()
    assert job["permissions"] == {"contents": "read", "id-token": "write"}
    assert job["environment"], "an environment's rules say who may deploy"
    assert "secrets." not in (GITHUB / "workflows" / "deploy.yml").read_text("utf-8")


def test_every_variable_of_the_parameters_reaches_the_deployment() -> None:
    (job,) = workflow(GITHUB / "workflows" / "deploy.yml")["jobs"].values()
    text = (AZURE / "main.parameters.json").read_text("utf-8")
    asked = dict(re.findall(r"\$\{([A-Z_]+)(?:=([^}]*))?\}", text))
    assert set(asked) <= set(job["env"])
    for name, default in asked.items():
        given = re.search(r"\|\| '(.*)' \}\}", job["env"][name])
        assert (given[1] if given else "") == default, name


def test_commands_of_dev_py_are_there() -> None:
    for path in [*WORKFLOWS, REPO / ".ci" / "run"]:
        for command in re.findall(r"python3 dev\.py ([a-z]+)", path.read_text("utf-8")):
            if command == "test":  # not argparse's: its options are pytest's
                continue
            assert cli._parser().parse_args([command]).command == command


def test_ci_runs_what_a_developer_runs() -> None:
    steps = [
        step.get("run", "")
        for job in workflow(GITHUB / "workflows" / "ci.yml")["jobs"].values()
        for step in job["steps"]
    ]
    assert "bash .ci/run" in steps


def test_ci_keeps_the_package_and_the_pictures_of_the_page() -> None:
    """Whoever reviews a change can look at the page as it was tested, and take what would be deployed."""
    jobs = workflow(GITHUB / "workflows" / "ci.yml")["jobs"]
    tested, kept = _runs_and_keeps(jobs["check-and-test"])
    # Where the tests put them, and also after one that failed.
    assert tested["bash .ci/run"]["env"]["TOOLBOX_PICTURES"] == kept["with"]["path"]
    assert kept["if"] == "${{ !cancelled() }}"
    made, kept = _runs_and_keeps(jobs["package"])
    assert "python3 dev.py package" in made
    assert kept["with"]["path"] == paths.PACKAGE.relative_to(REPO).as_posix()
    assert kept["with"]["if-no-files-found"] == "error"
    assert jobs["package"]["needs"] == "check-and-test", "a package of what has not passed is not kept"


def _runs_and_keeps(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job's commands with their steps, and its one upload, which comes after them."""
    (kept,) = [step for step in job["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert job["steps"][-1] is kept
    return {step["run"]: step for step in job["steps"] if "run" in step}, kept


def test_zizmor_and_the_lint_are_checks_of_dev_py() -> None:
    assert checks._CHECKS["infra"] == ("infra.azure.lint",)
    assert checks._CHECKS["workflows"][:2] == ("zizmor", "--offline")


def test_zizmor_sees_a_fault(tmp_path: Path) -> None:
    """With the options of `dev.py check`; a check that finds nothing anywhere would look the same."""
    shutil.copytree(GITHUB, tmp_path / ".github")
    command = checks.check_command(checks._CHECKS["workflows"])
    clean = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert clean.returncode == 0, clean.stderr
    ci = tmp_path / ".github" / "workflows" / "ci.yml"
    ci.write_text(re.sub(r"checkout@[0-9a-f]{40} # v5\.0\.0", "checkout@v5", ci.read_text()))
    broken = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert broken.returncode != 0
    assert "unpinned-uses" in broken.stdout


def test_dependabot_looks_after_all_that_is_pinned() -> None:
    found = yaml.safe_load((GITHUB / "dependabot.yml").read_text("utf-8"))
    assert {update["package-ecosystem"] for update in found["updates"]} == {"github-actions", "pip", "npm"}
    assert all(update["cooldown"]["default-days"] >= 7 for update in found["updates"])
    (python,) = [update for update in found["updates"] if update["package-ecosystem"] == "pip"]
    locks = [path.parent for path in (*paths.REQUIREMENTS, *paths.AGENTS.glob("*/requirements.txt"))]
    looked_after = [folder for glob in python["directories"] for folder in _folders(glob)]
    assert {folder for folder in locks if folder not in looked_after} == set()


def _folders(glob: str) -> list[Path]:
    """Those that a pattern of Dependabot's names: paths from the repository's root."""
    return [REPO] if glob == "/" else list(REPO.glob(glob.lstrip("/")))
