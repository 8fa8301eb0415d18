"""The processes of one `dev.py run`: in which order they start and stop, and what happens in between."""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.azurite import Azurite, AzuriteError
from infra.local.dev import dataverse_settings, paths, processes
from infra.local.dev.console import DevError, paint, say, step
from infra.local.dev.dataverse import DataverseProcess, Place
from infra.local.dev.host import HostProcess
from infra.local.host.errors import ExitCode
from shared import settings as app_settings
from shared import startup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

EMULATOR = "UseDevelopmentStorage=true"


class Session:
    """Runs Azurite and the host, and the stand-in for Dataverse where it is asked for.

    `stop` may be called at any time, and leaves nothing behind.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._folder = Path(tempfile.mkdtemp(prefix="toolbox-run-"))
        self._azurite: Azurite | None = None
        self._dataverse: DataverseProcess | None = None
        self._host: HostProcess | None = None
        self._exits: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()

    @property
    def host(self) -> HostProcess:
        """The host that runs now."""
        assert self._host is not None
        return self._host

    def start_storage(self, configured: str, *, temp_data: bool) -> None:
        """Start Azurite, unless the setting names other storage. Raises `DevError`."""
        if configured.strip().rstrip(";") != EMULATOR and not temp_data:
            say("Using the storage that AzureWebJobsStorage names; Azurite is not started.")
            return
        data_dir = self._folder / "data" if temp_data else paths.AZURITE_DATA
        try:
            with step("Starting storage (Azurite)"):
                self._azurite = Azurite.start(data_dir, free_ports=temp_data)
        except AzuriteError as error:
            raise DevError(str(error)) from error
        processes.track(self._azurite.pid)
        self._watch("storage", self._azurite.process.wait)
        # Environment variables win over local.settings.json.
        self._environ["AzureWebJobsStorage"] = self._azurite.connection_string

    def check_settings(self, settings: Mapping[str, str]) -> app_settings.Settings:
        """Let the app judge its settings before it is started in another process. Raises `DevError`."""
        own = {**settings, **self._environ}
        if found := startup.faults(paths.REPO, own):
            raise DevError("\n".join(found), "Correct it in local.settings.json or in the environment.")
        return app_settings.load(own)

    def start_dataverse(self, settings: Mapping[str, str], owners: Iterable[str]) -> Place:
        """Start the stand-in, and let the app that is started later reach it. Raises `DevError`."""
        with step("Starting the Dataverse stand-in"):
            self._dataverse = DataverseProcess(environ=self._environ, folder=self._folder)
            place = self._dataverse.wait_until_ready()
            own = {**settings, **self._environ}
            self._environ |= dataverse_settings.settings_for(place, own, owners, self._folder)
        self._watch("dataverse", self._dataverse.process.wait)
        return place

    def start_host(self, port: int, *, auth: bool) -> None:
        """Start the host and wait until it serves. Raises `DevError`."""
        with step("Starting the app"):
            self._host = HostProcess(port, auth=auth, environ=self._environ, folder=self._folder)
            self._host.wait_until_ready()
        for line in self._host.left_out():
            say(paint(line, "yellow"))
        self._watch("host", self._host.process.wait)

    def serve(self, *, auth: bool) -> None:
        """Serve, with the app's output on the terminal. Ends by `Interrupted`, or `DevError` when one ends."""
        self.host.echo = True
        while True:
            name, code = self._exits.get()
            if name == "storage":
                raise DevError(f"Azurite ended with exit code {code}; the app cannot go on without storage.")
            if name == "dataverse":
                raise DevError(f"The Dataverse stand-in ended with exit code {code}.")
            if code != ExitCode.FUNCTION_TIMEOUT:
                raise self.host.error(f"The app ended with exit code {code}.")
            say(paint("A function outran functionTimeout, and its process ended, as on Azure.", "yellow"))
            self.host.stop()
            self.start_host(self.host.port, auth=auth)
            self.host.echo = True

    def stop(self, keep_log: Path | None = None) -> None:
        """Stop the host first, which may still use the others. Keep its log as `keep_log`."""
        processes.kill_on_signals()
        try:
            if self._host is not None:
                self._host.stop()
                if keep_log is not None:
                    keep_log.parent.mkdir(exist_ok=True)
                    shutil.copyfile(self._host.log_file, keep_log)
        finally:
            if self._dataverse is not None:
                self._dataverse.stop()
            if self._azurite is not None:
                self._azurite.stop()
                processes.untrack(self._azurite.pid)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _watch(self, name: str, wait: Callable[[], int]) -> None:
        def report() -> None:
            self._exits.put((name, wait()))

        threading.Thread(target=report, name=f"{name}-exit", daemon=True).start()
