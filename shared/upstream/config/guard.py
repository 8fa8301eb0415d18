"""Which programs an entry may start, and with which flags: it runs the package that it names, nothing else.

A name on the allow-list is worth nothing if its flags start something else. Tried with npm 10 and uv 0.13:
`npx bash -c …`, `npx -p any-package sh -c …` and `uvx --from any-package bash -c …` run the machine's own
shell, as both look along PATH; `npx -c` takes a shell line; `docker run -v /:/host` has the whole machine. So
the flags before the package are an allow-list too, each with a check of its value where it needs one. What
stands after the package or image is its own business, and so is what a package does: whoever names it has
chosen it. Registries and indexes name where a package comes from, which is part of naming it, and stay
allowed.

Programs that an operator has added by TOOLBOX_UPSTREAM_COMMANDS are taken with any arguments.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from shared.upstream.config.flags import DOCKER_RUN, NPX, UVX, walk


class CommandType(StrEnum):
    """What every entry may start."""

    NPX = "npx"
    UVX = "uvx"
    DOCKER = "docker"


_SYSTEM_FOLDERS: Final = ("/bin", "/sbin", "/usr/bin", "/usr/sbin")
#: Programs that run what their arguments say, wherever they are installed.
_LAUNCHERS: Final = """
    ash awk bash bun bunx busybox cmd cscript csh curl dash deno docker doas env expect find fish gawk git
    gdb ipython java ksh lua make mawk mksh nc ncat nerdctl nice node nodejs nohup npm npx osascript perl
    php pip pipx pnpm podman powershell pwsh pypy rsh ruby rundll32 screen script sed setsid sh socat ssh
    strace stdbuf su sudo systemd-run tclsh timeout tmux toybox ts-node tsx unshare uv uvx vi vim wget
    wscript wsl xargs yarn zsh zx
"""
_LAUNCHER_NAMES: Final = frozenset(_LAUNCHERS.split())
#: The same with a version in the name.
_VERSIONED = re.compile(r"(?:python|pypy|perl|ruby|php|lua|node)[0-9.]*[wd]?")


def is_launcher(name: str, *, on_machine: bool = True) -> bool:
    """Whether a program of this name runs whatever it is told: a shell, an interpreter, a tool of the system.

    `on_machine`: the system's own programs count as well, whatever they do.
    """
    plain = re.sub(r"\.(?:exe|cmd|bat|com|ps1)$", "", name.lower())
    if plain in _LAUNCHER_NAMES or _VERSIONED.fullmatch(plain):
        return True
    for folder in _SYSTEM_FOLDERS if on_machine else ():
        path = os.path.join(folder, name)  # noqa: PTH118 - the name may be anything
        # npm puts links to installed packages there.
        if os.path.exists(path) and "node_modules" not in os.path.realpath(path):  # noqa: PTH110
            return True
    return False


def allowed(extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (*(command.value for command in CommandType), *extra)


def argument_faults(command: str, args: list[str], root: Path) -> list[str]:
    """What is wrong with the arguments of npx, uvx or docker; nothing for an operator's own program."""
    match command:
        case CommandType.NPX:
            return _npx_faults(args, root)
        case CommandType.UVX:
            return _uvx_faults(args, root)
        case CommandType.DOCKER:
            return _docker_faults(args, root)
        case _:
            return []


def _npx_faults(args: list[str], root: Path) -> list[str]:
    faults, given, rest = walk(NPX, args, root)
    if faults:
        return faults
    if not rest:
        # Not even harmless: it starts a shell that reads what is meant for the server.
        return ["npx needs a package to run; without one it opens a shell"]
    if packages := given.get("-p", []) + given.get("--package", []):
        return _program_faults("npx", rest[0], packages)
    # `npx` looks along PATH for what has the form of a file before it asks the registry.
    if rest[0].startswith((".", "/", "~")) or "\\" in rest[0] or ".." in rest[0].split("/"):
        return ["npx must be given a package, not a path; write file:./folder for a package of your own"]
    return _launcher_faults("npx", _base_name(rest[0]))


def _uvx_faults(args: list[str], root: Path) -> list[str]:
    faults, given, rest = walk(UVX, args, root)
    if faults:
        return faults
    if not rest:
        return ["uvx needs a package to run"]
    if packages := given.get("--from", []):
        return _program_faults("uvx", rest[0], packages)
    if rest[0].startswith((".", "/", "~")) or "\\" in rest[0]:
        return ["uvx must be given a package, not a path; use --from with the path"]
    # uvx runs nothing but the package's own program here; it only knows `python` as well.
    return _launcher_faults("uvx", _base_name(rest[0]), on_machine=False)


def _program_faults(command: str, program: str, packages: list[str]) -> list[str]:
    """The program that `-p` or `--from` let an entry choose: it must be one of the package's own.

    Both look along PATH when the package has no such program. One that is called like its package is taken to
    be the package's.
    """
    if "/" in program or "\\" in program or program.startswith("."):
        return [f"{command} must be given the name of one of the package's programs, not a path"]
    own = {_base_name(package).rpartition("/")[2] for package in packages}
    return _launcher_faults(command, program, on_machine=program not in own)


def _base_name(package: str) -> str:
    """A package without its version: `@scope/name` of `@scope/name@1.2`, `name` of `name[extra]==1`."""
    return package[:1] + re.split(r"[@=<>~!\[ ]", package[1:], maxsplit=1)[0]


def _launcher_faults(command: str, name: str, *, on_machine: bool = True) -> list[str]:
    if is_launcher(name, on_machine=on_machine):
        return [
            f"{command} must run a package's own program, not a shell, an interpreter or a tool of the system"
        ]
    return []


def _docker_faults(args: list[str], root: Path) -> list[str]:
    if args[:2] == ["container", "run"]:
        args = args[1:]
    if args[:1] != ["run"]:
        return ["docker may only be used as 'docker run', with its flags after 'run'"]
    faults, _, rest = walk(DOCKER_RUN, args[1:], root)
    if not faults and not rest:
        return ["docker run needs an image"]
    return faults
