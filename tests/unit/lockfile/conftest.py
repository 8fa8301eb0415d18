"""An app in a folder: the repository's code with tools that a test writes, run in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.settings import PLACEHOLDER_SEAL_KEY

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {
    "AzureWebJobsStorage": "UseDevelopmentStorage=true",
    "MCP_AUTH_TOKEN": "some-token",
    "TOOLBOX_SEAL_KEY": PLACEHOLDER_SEAL_KEY,
}
_CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("TOOLBOX_", "MCP_", "AzureWebJobs", "CONNECTIONS", "OTEL_", "APPLICATIONINSIGHTS"))
}
#: Prints what a script gives as JSON, and what the app logged on stderr.
_PROLOGUE = "import json, logging, sys\nlogging.basicConfig(level=logging.WARNING, format='%(message)s')\n"


@dataclass(frozen=True)
class LockedApp:
    """`folder`: function_app.py, host.json, requirements.txt, a link to shared/, and tools/."""

    folder: Path

    def write(self, name: str, text: str) -> None:
        path = self.folder / "tools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def lock(self, *options: str, **settings: str) -> dict[str, Any]:
        """Writes the lock file; what it told."""
        told: dict[str, Any] = json.loads(
            self._run(["-m", "shared.lockfile.writing", *options], settings).stdout
        )
        return told

    def run(self, script: str, **settings: str) -> tuple[Any, str]:
        """(what the script's last line, an expression, gives; the log), in a new process of the app."""
        *lines, last = script.strip().splitlines()
        text = _PROLOGUE + "\n".join([*lines, f"sys.stdout.write('\\n' + json.dumps({last}))"])
        done = self._run(["-c", text], settings)
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    def _run(self, arguments: list[str], settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {**_CLEAN, **ENVIRONMENT, **settings, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture
def app(tmp_path: Path) -> LockedApp:
    """Without tools and without a lock file."""
    for name in ("function_app.py", "host.json", "requirements.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "shared").symlink_to(ROOT / "shared", target_is_directory=True)
    (tmp_path / "tools").mkdir()
    return LockedApp(tmp_path)


@pytest.fixture
def greet(app: LockedApp) -> Callable[..., None]:
    """Writes the tool `greet`, whose module leaves a mark when it is imported."""

    def write(description: str = "Greets.", name: str = "greet") -> None:
        app.write(
            "greet/__init__.py",
            "import sys\n"
            "from shared.tool import prompt, resource, tool\n"
            "sys.greet_was_imported = True\n"
            f"@tool(name={name!r}, execution_modes=('inline', 'headless'))\n"
            "def greet(who: str = 'you') -> dict[str, str]:\n"
            f"    {description!r}\n"
            "    return {'text': f'Hello {who}'}\n"
            "@resource(uri='notes://{name}')\n"
            "def note(name: str) -> str:\n"
            "    'A note.'\n"
            "    return f'note {name}'\n"
            "@prompt\n"
            "def review(code: str | None = None) -> str:\n"
            "    'Reviews.'\n"
            "    return f'Review {code}'\n",
        )

    return write


@pytest.fixture(scope="session")
def locks() -> dict[tuple[str, ...], bytes]:
    """Options -> the lock file that was written with them, of an app that has the tool `greet` only."""
    return {}


@pytest.fixture
def locked(
    app: LockedApp, greet: Callable[..., None], locks: dict[tuple[str, ...], bytes]
) -> Callable[..., None]:
    """Writes the tool `greet` and the lock file of it, which is made once: it says the same in every folder."""

    def write(*options: str) -> None:
        greet()
        path = app.folder / "tools.lock.json"
        if options not in locks:
            app.lock(*options)
            locks[options] = path.read_bytes()
        path.write_bytes(locks[options])

    return write
