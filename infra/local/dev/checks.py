"""`dev.py test`, `check`, `validate`, `bench` and `lock`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NoReturn

from infra.local.dev import browser, paths, processes, setup
from infra.local.dev.console import DevError, headline, paint, say, step
from infra.local.dev.hints import command_error
from infra.local.dev.node import require_npm
from infra.local.dev.processes import CommandError, capture
from infra.local.dev.venv import require_uv

# Processes for a run of the whole suite. Starting them costs some seconds: a part of the suite runs in one.
# One more than the processors of a small machine, since a third of a test's time is waiting. Each takes
# neighbouring tests, so that what a module or a folder starts (an app, a browser) is seldom started in several.
TEST_WORKERS = 3
_IN_PARALLEL = ["-n", str(TEST_WORKERS), "--dist", "worksteal"]
_AGENTS = "--agents"
BENCHMARKS = paths.REPO / "tests" / "benchmarks"

_CHECKS = {
    "lint": ("ruff", "check", "."),
    "format": ("ruff", "format", "--check", "."),
    "types": ("mypy",),
    # Bicep, azd's files and app settings, without Azure and without a compiler: see infra/azure/lint.
    "infra": ("infra.azure.lint",),
    "workflows": ("zizmor", "--offline", "--quiet", "--persona=pedantic", ".github"),
}


def test(arguments: list[str]) -> NoReturn:
    """Become pytest, so that its exit code and the handling of signals are its own."""
    if _AGENTS in arguments:
        setup.ensure_agents()
        rest = [argument for argument in arguments if argument != _AGENTS]
        chosen = [str(paths.AGENTS.relative_to(paths.REPO)), "-m", "agents", *rest]
    else:
        if not arguments:
            browser.ensure()  # the whole suite has the page's tests, which fail without one
        chosen = arguments or _IN_PARALLEL
    os.chdir(paths.REPO)
    python = str(paths.VENV_PYTHON)
    # Tests start some hundred Pythons. Without bytecode each would compile all that it imports.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    os.execve(python, [python, "-m", "pytest", *chosen], environ)  # noqa: S606 - a list, and no shell is wanted


def validate(path: str, *, as_json: bool) -> int:
    """Check a folder of tools in a process of its own, since it imports them; its exit code."""
    command = [str(paths.VENV_PYTHON), "-m", "shared.validate", str(Path(path).resolve())]
    return subprocess.call(command + ["--json"] * as_json, cwd=paths.REPO)


def check(*, as_json: bool) -> int:
    """Run all checks, also after one failed; 0 if none did."""
    reports = []
    for name, command in _CHECKS.items():
        started = time.monotonic()
        ok, output = _run_check(command)
        seconds = time.monotonic() - started
        reports.append({"name": name, "ok": ok, "seconds": round(seconds, 2), "output": output})
        if not as_json:
            verdict = paint("ok", "green") if ok else paint("failed", "red")
            say(f"{name:<9} {verdict} ({seconds:.1f} s)  {' '.join(command)}")
            if not ok:
                say(output.rstrip())
    all_ok = all(report["ok"] for report in reports)
    if as_json:
        say(json.dumps({"ok": all_ok, "checks": reports}))
    return 0 if all_ok else 1


def check_command(command: tuple[str, ...]) -> list[str]:
    """A program of the environment, or else a module."""
    program = paths.VENV_PYTHON.with_name(command[0])
    return [str(program), *command[1:]] if program.is_file() else [str(paths.VENV_PYTHON), "-m", *command]


def _run_check(command: tuple[str, ...]) -> tuple[bool, str]:
    try:
        return True, capture(check_command(command), cwd=str(paths.REPO))
    except CommandError as failure:
        return False, failure.output


def bench(names: list[str]) -> int:
    """Run benchmark modules one after another; each prints a JSON line. 0 if all of them ended well."""
    # The folder holds helpers, too: a benchmark is what has a main function.
    known = sorted(path.stem for path in BENCHMARKS.glob("*.py") if "\ndef main(" in path.read_text("utf-8"))
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        message = f"There is no benchmark {unknown[0]!r}." if unknown else "There are no benchmarks yet."
        raise DevError(message, f"Known ones: {', '.join(known) or 'none'}.", exit_code=2)
    failed = [name for name in names or known if _run_benchmark(name) != 0]
    if failed:
        raise DevError(f"Failed: {', '.join(failed)}.")
    return 0


def _run_benchmark(name: str) -> int:
    process = processes.start([str(paths.VENV_PYTHON), "-m", f"tests.benchmarks.{name}"], cwd=paths.REPO)
    try:
        return process.wait()
    finally:
        processes.end(process, grace_seconds=5.0)


def lock(*, upgrade: bool) -> int:
    """Write requirements*.txt and package-lock.json anew. No file names a registry."""
    uv = require_uv(setup.project_venv(), os.environ)
    for file in (*paths.REQUIREMENTS, *sorted(paths.AGENTS.glob("*/requirements.txt"))):
        name = str(file.relative_to(paths.REPO))
        source = str(file.with_suffix(".in").relative_to(paths.REPO))
        command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.13"]
        command += ["--generate-hashes", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
        command += ["--upgrade"] if upgrade else []
        _lock_step(name, [*command, source, "--output-file", name])
    npm = require_npm(os.environ, paths.REPO)
    if upgrade:
        (paths.REPO / "package-lock.json").unlink(missing_ok=True)
    _lock_step("package-lock.json", [npm, "install", "--package-lock-only", "--ignore-scripts"])
    if shutil.which("git"):
        headline("Look at the changes with `git diff`, then run `python3 dev.py test`.")
    return 0


def _lock_step(name: str, command: list[str]) -> None:
    try:
        with step(f"Locking {name}"):
            capture(command, cwd=str(paths.REPO))
    except CommandError as failure:
        raise command_error(f"{name} could not be made.", failure, "The lines above say why.") from failure
