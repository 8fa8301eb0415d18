"""The package as it is deployed: unpacked, with the packages of its requirements.txt alone, and called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.azurite import Azurite
from infra.local.dev import package, paths
from tests.acceptance.conftest import App, start_app

pytestmark = pytest.mark.acceptance

#: What the app's process has beside its settings. Anything else of this process may lead to other packages.
KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
UV = str(Path(sys.executable).with_name("uv"))


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Of these tests alone: apps that share a queue take each other's messages."""
    with Azurite.start(tmp_path_factory.mktemp("storage"), free_ports=True) as own:
        yield own


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    made = package.make(paths.REPO, folder / "app.zip", os.environ)
    with zipfile.ZipFile(made.path) as archive:
        archive.extractall(folder / "app")
    return folder / "app"


@pytest.fixture(scope="module")
def python(unpacked: Path) -> str:
    """Of a virtual environment with what the package's requirements.txt names, and nothing else."""
    venv = unpacked.parent / "venv"
    run(UV, "venv", "--quiet", "--python", sys.executable, str(venv))
    found = str(venv / "bin" / "python")
    requirements = str(unpacked / "requirements.txt")
    run(UV, "pip", "install", "--quiet", "--python", found, "--require-hashes", "-r", requirements)
    return found


@pytest.fixture(scope="module")
def deployed(azurite: Azurite, unpacked: Path, python: str) -> App:
    """The local host is found in the checkout, which it takes off the path before it loads the app. What it
    imports itself is among what the app's requirements name.
    """
    with pytest.MonkeyPatch.context() as patched:
        for name in set(os.environ) - set(KEPT):
            patched.delenv(name)
        return start_app(
            unpacked.parent,
            azurite.connection_string,
            "--no-triggers",
            "timer",
            app_dir=unpacked,
            python=python,
        )


def test_the_package_runs_csv_profile_as_a_job(deployed: App) -> None:
    try:
        answer = deployed.call(
            "csv_profile",
            {"csv": "city,people\nOslo,700000\nBergen,290000\n"},
            {"executionMode": "headless", "mode": "one-way"},
        )
        assert answer["structuredContent"]["status"] == "accepted", answer
        ended = deployed.ended(answer["structuredContent"]["jobId"])
        assert ended["status"] == "completed", ended
        assert [column["name"] for column in ended["result"]["columns"]] == ["city", "people"]
        names = {tool["name"] for tool in deployed.rpc("tools/list")["result"]["tools"]}
        assert {"csv_profile", "dataverse-query", "entity-picker", "job_status"} <= names
        assert "tools.lock.json is not used" not in deployed.log.read_text()
    finally:
        assert deployed.stop() == 0


def test_the_package_loads_without_a_package_that_only_tests_have(unpacked: Path, python: str) -> None:
    script = (
        "import function_app, importlib.util, json, sys\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('pydantic', 'tools')]\n"
        "of_tests = [name for name in ('pytest', 'mypy') if importlib.util.find_spec(name)]\n"
        "print(json.dumps([len(function_app.app.get_functions()), loaded, of_tests]))"
    )
    environment = {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "TOOLBOX_SEAL_KEY": "A" * 43 + "="}
    done = subprocess.run(
        [python, "-c", script],
        cwd=unpacked,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, loaded, of_tests = json.loads(done.stdout)
    assert count > 30
    assert loaded == []
    assert of_tests == []
