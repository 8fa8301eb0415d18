"""The host: puts the parts together, says when it is ready, and stops gracefully."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from infra.local.host import catalogue, server
from infra.local.host.asgi import Endpoint
from infra.local.host.catalogue import Catalogue, Trigger
from infra.local.host.config import HostConfig, McpOptions, body_limit, load_config
from infra.local.host.console import configure_logging, end, say, write_ready_file
from infra.local.host.errors import AppError, ExitCode, HostError
from infra.local.host.front import Front
from infra.local.host.http import HttpFront, Route, build_routes
from infra.local.host.invoker import Invoker
from infra.local.host.keys import Keys
from infra.local.host.outputs import QueueOutputs
from infra.local.host.queues import build_listeners
from infra.local.host.settings import apply_values, read_values
from infra.local.host.storage import QueueStorage
from infra.local.host.timers import TimerListener, build_timers
from infra.local.host.worker import Entry, Worker, add_to_path

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from starlette.types import ASGIApp

logger = logging.getLogger("host.start")

SHUTDOWN_SECONDS: Final = 10.0  # how long running work may take to finish
FRONTS: Final = frozenset({Trigger.HTTP, Trigger.MCP})


@dataclass(frozen=True, slots=True)
class Options:
    """The command line."""

    app_dir: Path
    port: int = 7071
    auth: bool = False
    settings: Path | None = None  # None: APP_DIR/local.settings.json where it exists
    ready_file: Path | None = None
    triggers: frozenset[Trigger] = frozenset(Trigger)
    entry: Entry = Entry.NATIVE


class McpBuilder(Protocol):
    """Makes the ASGI app of the MCP endpoint."""

    def __call__(
        self, functions: Catalogue, invoker: Invoker, options: McpOptions, keys: Keys, body_limit: int, /
    ) -> ASGIApp:
        """See infra.local.host.mcp.build_endpoint."""
        ...


class Listener(Protocol):
    """What makes invocations on its own: queues and timers."""

    def start(self) -> None:
        """Begin to listen."""
        ...

    async def stop(self) -> None:
        """Stop listening, let running invocations finish. Cancelled when that takes too long."""
        ...


class Host:
    """One app in this process.

    ``build_mcp`` makes the MCP endpoint; it is handed in because a process without one must not pay for
    importing the protocol's models.
    """

    def __init__(self, options: Options, build_mcp: McpBuilder | None) -> None:
        self._options = options
        self._build_mcp = build_mcp
        self._socket: socket.socket | None = None
        self._server: server.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._front: Front | None = None
        self._listeners: list[Listener] = []
        self._storage = QueueStorage()
        self._stopping = asyncio.Event()
        self._base = ""
        self._has_mcp = False

    async def run(self) -> None:
        """Load the app, serve until a signal, stop. Raises HostError when it cannot start."""
        options = self._options
        environment = os.environ
        if not options.app_dir.is_dir():
            raise HostError(f"There is no folder {options.app_dir}.")
        apply_settings(options)
        config = load_config(options.app_dir, environment)
        configure_logging(config.log_level)
        if options.triggers & FRONTS:
            self._socket = server.listen(options.port)
            port = self._socket.getsockname()[1]
            self._base = f"http://{server.HOST}:{port}"
            environment.setdefault("WEBSITE_HOSTNAME", f"{server.HOST}:{port}")
        os.chdir(options.app_dir)
        add_to_path(options.app_dir)
        worker = await load_worker(options)
        functions = catalogue.build(worker.functions, options.triggers, environment)
        keys = Keys.from_settings(environment, enforce=options.auth)
        lines = self._assemble(worker, functions, config, keys)
        await self._start(lines)
        await self._stopping.wait()
        await self._stop(worker)

    def _assemble(self, worker: Worker, functions: Catalogue, config: HostConfig, keys: Keys) -> list[str]:
        """Build everything that can refuse to start; returns the lines that list the functions."""
        environment = os.environ
        outputs = QueueOutputs(self._storage, encode=config.queues.base64)
        outputs.add((function for function, _ in functions.active()), environment)
        invoker = Invoker(worker, outputs, config.function_timeout)
        timers = build_timers(functions.of("timerTrigger"), invoker, environment)
        queues = functions.of("queueTrigger")
        self._listeners += build_listeners(queues, self._storage, invoker, config.queues, environment)
        self._listeners += timers
        limit = body_limit(environment)
        routes = build_routes(functions.of("httpTrigger"), config.route_prefix, environment)
        webhooks: dict[str, ASGIApp] = {}
        lines = [f"{route.function.name}: {self._describe(route)}" for route in routes]
        if self._socket is not None:
            if self._build_mcp is not None and functions.has(Trigger.MCP):
                if keys.enforce and not keys.system and not config.mcp.anonymous:
                    raise HostError("--auth needs the setting MCP_EXTENSION_KEY, the key of the MCP endpoint.")
                webhooks["mcp"] = self._build_mcp(functions, invoker, config.mcp, keys, limit)
                self._has_mcp = True
            homepage = environment.get("AzureWebJobsDisableHomepage", "").lower() != "true"
            self._front = Front(
                Endpoint(HttpFront(routes, invoker, keys, limit, homepage=homepage).respond),
                webhooks,
                keys,
                lambda: function_list(functions),
                lambda name: start_timer(timers, name),
            )
            self._server = server.Server(self._front, SHUTDOWN_SECONDS)
        for function, trigger in functions.active():
            if trigger.type != "httpTrigger":
                lines.append(f"{function.name}: {trigger.type}")
        return lines

    def _describe(self, route: Route) -> str:
        methods = ",".join(sorted(route.methods)) or "*"
        return f"[{methods}] {self._base}/{route.template.text}"

    async def _start(self, lines: list[str]) -> None:
        self._take_signals()
        if self._server is not None and self._socket is not None:
            self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
            ready = asyncio.create_task(self._server.ready.wait())
            done, _ = await asyncio.wait({self._serving, ready}, return_when=asyncio.FIRST_COMPLETED)
            if self._serving in done:
                raise HostError("The HTTP server ended while it was starting.") from self._serving.exception()
        for listener in self._listeners:
            listener.start()
        say("Functions:\n")
        for line in sorted(lines, key=str.lower):
            say(f"    {line}")
        if self._has_mcp:
            say(f"\nMCP server endpoint: {self._base}/runtime/webhooks/mcp")
        write_ready_file(self._options.ready_file, self._socket)
        say(f"Host ready: {self._base or 'no HTTP front'} ({len(lines)} functions, pid {os.getpid()})")

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, self._on_signal)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._on_signal))

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            logger.warning("A second signal: ending without waiting.")
            end(ExitCode.FORCED)
        self._stopping.set()

    async def _stop(self, worker: Worker) -> None:
        say("Stopping: running functions get up to 10 s to finish.")
        # A function that never ends, or a thread of the app, must not keep the process.
        deadline = threading.Timer(SHUTDOWN_SECONDS + 1, end, (ExitCode.OK,))
        deadline.daemon = True
        deadline.start()
        if self._front is not None:
            self._front.state = "Stopping"
        waits = [asyncio.create_task(listener.stop()) for listener in self._listeners]
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            waits.append(self._serving)
        _, late = await asyncio.wait(waits, timeout=SHUTDOWN_SECONDS) if waits else (set(), set())
        if self._options.ready_file is not None:
            self._options.ready_file.unlink(missing_ok=True)
        if late:
            logger.warning("Host did not shut down within %d s; ending with work under way.", SHUTDOWN_SECONDS)
            end(ExitCode.OK)
        self._storage.close()
        worker.stop()


def apply_settings(options: Options) -> None:
    """Settings file -> environment, which wins; and what ``func start`` sets on its own."""
    path = options.settings or options.app_dir / "local.settings.json"
    if options.settings is not None and not path.is_file():
        raise HostError(f"There is no settings file {path}.")
    if path.is_file():
        apply_values(read_values(path), os.environ)
    os.environ.setdefault("AZURE_FUNCTIONS_ENVIRONMENT", "Development")
    os.environ.setdefault("FUNCTIONS_WORKER_RUNTIME", "python")


async def load_worker(options: Options) -> Worker:
    """Load the app; an app that exits on import is an error like any other."""
    library = logging.getLogger("azure.functions")
    library.setLevel(logging.CRITICAL)  # it logs what comes back as the error, with its own frames
    try:
        return await Worker.load(options.app_dir, options.entry)
    except SystemExit as error:
        raise AppError(f"The app ended the process while it was imported (exit code {error.code}).") from None
    finally:
        library.setLevel(logging.WARNING)


def start_timer(timers: list[TimerListener], name: str) -> bool:
    """Run a timer function now (POST /admin/functions/NAME); False when there is none of that name."""
    found = [timer for timer in timers if timer.name.lower() == name.lower()]
    for timer in found:
        timer.fire_now()
    return bool(found)


def function_list(functions: Catalogue) -> list[dict[str, Any]]:
    """What GET /admin/functions shows."""
    return [
        {
            "name": function.name,
            "config": {"bindings": [dict(binding.fields) for binding in function.bindings]},
            "isDisabled": function.name in functions.disabled,
            "language": "python",
        }
        for function in functions.functions
    ]
