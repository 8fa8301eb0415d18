"""What a `docker run` entry may mount from this machine.

A server in a container is given folders of data; that is normal use (`-v ./data:/data`). A mount that lets the
container change what runs outside of it is not: the system's folders, docker's own socket, a home folder with
its start-up files, the app. Links are followed before a path is judged.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Final

_SYSTEM: Final = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
    "/var/lib", "/var/run", "/var/spool", "/Library", "/System", "/private/etc", "/private/var/run",
)  # fmt: skip
_SOCKETS: Final = ("docker.sock", "containerd.sock", "podman.sock", "docker.raw.sock", "crio.sock")
_VOLUME_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]")
_MOUNT_KEYS: Final = frozenset(
    {
        "type", "source", "src", "target", "dst", "destination", "readonly", "ro", "tmpfs-size", "tmpfs-mode",
        "volume-nocopy",
    }
)  # fmt: skip


def volume_fault(value: str, root: Path) -> str | None:
    """Why a value of `-v` is refused. `root`: the app's folder, which may be mounted read-only at most."""
    if _WINDOWS.match(value) or "\\" in value:
        return "a Windows path cannot be judged; use --mount with a path of this machine"
    source, *others = value.split(":")
    if not others:
        # A volume without a name, made for this container.
        return None
    if _VOLUME_NAME.fullmatch(source):
        return None
    options = others[1].split(",") if len(others) > 1 else []
    return _bind_fault(source, root, readonly="ro" in options or "readonly" in options)


def mount_fault(value: str, root: Path) -> str | None:
    """Why a value of `--mount` is refused."""
    if '"' in value or "\\" in value:
        return "quotes and backslashes are not passed on"
    given = [part.partition("=")[::2] for part in value.split(",")]
    unknown = next((key for key, _ in given if key.strip().lower() not in _MOUNT_KEYS), None)
    if unknown is not None or len({key for key, _ in given}) != len(given):
        return "only type, source, target and readonly (and the size of a tmpfs) are passed on, each once"
    options = {key.strip().lower(): text.strip() for key, text in given}
    kind = options.get("type", "volume").lower()
    source = options.get("source", options.get("src", ""))
    if "source" in options and "src" in options:
        return "source and src are the same; give one"
    if kind == "tmpfs":
        return None
    if kind == "volume":
        return None if not source or _VOLUME_NAME.fullmatch(source) else "the name of a volume is not legal"
    if kind != "bind":
        return "the type must be bind, volume or tmpfs"
    flag = options["readonly"] if "readonly" in options else options.get("ro", "false")
    return _bind_fault(source, root, readonly=flag.lower() in ("", "true", "1"))


def _bind_fault(source: str, root: Path, *, readonly: bool) -> str | None:
    if not source or source.startswith("~") or "\0" in source:
        return "a folder to mount must be a path; ~ is not expanded, use ${HOME}"
    given = Path(os.path.normpath(root / source))
    return next(
        (
            fault
            for path in (given, Path(os.path.realpath(given)))
            if (fault := _path_fault(path, root, readonly))
        ),
        None,
    )


def _path_fault(path: Path, root: Path, readonly: bool) -> str | None:
    plain = PurePosixPath(path.as_posix())
    if plain.name in _SOCKETS:
        return "the socket of a container engine lets a container start programs outside of itself"
    if any(plain == PurePosixPath(top) or PurePosixPath(top) in plain.parents for top in _SYSTEM):
        return "a folder of the system must not be mounted"
    app = root.resolve()
    home = Path(os.path.realpath(Path("~").expanduser()))
    holds = [
        top for top in (PurePosixPath("/etc"), app, home) if path == Path(top) or path in Path(top).parents
    ]
    if any(top != app for top in holds) or (holds and not readonly):
        return (
            "a folder that holds the system, a home folder or the app must not be mounted; name the one needed"
        )
    if path.is_relative_to(home) and path.relative_to(home).parts[0].startswith("."):
        return "hidden files of a home folder must not be mounted"
    if path.is_relative_to(app) and not readonly:
        return "a folder of the app may be mounted read-only only"
    return None
