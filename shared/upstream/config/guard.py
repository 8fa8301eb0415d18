"""Which programs an entry may start, and with which flags: it runs the package that it names, nothing else.

A name on the allow-list is worth nothing if its flags start something else. Tried with npm 10 and 11 and uv
0.13: `npx bash -c …`, `npx -p any-package sh -c …` and `uvx --from any-package terraform …` run the machine's
own programs, as both look along PATH; `npx -p any-package eval …` is a shell's own word; `npx -c` takes a shell
line; `docker run -v /:/host` has the whole machine. So the flags before the package are an allow-list too, each
with a check of its value where it needs one. What stands after the package or image is its own business, and so
is what a package does: whoever names it has chosen it. Registries and indexes name where a package comes from,
which is part of naming it, and stay allowed.

Programs that an operator has added by TOOLBOX_UPSTREAM_COMMANDS are taken with any arguments.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Final

from shared.upstream.config import programs
from shared.upstream.config.faults import shown
from shared.upstream.config.flags import DOCKER_RUN, NPX, UVX, walk


class CommandType(StrEnum):
    """What every entry may start."""

    NPX = "npx"
    UVX = "uvx"
    DOCKER = "docker"


#: Programs that run what their arguments say, wherever they are installed.
_LAUNCHERS: Final = """
    ash awk bash bun bunx busybox cmd cscript csh curl dash deno docker doas env expect find fish gawk git
    gdb ipython java ksh lua make mawk mksh nc ncat nerdctl nice node nodejs nohup npm npx osascript perl
    php pip pipx pnpm podman powershell pwsh pypy rsh ruby rundll32 screen script sed setsid sh socat ssh
    strace stdbuf su sudo systemd-run tclsh timeout tmux toybox ts-node tsx unshare uv uvx vi vim wget
    wscript wsl xargs yarn zsh zx
"""
_LAUNCHER_NAMES: Final = frozenset(_LAUNCHERS.split())
#: Words that a shell takes for its own before it looks for a program; npx calls a program by a shell.
_BUILTINS: Final = """
    alias assoc autoload bg bind break builtin caller call cd chdir command compgen complete compopt continue
    coproc declare dirs disown echo emulate enable eval exec exit export false fc fg ftype getopts goto hash
    help history jobs kill let local logout mapfile noglob popd print printf pushd pwd read readarray readonly
    return set shift shopt source start suspend test times trap true type typeset ulimit umask unalias unset
    wait whence zmodload
"""
_BUILTIN_NAMES: Final = frozenset(_BUILTINS.split())
#: What programs of packages are called. Nothing here is a sign of a shell, in Windows' either.
_PROGRAM = re.compile(r"[\w@+](?:[\w@+.-]*[\w@+-])?")
#: The same with a version in the name.
_VERSIONED = re.compile(r"(?:python|pypy|perl|ruby|php|lua|node)[0-9.]*[wd]?")


def is_launcher(name: str) -> bool:
    """Whether a program of this name runs whatever it is told, wherever it is: a shell, an interpreter."""
    plain = re.sub(r"\.(?:exe|cmd|bat|com|ps1)$", "", name.lower())
    return plain in _LAUNCHER_NAMES or _VERSIONED.fullmatch(plain) is not None


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
        return _program_faults("npx", rest[0], packages, root)
    # `npx` looks along PATH for what has the form of a file before it asks the registry.
    if rest[0].startswith((".", "/", "~")) or "\\" in rest[0] or ".." in rest[0].split("/"):
        return ["npx must be given a package, not a path; write file:./folder for a package of your own"]
    # `npx` looks for a global package's program before it asks the registry, and takes any that is there.
    name = _base_name(rest[0])
    if programs.found(name, programs.npm_folders(root)):
        return [_launcher_fault("npx")]
    return _launcher_faults("npx", name)


def _uvx_faults(args: list[str], root: Path) -> list[str]:
    faults, given, rest = walk(UVX, args, root)
    if faults:
        return faults
    if not rest:
        return ["uvx needs a package to run"]
    if packages := given.get("--from", []):
        return _program_faults("uvx", rest[0], packages, root)
    if rest[0].startswith((".", "/", "~")) or "\\" in rest[0]:
        return ["uvx must be given a package, not a path; use --from with the path"]
    # uvx runs nothing but the package's own program here; it only knows `python` as well.
    return _launcher_faults("uvx", _base_name(rest[0]))


def _program_faults(command: str, program: str, packages: list[str], root: Path) -> list[str]:
    """The program that `-p` or `--from` let an entry choose: it must be one of the package's own.

    Both look along PATH when the package has no such program. What it has is not known here, so a name that
    PATH has too is refused, the package's own name as well: a package may be called like a program of the
    machine and have none. A program there that the package itself has installed is let through.
    """
    if not _PROGRAM.fullmatch(program):
        return [
            f"{command} must be given the name of one of the package's programs, not a path or anything else"
        ]
    if is_launcher(program) or (command == CommandType.NPX and program.lower() in _BUILTIN_NAMES):
        return [_launcher_fault(command)]
    own = {_base_name(package).rpartition("/")[2] for package in packages}
    if not programs.found(program, programs.search_folders(root), package=program if program in own else None):
        return []
    fault = _launcher_fault(command)
    flag = "--from" if command == CommandType.UVX else "-p"
    shown_name = shown(program)
    remedy = f"leave {flag} out" if program in own else "choose another of the package's programs"
    return [f"{fault}; '{shown_name}' is a program of this machine too, found along PATH: {remedy}"]


def _base_name(package: str) -> str:
    """A package without its version: `@scope/name` of `@scope/name@1.2`, `name` of `name[extra]==1`."""
    return package[:1] + re.split(r"[@=<>~!\[ ]", package[1:], maxsplit=1)[0]


def _launcher_faults(command: str, name: str) -> list[str]:
    return [_launcher_fault(command)] if is_launcher(name) else []


def _launcher_fault(command: str) -> str:
    return f"{command} must run a package's own program, not a shell, an interpreter or a tool of the system"


def _docker_faults(args: list[str], root: Path) -> list[str]:
    if args[:2] == ["container", "run"]:
        args = args[1:]
    if args[:1] != ["run"]:
        return ["docker may only be used as 'docker run', with its flags after 'run'"]
    faults, _, rest = walk(DOCKER_RUN, args[1:], root)
    if not faults and not rest:
        return ["docker run needs an image"]
    return faults
