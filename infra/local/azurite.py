"""Azurite, the storage emulator, as a child process: blob, queue and table on loopback ports.

    with Azurite.start(Path(".azurite")) as azurite:
        os.environ["AzureWebJobsStorage"] = azurite.connection_string

It is started as `node …/azurite.js`, not through npx, whose node child outlives it. It runs in a session of its
own, so that Ctrl-C in a terminal reaches only the parent, which then stops things in the right order; when the
parent is killed without a chance to do so, Azurite sees the end of its stdin and stops by itself
(dev/exit_with_parent.cjs). A data folder serves one Azurite at a time: two would overwrite each other's files.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from infra.local.dev.locks import FileLock
from infra.local.dev.ports import LOOPBACK, is_free

Ports = tuple[int, int, int]  # blob, queue, table

DEFAULT_PORTS: Ports = (10000, 10001, 10002)
_ANY_PORTS: Ports = (0, 0, 0)

ACCOUNT_NAME = "devstoreaccount1"
# The emulator's well-known key: printed in its documentation, the same on every machine, no secret.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_REPO = Path(__file__).resolve().parents[2]
_AZURITE_JS = _REPO / "node_modules" / "azurite" / "dist" / "src" / "azurite.js"
_EXIT_WITH_PARENT = Path(__file__).resolve().parent / "dev" / "exit_with_parent.cjs"
_LISTENING = re.compile(r"Azurite (Blob|Queue|Table) service is successfully listening at \S+:(\d+)")
_STOP_SECONDS = 5.0


class AzuriteError(Exception):
    """Azurite could not be started. The text says what to do."""


class Azurite:
    """A running Azurite. `start` makes one; `stop` ends it, and so does leaving its `with` block."""

    def __init__(self, process: subprocess.Popen[bytes], ports: Ports, data_dir: Path, lock: FileLock) -> None:
        self.process = process
        self.ports = ports
        self.data_dir = data_dir
        self._lock = lock

    @classmethod
    def start(
        cls,
        data_dir: Path,
        *,
        ports: Ports | None = None,
        free_ports: bool = False,
        timeout: float = 60.0,
        node: str | None = None,
        options: tuple[str, ...] = (),
    ) -> Azurite:
        """Start Azurite and wait until all three services listen. `options`: more of its own, like --oauth.

        Ports: `ports` exactly, if given (0: any free one); else the standard 10000 to 10002 when all of them
        are free; else, or with `free_ports`, free ones. Raises `AzuriteError`.
        """
        program = node or shutil.which("node")
        if program is None:
            raise AzuriteError(
                "Azurite needs Node.js, and there is no `node` on PATH. Install Node.js 20 or newer."
            )
        if not _AZURITE_JS.is_file():
            raise AzuriteError(
                f"Azurite is not installed ({_AZURITE_JS}). Run `python3 dev.py run`, or `npm ci`."
            )
        data_dir = data_dir.resolve()
        lock = FileLock(data_dir / ".lock")
        try:
            locked = lock.try_acquire()
        except OSError as error:
            raise AzuriteError(f"Azurite cannot keep its data in {data_dir}: {error}.") from error
        if not locked:
            raise AzuriteError(
                f"Another Azurite uses {data_dir}. Stop the app that started it, or use another data "
                "folder (`python3 dev.py run --temp-data`)."
            )
        wanted = ports or (_ANY_PORTS if free_ports or not all(map(is_free, DEFAULT_PORTS)) else DEFAULT_PORTS)
        try:
            try:
                process, actual = _launch(program, data_dir, wanted, lock, timeout, options)
            except _PortTakenError as error:
                if ports is not None:
                    raise AzuriteError(f"{error}. Stop what uses the port, or choose others.") from error
                process, actual = _launch(program, data_dir, _ANY_PORTS, lock, timeout, options)
        except OSError as error:
            lock.release()
            raise AzuriteError(f"Azurite could not be started: {error}.") from error
        except BaseException:
            lock.release()
            raise
        return cls(process, actual, data_dir, lock)

    @property
    def pid(self) -> int:
        """The process id of node."""
        return self.process.pid

    @property
    def connection_string(self) -> str:
        """What `AzureWebJobsStorage` has to be for this instance."""
        return connection_string(self.ports)

    @property
    def log_file(self) -> Path:
        """Where its output goes."""
        return self.data_dir / "azurite.log"

    def poll(self) -> int | None:
        """The exit code once the process has ended, else None."""
        return self.process.poll()

    def stop(self) -> None:
        """End the process: SIGTERM, and SIGKILL after a few seconds. May be called more than once."""
        _end(self.process)
        self._lock.release()

    def __enter__(self) -> Azurite:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def connection_string(ports: Ports) -> str:
    """The connection string of the emulator's account with services on these ports."""
    services = zip(("Blob", "Queue", "Table"), ports, strict=True)
    endpoints = "".join(f"{name}Endpoint=http://{LOOPBACK}:{port}/{ACCOUNT_NAME};" for name, port in services)
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT_NAME};AccountKey={ACCOUNT_KEY};{endpoints}"


class _PortTakenError(Exception):
    """Another program was quicker to listen on a port."""


def _launch(
    node: str, data_dir: Path, ports: Ports, lock: FileLock, timeout: float, options: tuple[str, ...]
) -> tuple[subprocess.Popen[bytes], Ports]:
    command = [node, "--require", str(_EXIT_WITH_PARENT), str(_AZURITE_JS)]
    command += ["--silent", "--skipApiVersionCheck", "--disableTelemetry", "--location", str(data_dir)]
    command += options
    for name, port in zip(("blob", "queue", "table"), ports, strict=True):
        command += [f"--{name}Host", LOOPBACK, f"--{name}Port", str(port)]
    log_file = data_dir / "azurite.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=_inherited(lock),
        )
    try:
        return process, _wait_until_listening(process, log_file, time.monotonic() + timeout)
    except BaseException:
        _end(process)
        raise


def _inherited(lock: FileLock) -> tuple[int, ...]:
    # Azurite holds the lock of its folder too: a killed parent's successor waits until the files are closed.
    return (lock.fileno(),) if os.name != "nt" else ()


def _wait_until_listening(process: subprocess.Popen[bytes], log_file: Path, deadline: float) -> Ports:
    """The ports in use, from Azurite's own lines: a connection alone could be answered by another program."""
    while True:
        ended = process.poll() is not None  # asked before reading, so that the last words are not missed
        output = log_file.read_text("utf-8", "replace")
        listening = dict(_LISTENING.findall(output))
        if len(listening) == 3:
            return int(listening["Blob"]), int(listening["Queue"]), int(listening["Table"])
        if ended:
            last = output.strip().splitlines()[-1:] or ["no output"]
            if "EADDRINUSE" in output:
                raise _PortTakenError(f"Azurite could not start: {last[0]}")
            raise AzuriteError(
                f"Azurite ended with exit code {process.returncode} while starting: {last[0]}. "
                f"Its output is in {log_file}. If its data is damaged, delete the folder {log_file.parent}."
            )
        if time.monotonic() > deadline:
            raise AzuriteError(
                f"Azurite did not get ready in time (its output is in {log_file}). "
                "Try again when the machine is less busy."
            )
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdin is not None:
        process.stdin.close()
