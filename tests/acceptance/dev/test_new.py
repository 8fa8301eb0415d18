"""`dev.py new` in a copy of the checkout, and on with the commands that it prints and the project's checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.local.dev import paths
from infra.local.dev.scaffold import MAX_NAME
from tests.acceptance.conftest import start_app
from tests.support.clone import cloned

pytestmark = pytest.mark.acceptance

#: Name -> options. The longest names show that generated lines stay within the limit.
_NAMES = {"hello": [], "hello-there": ["--contract"], "x" * MAX_NAME: [], "y" * MAX_NAME: ["--contract"]}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = cloned(tmp_path_factory.mktemp("new") / "clone")
    # Other tests may stand in the checkout's own; what is made here is looked at alone.
    shutil.rmtree(root / "tests" / "tools", ignore_errors=True)
    return root


@pytest.fixture(scope="module")
def made(clone: Path) -> dict[str, str]:
    """Name -> what `dev.py new` said."""
    said = {}
    for name, options in _NAMES.items():
        done = dev(clone, "new", name, *options)
        assert done.returncode == 0, done.stderr
        said[name] = done.stdout
    return said


def dev(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(clone, sys.executable, str(clone / "dev.py"), *arguments)


def run(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=clone,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("name", "folder"), [("hello", "hello"), ("hello-there", "hello_there")], ids=["decorated", "contract"]
)
def test_the_commands_that_it_prints_work(clone: Path, made: dict[str, str], name: str, folder: str) -> None:
    files, _, following = made[name].partition("Next\n")
    assert f"Made the tool {name}\n  tools/{folder}/" in files
    commands = [line.strip() for line in following.splitlines()]
    assert commands == [
        f"python3 dev.py validate tools/{folder}",
        f"python3 dev.py test tests/tools/test_{folder}.py",
        "python3 dev.py run",
    ]
    for command in (commands[0], "python3 dev.py validate"):
        checked = dev(clone, *command.split()[2:])
        assert checked.returncode == 0, checked.stdout
        assert "0 fault(s), 0 warning(s)" in checked.stdout
    tested = dev(clone, *commands[1].split()[2:])
    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout


@pytest.mark.parametrize("options", [[], ["--contract"]])
@pytest.mark.parametrize("name", ["hello", "hello-there", "hello_there"])
def test_nothing_is_made_twice(clone: Path, made: dict[str, str], name: str, options: list[str]) -> None:
    again = dev(clone, "new", name, *options)
    assert (again.returncode, again.stdout) == (1, "")
    assert f"tools/{name.replace('-', '_')} is there already" in again.stderr


def test_the_apps_own_tools_keep_their_names(clone: Path, made: dict[str, str]) -> None:
    refused = dev(clone, "new", "job-status")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "There is a tool called 'job_status' already." in refused.stderr


def test_a_tool_of_another_folder_keeps_its_name(clone: Path, made: dict[str, str]) -> None:
    (clone / "tools" / "other").mkdir()
    code = (clone / "tools" / "hello" / "__init__.py").read_text("utf-8")
    (clone / "tools" / "other" / "__init__.py").write_text(code.replace("def hello(", "def Hi_You("), "utf-8")
    try:
        refused = dev(clone, "new", "hi_you")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "There is a tool called 'Hi_You' already." in refused.stderr
        assert not (clone / "tools" / "hi_you").exists()
    finally:
        shutil.rmtree(clone / "tools" / "other")


def test_what_it_made_keeps_to_the_projects_rules(clone: Path, made: dict[str, str]) -> None:
    lines = [line.strip() for said in made.values() for line in said.splitlines()]
    files = [line for line in lines if line.endswith(".py") and " " not in line]
    assert len(files) == 2 * len(_NAMES)
    for command in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
        done = run(clone, str(paths.VENV_PYTHON), "-m", *command, *files)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_made_is_served(
    clone: Path, made: dict[str, str], tmp_path: Path, new_storage: Callable[[], str]
) -> None:
    # A storage of its own: workers of another app, which has not these tools, must not take the jobs.
    serve_and_call(clone, made, tmp_path, new_storage())


def serve_and_call(clone: Path, made: dict[str, str], folder: Path, connection: str) -> None:
    app = start_app(folder, connection, app_dir=clone)
    try:
        for name in made:
            inline = app.call(name, {"text": "two words"})
            assert inline["structuredContent"] == {"words": 2, "longest": "words"}
            accepted = app.call(name, {"text": "a\nb"}, {"executionMode": "headless", "mode": "one-way"})
            body = app.ended(accepted["structuredContent"]["jobId"])
            assert (body["status"], body["result"]) == ("completed", {"words": 2, "longest": "a"})
            assert body["progress"]["percent"] == 100
            assert "2 words" in [line["message"] for line in body["logs"]]
    finally:
        app.stop()
