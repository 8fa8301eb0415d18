"""An app folder with other servers in its configuration, and its lock, made by `upstream sync`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ROOT / "tests" / "apps" / "upstream" / "plain.py"
DEMO = ROOT / "tests" / "apps" / "upstream" / "demo.py"
#: The name by which the tests' servers in Python are started, and the PATH on which it is found.
PYTHON = Path(sys.executable).name
COMMANDS = {
    "TOOLBOX_UPSTREAM_COMMANDS": PYTHON,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
}
_APP = """
import sys
from pathlib import Path

sys.path.append({root!r})

from tests.apps.toolbox import toolbox_with

app = toolbox_with(Path(__file__).parent / "tools").app
"""
_HOST = {
    "version": "2.0",
    "extensions": {"http": {"routePrefix": ""}, "queues": {"maxPollingInterval": "00:00:00.200"}},
}


def tool(name: str, properties: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A tool as a server lists it."""
    return {"name": name, "inputSchema": {"type": "object", "properties": dict(properties or {})}, **fields}


def npx(package: str, *args: str) -> dict[str, Any]:
    return {"command": "npx", "args": ["-y", package, *args]}


def python(*args: object, **fields: Any) -> dict[str, Any]:
    return {"command": PYTHON, "args": [str(arg) for arg in args], **fields}


@dataclass(frozen=True)
class Folder:
    """The folder of function_app.py."""

    path: Path
    settings: Mapping[str, str]

    @property
    def lock(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "upstream.lock.json").read_text())
        return found

    def configure(self, servers: Mapping[str, Any], project: str | None = None) -> None:
        place = self.path if project is None else self.path / "projects" / project
        place.mkdir(parents=True, exist_ok=True)
        (place / "mcp_servers.json").write_text(json.dumps({"mcpServers": servers}, indent=2))

    def plain(
        self, name: str, tools: Sequence[Mapping[str, Any]], prompts: Sequence[Any] = (), **fields: Any
    ) -> Any:
        """A `plain.py` server over stdio, whose tools stand in a file of the folder. Again: other tools."""
        file = self.path / f"{name}.tools.json"
        file.write_text(json.dumps({"tools": tools, "prompts": list(prompts)}))
        return python(PLAIN, file, **fields)

    def add_tool(self, name: str, code: str) -> None:
        """A tool of the app's own."""
        package = self.path / "tools" / name
        package.mkdir()
        (package / "__init__.py").write_text(code)

    def upstream(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`dev.py upstream ...` for this folder."""
        code = "import sys; from pathlib import Path; from shared.upstream.commands import main\n"
        code += "raise SystemExit(main(sys.argv[2:], Path(sys.argv[1])))"
        paths = os.pathsep.join([str(self.path), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-c", code, str(self.path), *arguments],
            cwd=self.path,
            env={**os.environ, **self.settings, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def sync(self) -> dict[str, Any]:
        """Makes the lock; what the command says. A fault is not told by the exit code only."""
        done = self.upstream("sync", "--json")
        assert done.stdout, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        assert (done.returncode == 1) is bool(said["faults"]), done
        return said


def app_folder(path: Path, **settings: str) -> Folder:
    path.mkdir(parents=True, exist_ok=True)
    (path / "function_app.py").write_text(_APP.format(root=str(ROOT)))
    (path / "host.json").write_text(json.dumps(_HOST))
    (path / "tools").mkdir()
    (path / "tools" / "__init__.py").touch()
    # npx looks here first, and then needs no network.
    (path / "node_modules").symlink_to(ROOT / "node_modules")
    return Folder(path, {**COMMANDS, **settings})


@contextmanager
def listening(*commands: Sequence[object]) -> Iterator[list[int]]:
    """Servers in processes of their own: the ports that they print."""
    with ExitStack() as stack:
        ports = []
        running = []
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, *map(str, command)],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PORT": "0"},
            )
            stack.callback(_end, process)
            running.append(process)
        for process in running:
            assert process.stdout is not None
            line = process.stdout.readline().strip()
            assert line.isdecimal(), "a server did not start"
            ports.append(int(line))
        yield ports


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def descendants(pid: int) -> set[int]:
    """The processes that have come from this one and run, by their parents' ids. Linux only."""
    children: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), set()).add(int(stat.parent.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = children.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
