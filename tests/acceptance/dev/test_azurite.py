"""Azurite as a child process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from infra.local import azurite as module
from infra.local.azurite import Azurite, AzuriteError
from infra.local.dev import paths
from tests.acceptance.conftest import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.dev.conftest import Family

pytestmark = pytest.mark.integration


def _accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_serves_all_three_and_stops(tmp_path: Path) -> None:
    with Azurite.start(tmp_path, free_ports=True) as running:
        assert running.poll() is None
        assert len(set(running.ports)) == 3
        assert all(map(_accepts, running.ports))
        assert all(f":{port}/devstoreaccount1;" in running.connection_string for port in running.ports)
    assert running.poll() == 0
    running.stop()
    assert not any(map(_accepts, running.ports))


def test_data_outlives_it(tmp_path: Path) -> None:
    from azure.storage.queue import QueueClient

    def queue(running: Azurite) -> QueueClient:
        return QueueClient.from_connection_string(running.connection_string, "kept")

    with Azurite.start(tmp_path, free_ports=True) as running, queue(running) as client:
        client.create_queue()
        client.send_message("still here")
    with Azurite.start(tmp_path, free_ports=True) as running, queue(running) as client:
        message = client.receive_message()
        assert message is not None
        assert message.content == "still here"


def test_folder_serves_one_at_a_time(tmp_path: Path) -> None:
    first = Azurite.start(tmp_path, free_ports=True)
    try:
        with pytest.raises(AzuriteError, match="Another Azurite uses"):
            Azurite.start(tmp_path, free_ports=True)
    finally:
        first.stop()
    Azurite.start(tmp_path, free_ports=True).stop()


def test_standard_ports_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: Callable[[], int]
) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen()
        taken = server.getsockname()[1]
        monkeypatch.setattr(module, "DEFAULT_PORTS", (free_port(), taken, free_port()))
        running = stack.enter_context(Azurite.start(tmp_path / "a"))
        assert taken not in running.ports

        # The same when the other program is quicker: the port was free when it was looked at.
        monkeypatch.setattr(module, "is_free", lambda port: True)
        running = stack.enter_context(Azurite.start(tmp_path / "b"))
        assert taken not in running.ports

        # Ports that were asked for are not exchanged for others.
        with pytest.raises(AzuriteError, match="EADDRINUSE"):
            Azurite.start(tmp_path / "c", ports=(0, taken, 0))


def test_standard_ports_are_used_when_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: Callable[[], int]
) -> None:
    standard = (free_port(), free_port(), free_port())
    monkeypatch.setattr(module, "DEFAULT_PORTS", standard)
    with Azurite.start(tmp_path) as running:
        assert running.ports == standard


def test_failures_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "node"
    failing.write_text("#!/bin/sh\necho it broke\nexit 5\n")
    failing.chmod(0o755)
    with pytest.raises(AzuriteError, match="exit code 5 while starting: it broke"):
        Azurite.start(tmp_path / "a", node=str(failing))
    with pytest.raises(AzuriteError, match="could not be started"):
        Azurite.start(tmp_path / "b", node=str(tmp_path))
    (tmp_path / "file").write_text("")
    with pytest.raises(AzuriteError, match="cannot keep its data"):
        Azurite.start(tmp_path / "file" / "data")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(AzuriteError, match=r"Install Node\.js"):
        Azurite.start(tmp_path / "c")


def test_goes_when_its_parent_is_killed(tmp_path: Path, family: Family) -> None:
    code = (
        "import pathlib, sys; from infra.local.azurite import Azurite\n"
        "print(Azurite.start(pathlib.Path(sys.argv[1]), free_ports=True).pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "data")],
        cwd=paths.REPO,
        env=family.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert pid in family.members()
        parent.send_signal(signal.SIGKILL)
    assert not family.wait_until_gone(10)
    # And its folder may be used again, once the system has closed what the killed ones had open.
    wait_until(lambda: starts_again(tmp_path / "data"), seconds=10)


def starts_again(folder: Path) -> bool:
    try:
        with Azurite.start(folder, free_ports=True):
            return True
    except AzuriteError:
        return False
