"""The machine's own programs, as the children of this app would find them.

A child gets the PATH of the app; no entry can set another (`environment`).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

#: Searched whatever PATH says: shells fall back on them.
SYSTEM_FOLDERS: Final = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")


def search_folders(root: Path) -> list[Path]:
    """The folders of PATH and those of the system. `root`: the app's folder, where children are started."""
    along = os.environ.get("PATH", os.defpath).split(os.pathsep)
    # An empty item is the current folder, as a relative one begins there.
    return list(dict.fromkeys(root / folder for folder in (*along, *SYSTEM_FOLDERS)))


def npm_folders(root: Path) -> list[Path]:
    """Where npm puts the programs of global packages, beside those of the system: its Node.js stands there."""
    folders = [Path(folder) for folder in SYSTEM_FOLDERS]
    path = os.pathsep.join(map(str, search_folders(root)))
    if (node := shutil.which("node", path=path)) is not None:
        folders += [Path(node).parent, Path(node).resolve().parent]
    return list(dict.fromkeys(folders))


def found(name: str, folders: list[Path], package: str | None = None) -> bool:
    """Whether one of the folders has a program of this name that no package manager has put there.

    Links to what npm has installed do not count: it is a package's own program. `package`: what pipx or uv has
    installed for this package does not count either.
    """
    endings = ("", *os.environ.get("PATHEXT", "").split(os.pathsep)) if os.name == "nt" else ("",)
    for folder in folders:
        for ending in endings:
            # Joined as text: the name may be anything.
            path = os.path.join(folder, name + ending)  # noqa: PTH118
            if os.path.isfile(path) and not _is_installed(path, package):  # noqa: PTH113
                return True
    return False


def _is_installed(path: str, package: str | None) -> bool:
    parts = Path(path).resolve().parts
    # …/uv/tools/<package>/bin/<program> and …/pipx/venvs/<package>/bin/<program>
    of_tool = len(parts) > 4 and parts[-4] in ("tools", "venvs") and parts[-3] == package
    return "node_modules" in parts or of_tool
