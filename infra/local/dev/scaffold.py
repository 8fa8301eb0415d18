"""`dev.py new`: a tool that works, with its test, for an author to change."""

from __future__ import annotations

import builtins
import contextlib
import json
import keyword
import re
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.local.dev import paths
from infra.local.dev.console import DevError, headline, last_lines, say

TEMPLATES: Final = Path(__file__).parent / "templates"
#: So that the generated lines stay within the project's line length.
MAX_NAME: Final = 40
LEGAL: Final = (
    f"1 to {MAX_NAME} of a-z, 0-9, and single _ or - between them, beginning with a letter, "
    "for instance word_count or word-count"
)
_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
#: A module cannot be called like a keyword; a function should not be called like what its own module uses.
_TAKEN_IN_PYTHON: Final = frozenset(
    {*keyword.kwlist, *(name.lower() for name in dir(builtins)), "annotations", "tool"}
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be made. `files`: path below the root -> text."""

    tool: str
    folder: Path
    test: Path
    files: dict[Path, str]


def new(name: str, *, contract: bool) -> int:
    """Make a tool in this checkout and say how to go on. Raises `DevError`."""
    planned = plan(name, contract=contract)
    taken = tool_names(paths.REPO)
    made = create(planned, paths.REPO, taken)
    headline(f"Made the tool {planned.tool}")
    for path in made:
        say(f"  {path.as_posix()}")
    headline("Next")
    say(f"  python3 dev.py validate {planned.folder.as_posix()}")
    say(f"  python3 dev.py test {planned.test.as_posix()}")
    say("  python3 dev.py run")
    return 0


def plan(name: str, *, contract: bool) -> Plan:
    """What a tool of this name consists of. Raises `DevError` for a name that cannot be used."""
    folder = _folder_of(name)
    # As `shared.contract.names` makes it of the folder's name.
    tool = folder.replace("_", "-") if contract else folder
    home, test = Path("tools") / folder, Path("tests") / "tools" / f"test_{folder}.py"
    if contract:
        templates = {
            home / "pptb.config.json": "contract.json.txt",
            home / "headless.py": "contract.py.txt",
            test: "contract_test.py.txt",
        }
    else:
        templates = {home / "__init__.py": "decorated.py.txt", test: "decorated_test.py.txt"}
    files = {path: _filled(template, folder, tool) for path, template in templates.items()}
    return Plan(tool, home, test, files)


def create(planned: Plan, root: Path, taken: Collection[str]) -> list[Path]:
    """Write the files; their paths below `root`. Overwrites nothing, and leaves nothing half made.

    `taken`: names of the tools that there are. Raises `DevError`.
    """
    # Some file systems, and the host's look-up of tools, do not tell upper case from lower.
    for there in _children(root / planned.folder.parent):
        if there.name.lower().replace("-", "_") == planned.folder.name:
            raise DevError(f"tools/{there.name} is there already.", "Choose another name, or remove it first.")
    for there in _children(root / planned.test.parent):
        if there.name.lower() == planned.test.name:
            raise DevError(
                f"{planned.test.parent.as_posix()}/{there.name} is there already.",
                "Choose another name, or remove it first.",
            )
    clash = next((name for name in taken if name.lower() == planned.tool), None)
    if clash is not None:
        raise DevError(
            f"There is a tool called '{clash}' already.",
            "Choose another name. `python3 dev.py validate --json` lists the names in use.",
        )
    with contextlib.ExitStack() as undo:
        for path, text in planned.files.items():
            for folder in _missing(root, path.parent):
                folder.mkdir()
                undo.callback(_remove_folder, folder)
            with (root / path).open("x", encoding="utf-8") as file:
                undo.callback((root / path).unlink)
                file.write(text)
        undo.pop_all()
    return list(planned.files)


def tool_names(root: Path) -> list[str]:
    """The names of the tools below `root`, and of the app's own.

    Asks a process of its own, since tools are imported for that.
    """
    command = [str(paths.VENV_PYTHON), "-m", "shared.validate", "--json", "tools"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    try:
        # The last line, since a tool may print something while it is imported.
        told = json.loads(done.stdout.splitlines()[-1])
        return [str(name) for key in ("tools", "builtIn") for name in told[key]]
    except (ValueError, LookupError, TypeError):
        raise DevError(
            "The tools that there are could not be read.",
            "See what `python3 dev.py validate` says, and mend that first.",
            details=last_lines(done.stderr),
        ) from None


def _folder_of(name: str) -> str:
    shown = name[:80]
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise DevError(f"{shown!r} cannot be the name of a tool.", f"Legal are {LEGAL}.")
    folder = name.replace("-", "_")
    if folder in _TAKEN_IN_PYTHON:
        raise DevError(
            f"{shown!r} cannot be the name of a tool: it means something in Python already.",
            f"Add a word, for instance my_{folder}. Legal are {LEGAL}.",
        )
    return folder


def _filled(template: str, folder: str, tool: str) -> str:
    text = (TEMPLATES / template).read_text("utf-8")
    return text.replace("<folder>", folder).replace("<tool>", tool)


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _missing(root: Path, folder: Path) -> Iterator[Path]:
    """The folders between `root` and `folder` that are not there yet, the outer ones first."""
    for parent in [*reversed(folder.parents), folder]:
        if not (root / parent).is_dir():
            yield root / parent


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
