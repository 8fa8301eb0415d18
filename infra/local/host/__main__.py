"""Command line of the local Functions host."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.host.app import Host, Options
from infra.local.host.catalogue import Trigger
from infra.local.host.console import end
from infra.local.host.errors import ExitCode, HostError
from infra.local.host.worker import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.host.app import McpBuilder


def parse(arguments: Sequence[str]) -> Options:
    """Options from the command line; ends the process with ExitCode.USAGE on a wrong one."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.local.host", description="Run an Azure Functions app in Python on this machine."
    )
    parser.add_argument("app_dir", nargs="?", type=Path, default=Path(), metavar="APP_DIR")
    parser.add_argument("--port", type=int, default=7071, help="0 picks a free one (default 7071)")
    parser.add_argument("--auth", action="store_true", help="check keys as Azure does")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="instead of APP_DIR/local.settings.json")
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="gets {port, pid} when ready")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--no-triggers", type=_triggers, default=frozenset(), metavar="KINDS")
    group.add_argument("--only-triggers", type=_triggers, default=frozenset(Trigger), metavar="KINDS")
    parser.add_argument(
        "--entry", type=Entry, choices=list(Entry), default=Entry.NATIVE, help=argparse.SUPPRESS
    )
    given = parser.parse_args(arguments)
    return Options(
        app_dir=given.app_dir.resolve(),
        port=given.port,
        auth=given.auth,
        settings=given.settings and given.settings.resolve(),
        ready_file=given.ready_file and given.ready_file.resolve(),
        triggers=given.only_triggers - given.no_triggers,
        entry=given.entry,
    )


def _triggers(text: str) -> frozenset[Trigger]:
    try:
        return frozenset(Trigger(part.strip()) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"choose from {', '.join(Trigger)}") from None


def hide_from_app(app_dir: Path) -> None:
    """Leave nothing of the host where the app could import it by accident.

    The folder that holds this package leaves sys.path (unless it is the app's own), its modules leave
    sys.modules, and ``__main__`` becomes an empty module, which also keeps ``multiprocessing`` in the app from
    importing the host in its children. From here on the host imports no module of its own.
    """
    root = Path(__file__).resolve().parents[3]
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() not in {root, app_dir}]
    for name in [name for name in sys.modules if name == "infra" or name.startswith("infra.")]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")


def main() -> None:
    """Run the host."""
    options = parse(sys.argv[1:])
    build_mcp: McpBuilder | None = None
    if Trigger.MCP in options.triggers:
        from infra.local.host.mcp import build_endpoint

        build_mcp = build_endpoint
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end(ExitCode.OK))  # while loading there is nothing to wait for
    hide_from_app(options.app_dir)
    loop_factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        loop_factory = uvloop.new_event_loop
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(Host(options, build_mcp).run())
    except HostError as error:
        sys.stderr.write(f"{error}\n")
        end(error.exit_code)  # a thread that the app has started must not keep the process


if __name__ == "__main__":
    main()
