"""The flags that npx, uvx and docker may be given, read as those programs read them.

A flag that is not listed is refused. What it would do is then no question, and a version of tomorrow with a new
flag opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from shared.upstream.config.mounts import mount_fault, volume_fault

#: (a flag's value, the app's folder) -> why it is refused; None: it is legal.
type Check = Callable[[str, Path], str | None]

_PYTHON_VERSION = re.compile(
    r"(?:(?:cpython|pypy|graalpy|python)[-@]?)?(?:[<>=~!]{1,2})?[0-9][0-9.a-z,<>=~!+*]*"
)


def _python_fault(value: str, root: Path) -> str | None:
    return None if _PYTHON_VERSION.fullmatch(value) else "must be a version like 3.13, not a program"


def _network_fault(value: str, root: Path) -> str | None:
    return "must not join another container" if value.lower().startswith("container:") else None


def _security_fault(value: str, root: Path) -> str | None:
    legal = ("no-new-privileges", "no-new-privileges:true", "no-new-privileges=true")
    return None if value in legal else "may only be no-new-privileges"


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that are passed on. `values`: flag -> the check of its value, if it needs one."""

    switches: frozenset[str]
    values: Mapping[str, Check | None] = field(default_factory=dict)
    #: `-it` for `-i -t`, and `-eNAME` for `-e NAME`.
    clusters: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _unchecked(text: str) -> dict[str, Check | None]:
    return dict.fromkeys(_words(text))


NPX: Final = Flags(
    _words("""
        -y --yes --no --no-install -q --quiet -s --silent --offline --prefer-offline --prefer-online
        --ignore-scripts --verbose --no-audit --no-fund --no-update-notifier --no-progress
    """),
    _unchecked("-p --package --registry --loglevel"),
)
UVX: Final = Flags(
    _words("""
        -q --quiet -v --verbose --offline -n --no-cache --no-cache-dir --isolated --refresh -U --upgrade
        --reinstall --no-progress --native-tls --system-certs --no-build --no-binary --no-index --no-config
        --no-env-file --managed-python --no-managed-python --no-python-downloads --compile-bytecode
    """),
    {
        **_unchecked("""
            --from --with -w --index --default-index -i --index-url --extra-index-url -f --find-links
            --index-strategy --resolution --prerelease -P --upgrade-package --refresh-package
            --reinstall-package --exclude-newer --link-mode --color --no-build-package --no-binary-package
            --python-preference --torch-backend
        """),
        "-p": _python_fault,
        "--python": _python_fault,
    },
    clusters=True,
)
DOCKER_RUN: Final = Flags(
    _words("-i --interactive -t --tty --rm --init --read-only -q --quiet --no-healthcheck --sig-proxy"),
    {
        **_unchecked("""
            -e --env --name -h --hostname -u --user -w --workdir -l --label -m --memory --memory-swap --cpus -c
            --cpu-shares --pids-limit --shm-size --platform --pull --add-host --dns --dns-search --entrypoint -p
            --publish --expose --tmpfs --stop-signal --stop-timeout --ulimit --cap-drop --gpus --network-alias
            --domainname --ip
        """),
        "-v": volume_fault,
        "--volume": volume_fault,
        "--mount": mount_fault,
        "--network": _network_fault,
        "--net": _network_fault,
        "--security-opt": _security_fault,
    },
    clusters=True,
)


def walk(flags: Flags, args: list[str], root: Path) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """(faults, flag -> its values, what stands after them). Stops at the first fault: beyond it nothing is
    sure.

    No value of a flag is repeated: it may be a secret.
    """
    given: dict[str, list[str]] = {}
    index = 0
    while index < len(args):
        item = args[index]
        if item == "--":
            return [], given, args[index + 1 :]
        if not item.startswith("-") or item == "-":
            break
        index += 1
        for name, value in _expanded(flags, item):
            if name in flags.switches:
                if value not in (None, "true", "false"):
                    return [f"{name} takes no value"], given, []
                continue
            if name not in flags.values:
                return [_unknown(name)], given, []
            if value is None:
                if index >= len(args):
                    return [f"{name} needs a value"], given, []
                value, index = args[index], index + 1
            check = flags.values[name]
            if check is not None and (fault := check(value, root)) is not None:
                return [f"{name}: {fault}"], given, []
            given.setdefault(name, []).append(value)
    return [], given, args[index:]


def _expanded(flags: Flags, item: str) -> list[tuple[str, str | None]]:
    """(flag, its value if it is in the same item) for each flag in an item."""
    name, equals, value = item.partition("=")
    if item.startswith("--") or not flags.clusters or len(name) == 2:
        return [(name, value if equals else None)]
    found: list[tuple[str, str | None]] = []
    for position, letter in enumerate(item[1:], start=1):
        flag = f"-{letter}"
        if flag in flags.values:
            rest = item[position + 1 :]
            found.append((flag, rest.removeprefix("=") if rest else None))
            return found
        found.append((flag, None))
        if flag not in flags.switches:
            return found
    return found


def _unknown(name: str) -> str:
    shown = name if re.fullmatch(r"--?[A-Za-z][A-Za-z0-9-]{0,40}", name) else "a flag"
    return f"{shown} is not passed on: only flags that cannot make it run anything but what the entry names are"
