"""What dev.py says and which code it ends with when something is wrong. Never a traceback."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import cli, processes
from infra.local.dev.console import DevError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.dev.conftest import DevCommand


@pytest.fixture
def listening_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_port_in_use(dev_command: DevCommand, listening_port: int) -> None:
    done = dev_command("run", "--once", "--temp-data", "--port", str(listening_port))
    assert done.returncode == 1
    assert f"Port {listening_port} is in use" in done.stderr
    assert "--port" in done.stderr.partition("in use")[2]
    assert "Traceback" not in done.stderr


def test_no_node(dev_command: DevCommand, tmp_path: Path) -> None:
    done = dev_command("run", "--once", environ={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "Node.js was not found" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["x", "-1", "65536", "7071.0", "²"])
def test_illegal_port(dev_command: DevCommand, port: str) -> None:
    done = dev_command("run", f"--port={port}")
    assert done.returncode == 2
    assert "is not a port" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_command_and_unknown_command(dev_command: DevCommand) -> None:
    assert dev_command().returncode == 2
    assert dev_command("frobnicate").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "command", "unknown"),
    [
        (("run", "--nonsense"), "dev.py run", "--nonsense"),
        (("run", "--once", "extra", "--nonsense"), "dev.py run", "extra --nonsense"),
        (("jobs", "list", "--nonsense"), "dev.py jobs list", "--nonsense"),
        (("package", "--nonsense=1"), "dev.py package", "--nonsense=1"),
    ],
)
def test_what_a_command_does_not_know_is_named_with_its_own_usage(
    arguments: tuple[str, ...], command: str, unknown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli._parser().parse_args(list(arguments))
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {command} [-h]")
    assert said.endswith(f"{command}: error: unrecognized arguments: {unknown}\n")


def test_test_passes_everything_to_pytest(dev_command: DevCommand) -> None:
    done = dev_command("test", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("pytest ")
    # No tests found is a failure: pytest's code 5.
    nothing = dev_command("test", "-q", "-k", "no_test_has_this_name", "tests/unit/dev/test_stamps.py")
    assert nothing.returncode == 5


def test_no_colour_without_a_terminal(dev_command: DevCommand) -> None:
    done = dev_command("bench", "no-such-benchmark")
    assert "\033" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DevError("It broke.", "Mend it.", exit_code=7), 7, "Mend it."),
        (OSError(28, "No space left on device"), 1, "disk is full"),
        (RuntimeError("odd"), 1, "RuntimeError: odd"),
        (processes.Interrupted(15), 143, ""),
    ],
)
def test_errors_become_text_and_exit_codes(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_argv: list[str]) -> int:
        raise error

    monkeypatch.setattr(processes, "raise_on_signals", lambda: None)
    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.delenv("DEV_DEBUG", raising=False)
    assert cli.main([]) == code
    assert said in capsys.readouterr().err


def test_windows_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "raise_on_signals", lambda: None)
    monkeypatch.setattr(sys, "platform", "win32")
    assert cli.main(["check"]) == 1
    assert "WSL" in capsys.readouterr().err
