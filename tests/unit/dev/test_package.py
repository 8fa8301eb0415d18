"""`dev.py package`: what is in the zip, that it is the same each time, and that its bytecode is what runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from infra.local.dev import package, paths
from infra.local.dev.console import DevError
from shared.settings import PLACEHOLDER_SEAL_KEY

ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
LOAD = "import function_app, sys; sys.stdout.write(str(len(function_app.toolbox.tools)))"


def checkout(folder: Path) -> Path:
    """A copy of what a checkout has, with much that must not be packed."""
    for name in ("shared", "tools"):
        shutil.copytree(paths.REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("function_app.py", "host.json", "requirements.txt"):
        shutil.copyfile(paths.REPO / name, folder / name)
    secrets = ("local.settings.json", ".env", "tools/csv_profile/.env", "tools/csv_profile/client.pem")
    others = ("dev.py", "README.md", "tests/test_x.py", "infra/x.py", "docs/x.md", "tools.lock.json")
    caches = ("tools/__pycache__/x.cpython-313.pyc", "shared/.mypy_cache/x", "tools/csv_profile/old.pyc")
    for name in (*secrets, *others, *caches, "projects/sales/mcp_servers.json", "mcp_servers.yaml"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"secret of {name}", "utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> package.Package:
    folder = tmp_path_factory.mktemp("checkout")
    return package.make(checkout(folder), folder / "dist" / "app.zip", {**ENVIRONMENT, "PYTHONHASHSEED": "1"})


@pytest.fixture
def unpacked(made: package.Package, tmp_path: Path) -> Path:
    with zipfile.ZipFile(made.path) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def load(app: Path) -> str:
    environment = {
        **ENVIRONMENT,
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "TOOLBOX_SEAL_KEY": PLACEHOLDER_SEAL_KEY,
    }
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=app,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "tools.lock.json is not used" not in done.stderr
    return done.stdout


def test_only_what_runs_is_packed(made: package.Package) -> None:
    with zipfile.ZipFile(made.path) as archive:
        names = archive.namelist()
        planted = [name for name in names if archive.read(name).startswith(b"secret of")]
    assert planted == ["mcp_servers.yaml", "projects/sales/mcp_servers.json"]
    top = {name.split("/")[0] for name in names}
    assert top == {
        "__pycache__", "function_app.py", "host.json", "mcp_servers.yaml", "projects", "requirements.txt",
        "shared", "tools", "tools.lock.json",
    }  # fmt: skip
    assert names == sorted(names)
    assert made.left_out == ["tools/csv_profile/client.pem"]
    assert (made.files, made.bytes) == (len(names), Path(made.path).stat().st_size)
    sources = {name for name in names if name.endswith(".py")}
    folders = {name.rpartition("/")[0] for name in sources}
    assert len([name for name in names if name.endswith(".cpython-313.pyc")]) == len(sources)
    assert {"tools/csv_profile", "tools/entity_picker", "shared/jobs"} <= folders


def test_the_same_files_give_the_same_bytes(made: package.Package, tmp_path: Path) -> None:
    again = package.make(checkout(tmp_path / "elsewhere"), tmp_path / "b.zip", {**ENVIRONMENT, "X": "y"})
    assert again.sha256 == made.sha256
    path = tmp_path / "elsewhere" / "shared" / "text.py"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    changed = package.make(tmp_path / "elsewhere", tmp_path / "c.zip", ENVIRONMENT)
    assert changed.sha256 != made.sha256


def test_what_runs_is_the_bytecode(unpacked: Path) -> None:
    """Sources that would end the process are not looked at, whatever their times."""
    assert int(load(unpacked)) >= 8
    assert list(unpacked.rglob("*.pyc.*")) == []
    for name in ("function_app.py", "shared/toolbox.py", "shared/settings.py"):
        (unpacked / name).write_text("raise SystemExit(3)\n")
    assert int(load(unpacked)) >= 8
    for path in unpacked.rglob("toolbox.cpython-313.pyc"):
        path.unlink()
    with pytest.raises(subprocess.CalledProcessError):
        load(unpacked)


def test_a_package_without_a_pinned_runtime_is_refused(tmp_path: Path) -> None:
    app = checkout(tmp_path / "app")
    (app / "requirements.txt").write_text("azure-functions-runtime>=1\n")
    with pytest.raises(DevError, match="does not pin azure-functions-runtime"):
        package.make(app, tmp_path / "app.zip", ENVIRONMENT)
    assert not (tmp_path / "app.zip").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    app = checkout(tmp_path / "app")
    (app / "tools" / "csv_profile" / "data.csv").symlink_to("/etc/hostname")
    with pytest.raises(DevError, match=r"tools/csv_profile/data\.csv is a link"):
        package.make(app, tmp_path / "app.zip", ENVIRONMENT)


def with_settings(app: Path, **given: str) -> Path:
    path = app / "infra" / "azure" / "app-settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(given), "utf-8")
    return app


def test_files_that_settings_of_the_deployment_name_are_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A start with `CONNECTIONS=@file` stops when the file is not there."""
    app = with_settings(
        checkout(tmp_path / "app"),
        CONNECTIONS="@config/connections.json",
        MCP_SERVERS="@mcp_servers.yaml",
        TOOLBOX_UPSTREAM_POLICY="@Microsoft.KeyVault(SecretUri={vaultUri}secrets/policy)",
        OF_A_TOOL="@somebody",
    )
    (app / "config").mkdir()
    (app / "config" / "connections.json").write_text("[]")
    (app / "config" / "other.json").write_text("[]")
    monkeypatch.setattr(paths, "REPO", app)
    package.command(str(tmp_path / "app.zip"), as_json=False)
    with zipfile.ZipFile(tmp_path / "app.zip") as archive:
        names = archive.namelist()
        assert archive.read("config/connections.json") == b"[]"
    assert names.count("mcp_servers.yaml") == 1
    assert "config/other.json" not in names
    told = capsys.readouterr().out
    assert "config/connections.json: packed, because infra/azure/app-settings.json names it" in told


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("lost.json", "is not there"),
        ("tools", "is no file"),
        ("../outside.json", "below the app's folder"),
        ("/etc/hostname", "below the app's folder"),
        ("", "below the app's folder"),
        ("link.json", "is a link"),
        ("linked/there.json", "is a link"),
        ("tools/client.pem", "never packed"),
        (".env", "never packed"),
    ],
)
def test_a_named_file_that_cannot_be_packed_is_a_fault(tmp_path: Path, named: str, why: str) -> None:
    app = with_settings(tmp_path / "app", CONNECTIONS=f"@{named}")
    for path in ("outside.json", "elsewhere/there.json", "app/tools/client.pem", "app/.env"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("[]")
    (app / "link.json").symlink_to(tmp_path / "outside.json")
    (app / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DevError, match=why) as raised:
        package.configured(app)
    assert "CONNECTIONS" in raised.value.message


def test_a_broken_tool_is_packed_and_told_of(tmp_path: Path) -> None:
    app = checkout(tmp_path / "app")
    (app / "tools" / "broken").mkdir()
    (app / "tools" / "broken" / "__init__.py").write_text("def (:\n")
    made = package.make(app, tmp_path / "app.zip", ENVIRONMENT)
    assert [fault["folder"] for fault in made.faults] == ["broken"]
    assert "SyntaxError" in made.faults[0]["reason"]
