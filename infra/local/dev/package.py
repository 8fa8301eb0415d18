"""`dev.py package`: the zip that is deployed, with what runs and nothing else.

    function_app.py  host.json  requirements.txt  shared/  tools/
    tools.lock.json                    made here, see `shared.lockfile`
    upstream.lock.json, mcp_servers.*, projects/*/mcp_servers.*     where they are there
    what `@path` values of infra/azure/app-settings.json name       see `configured`
    __pycache__/                       bytecode of all of it, which Python uses without a look at the source

The same files give the same bytes: sorted names, one date, one set of permissions. Python packages are not in
it: the platform's remote build installs requirements.txt.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from infra.local.dev import paths
from infra.local.dev.console import DevError, paint, say
from infra.local.dev.processes import CommandError, capture

_REQUIRED = ("function_app.py", "host.json", "requirements.txt", "shared", "tools")
_OPTIONAL = ("upstream.lock.json", "mcp_servers.json", "mcp_servers.yaml", "mcp_servers.yml")
_PROJECT_FILES = "projects/*/mcp_servers.*"
_LOCK_FILE = "tools.lock.json"
_APP_SETTINGS = "infra/azure/app-settings.json"
#: Settings that may be `@` and a file's path, which begins at the app's folder (docs/settings.md).
_FILE_SETTINGS = ("CONNECTIONS", "MCP_SERVERS", "TOOLBOX_UPSTREAM_POLICY")
#: Keys and certificates belong into the vault, whoever put them beside a tool.
_SECRETS = frozenset({".pem", ".key", ".pfx", ".p12", ".env"})
#: What a reference of the vault begins with: `@` again, and no file.
_REFERENCE = "@microsoft.keyvault("
#: The earliest that a zip can say.
_DATE = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS = 0o100644
_RUNTIME = re.compile(r"^azure-functions-runtime==\S+", re.MULTILINE)
_BYTECODE = Path(__file__).with_name("bytecode.py")


@dataclass(frozen=True)
class Package:
    """What was made. `faults`: what of the app is left out, as its log will say at each start."""

    path: str
    bytes: int
    files: int
    sha256: str
    tools: int
    resources: int
    prompts: int
    faults: list[dict[str, str]]
    #: App settings that names of tools are made of: the package was made for the values that they had here.
    settings: list[str]
    #: Files beside tools that are never packed.
    left_out: list[str]
    #: Files that settings of the deployment name.
    configured: list[str]


def command(output: str | None, *, as_json: bool) -> int:
    """Make the package of this checkout and say what is in it. Raises `DevError`."""
    made = make(paths.REPO, Path(output).resolve() if output else paths.PACKAGE, os.environ)
    if as_json:
        say(json.dumps(asdict(made)))
        return 0
    for fault in made.faults:
        say(paint(f"tools/{fault['folder']}: left out: {fault['reason']}", "yellow"))
    for name in made.left_out:
        say(paint(f"{name}: not packed: keys and certificates belong into the vault", "yellow"))
    for name in made.configured:
        say(f"{name}: packed, because {_APP_SETTINGS} names it")
    if made.settings:
        names = ", ".join(made.settings)
        say(paint(f"Names of tools are made of {names}: with other values there, the start is slow.", "yellow"))
    entries = f"{made.tools} tools, {made.resources} resources, {made.prompts} prompts"
    say(f"{made.path}: {made.bytes / 1024:.0f} KiB, {made.files} files, {entries}")
    say(f"sha256 {made.sha256}")
    return 0


def write_lock(environ: Mapping[str, str] = os.environ) -> int:
    """`dev.py lock --tools`: tools.lock.json of the checkout. Raises `DevError`."""
    told = _lock(paths.REPO, environ)
    say(f"{_LOCK_FILE}: {told['tools']} tools. Any change of tools/ or shared/ voids it.")
    return 0


def make(root: Path, output: Path, environ: Mapping[str, str]) -> Package:
    """The package of the app in `root`. The file is replaced at the end, or not at all. Raises `DevError`."""
    left_out: list[str] = []
    named = configured(root)
    with tempfile.TemporaryDirectory(prefix="toolbox-package-") as temporary:
        stage = Path(temporary).resolve() / "app"
        for name in sorted({*selected(root, left_out), *named}):
            target = stage / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)
        _check_requirements(stage)
        told = _lock(stage, environ, "--packaged")
        _run(["-I", str(_BYTECODE), str(stage)], stage, environ, "The modules could not be compiled.")
        fresh = Path(temporary) / "app.zip"
        files = _zip(stage, fresh)
        output.parent.mkdir(parents=True, exist_ok=True)
        beside = output.with_name(output.name + ".new")
        shutil.copyfile(fresh, beside)
        beside.replace(output)
    content = output.read_bytes()
    return Package(
        str(output),
        len(content),
        files,
        hashlib.sha256(content).hexdigest(),
        left_out=left_out,
        configured=named,
        **told,
    )


def selected(root: Path, left_out: list[str]) -> list[str]:
    """Names below `root` of what is packed. Raises `DevError` for what is missing, and for links."""
    missing = [name for name in _REQUIRED if not (root / name).exists()]
    if missing:
        raise DevError(f"{root} has no {', '.join(missing)}: it is no app of this kind.")
    names = [name for name in (*_REQUIRED, *_OPTIONAL) if (root / name).is_file()]
    names += [path.relative_to(root).as_posix() for path in root.glob(_PROJECT_FILES) if path.is_file()]
    for folder in ("shared", "tools"):
        names += _below(root, root / folder, left_out)
    return sorted(names)


def configured(root: Path) -> list[str]:
    """Names below `root` of the files that settings of the deployment are read from. Raises `DevError`."""
    path = root / _APP_SETTINGS
    if not path.exists():
        return []
    try:
        given = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DevError(f"{_APP_SETTINGS} cannot be read: {type(error).__name__}.") from error
    if not isinstance(given, dict):
        raise DevError(f"{_APP_SETTINGS} must be an object of names and texts.")
    texts = {name: str(given.get(name, "")).strip() for name in _FILE_SETTINGS}
    return sorted(
        {
            _configured_file(root, name, text[1:].strip())
            for name, text in texts.items()
            if text.startswith("@") and not text.casefold().startswith(_REFERENCE)
        }
    )


def _configured_file(root: Path, setting: str, text: str) -> str:
    """The name below `root` of the regular file that a setting names. Raises `DevError`."""
    path = PurePosixPath(text)
    place = f"{_APP_SETTINGS}: {setting}"
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise DevError(f"{place} must name a file below the app's folder: a package holds nothing else.")
    if any((root / part).is_symlink() for part in (path, *path.parents[:-1])):
        raise DevError(f"{place}: {path} is a link, which a package cannot hold.", "Put the file itself there.")
    if not (root / path).is_file():
        raise DevError(f"{place}: {path} is not there, or is no file: the deployed app would not start.")
    if path.suffix.lower() in _SECRETS or path.name in (*_SECRETS, "local.settings.json"):
        raise DevError(f"{place}: {path} is never packed: secrets belong into the vault.")
    return path.as_posix()


def _below(root: Path, folder: Path, left_out: list[str]) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            raise DevError(f"{name} is a link, which a package cannot hold.", "Put the file itself there.")
        if path.is_dir():
            yield from _below(root, path, left_out)
        elif path.suffix.lower() in _SECRETS:
            left_out.append(name)
        else:
            yield name


def _check_requirements(stage: Path) -> None:
    if not _RUNTIME.search((stage / "requirements.txt").read_text("utf-8")):
        raise DevError(
            "requirements.txt does not pin azure-functions-runtime: the platform would choose a version.",
            "Name it in requirements.in, like azure-functions-runtime==1.3.0, then run `python3 dev.py lock`.",
        )


def _lock(root: Path, environ: Mapping[str, str], *options: str) -> dict[str, Any]:
    """Have the app write its lock file; what it tells of it."""
    command = ["-m", "shared.lockfile.writing", *options]
    told = _run(command, root, environ, f"{_LOCK_FILE} could not be made.")
    report: dict[str, Any] = json.loads(told.splitlines()[-1])
    return report


def _run(arguments: list[str], folder: Path, environ: Mapping[str, str], failure: str) -> str:
    # A seed of its own would order sets in bytecode anew each time, and bytecode of tools is made below.
    fixed = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
    try:
        return capture([str(paths.VENV_PYTHON), *arguments], cwd=str(folder), env={**environ, **fixed})
    except CommandError as error:
        raise DevError(
            failure, "`python3 dev.py validate` tells more of tools.", details=error.output
        ) from error


def _zip(stage: Path, path: Path) -> int:
    """How many files there are."""
    files = sorted((file.relative_to(stage).as_posix(), file) for file in stage.rglob("*") if file.is_file())
    with zipfile.ZipFile(path, "w") as archive:
        for name, file in files:
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3
            info.external_attr = _PERMISSIONS << 16
            archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return len(files)
