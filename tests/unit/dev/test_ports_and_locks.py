"""Ports that are free, locks that are held."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import paths, run
from infra.local.dev.console import DevError
from infra.local.dev.locks import FileLock
from infra.local.dev.ports import free_port, is_free

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_port_of_a_listening_server_is_not_free(address: str) -> None:
    with socket.socket() as server:
        server.bind((address, 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(DevError, match=f"Port {port} is in use"):
            run.check_port(port)


def test_port_that_is_bound_but_does_not_listen_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        assert not is_free(server.getsockname()[1])


def test_any_port_is_free() -> None:
    assert is_free(0)
    assert 1024 <= free_port() <= 65535
    run.check_port(0)


def test_lock_is_exclusive_and_comes_back(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "x" / "lock"), FileLock(tmp_path / "x" / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    first.release()
    assert second.try_acquire()
    second.release()


def test_waiting_for_a_lock_is_said_once(tmp_path: Path) -> None:
    holder, waiter = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert holder.try_acquire()
    said: list[str] = []
    waits = threading.Event()

    def on_wait() -> None:
        said.append("waiting")
        waits.set()

    thread = threading.Thread(target=waiter.acquire, args=(on_wait, 0.01))
    thread.start()
    assert waits.wait(10)
    holder.release()
    thread.join(10)
    assert not thread.is_alive()
    assert said == ["waiting"]
    waiter.release()


def test_lock_of_a_killed_process_is_given_back(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from infra.local.dev.locks import FileLock\n"
        "lock = FileLock(pathlib.Path(sys.argv[1])); lock.acquire(); print('held', flush=True)\n"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")],
        cwd=paths.REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = FileLock(tmp_path / "lock")
        assert not lock.try_acquire()
        holder.kill()
        holder.wait()
        assert lock.try_acquire()
        lock.release()
