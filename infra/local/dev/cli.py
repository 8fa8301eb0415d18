"""The command line of dev.py: reads it, sets up, and goes on inside the virtual environment."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from typing import Any, List, NoReturn

from infra.local.dev import connection_options, jobs_options, paths, processes, setup
from infra.local.dev.console import DevError, say, show_error
from infra.local.dev.hints import DISK_FULL_HINT

_WITHOUT_NODE = (
    "check",
    "upstream",
    "connection",
    "jobs",
    "new",
    "validate",
    "package",
)  # these commands need no Azurite
_DEBUG = "DEV_DEBUG"  # set: unexpected errors come with a traceback
_TEST_HELP = """usage: dev.py test [--agents] [PYTEST ARGUMENT ...]

set up, then run pytest; all arguments go to pytest
  --agents  run the tests of tests/agents instead: MCP clients in virtual environments of their own"""


def main(argv: List[str]) -> int:
    """Run the command; the exit code. Never ends in a traceback."""
    processes.raise_on_signals()
    try:
        return _run(argv)
    except DevError as error:
        show_error(error)
        return error.exit_code
    except processes.Interrupted as stop:
        return 128 + stop.signum
    except BrokenPipeError:
        # The reader of our output went away. Python would complain about that once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(_DEBUG):
            raise
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = DISK_FULL_HINT if full else f"Set {_DEBUG}=1 to see where it happened."
        show_error(DevError(f"{type(error).__name__}: {error}", hint))
        return 1
    finally:
        processes.kill_tracked()  # of which there are none, unless a signal came at an awkward moment


def _run(argv: List[str]) -> int:
    if sys.platform == "win32":
        raise DevError("Windows is not supported.", "Use WSL 2: clone and run everything inside it.")
    if argv[:1] == ["test"]:  # argparse cannot pass options through
        if argv[1:] in (["-h"], ["--help"]):
            say(_TEST_HELP)
            return 0
        options = argparse.Namespace(command="test", arguments=argv[1:])
    elif argv[:1] == ["upstream"]:  # the app's own command reads its own options
        options = argparse.Namespace(command="upstream", arguments=argv[1:])
    else:
        options = _parser().parse_args(argv)
    setup.ensure(node=options.command not in _WITHOUT_NODE)
    if not paths.VENV.samefile(sys.prefix):
        _go_on_in_venv(argv)
    return _dispatch(options)


def _go_on_in_venv(argv: List[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    python = str(paths.VENV_PYTHON)
    os.execv(python, [python, str(paths.REPO / "dev.py"), *argv])  # noqa: S606


def _dispatch(options: argparse.Namespace) -> int:
    """Run a command. Only from here on may modules be imported that need Python 3.13 or a package."""
    from infra.local.dev import checks, run, scaffold

    if options.command == "run":
        return run.run(
            options.port,
            once=options.once,
            auth=options.auth,
            temp_data=options.temp_data,
            dataverse=options.dataverse,
        )
    if options.command == "test":
        return checks.test(options.arguments)
    if options.command == "check":
        return checks.check(as_json=options.json)
    if options.command == "validate":
        return checks.validate(options.path, as_json=options.json)
    if options.command == "new":
        return scaffold.new(options.name, contract=options.contract)
    if options.command == "upstream":
        from infra.local.dev import upstream

        return upstream.run(options.arguments)
    if options.command == "connection":
        from infra.local.dev import connection  # it loads what the app does

        return connection.run(options)
    if options.command == "jobs":
        from infra.local.dev import jobs

        return jobs.run(options)
    if options.command == "bench":
        return checks.bench(options.names)
    if options.command in ("lock", "package"):
        return _make_files(options)
    setup.ensure_settings()
    say("Everything is set up.")
    return 0


def _make_files(options: argparse.Namespace) -> int:
    from infra.local.dev import checks, package

    if options.command == "package":
        return package.command(options.output, as_json=options.json)
    return package.write_lock() if options.tools else checks.lock(upgrade=options.upgrade)


class _Parser(argparse.ArgumentParser):
    """Also of each command: what it does not know, it tells with its own usage, not with that of all."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error("unrecognized arguments: {}".format(" ".join(unknown)))
        return options, unknown


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dev.py",
        description="Sets up this project, runs it and checks it. Every command sets up what it needs first.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="start storage and the app, make two calls, keep serving")
    run.add_argument("--port", type=_port, default=7071, help="port of the app (default 7071; 0: any free one)")
    run.add_argument("--once", action="store_true", help="stop after the calls")
    run.add_argument("--auth", action="store_true", help="check keys as Azure does")
    run.add_argument(
        "--temp-data", action="store_true", help="keep storage in a temporary folder that goes when it stops"
    )
    run.add_argument(
        "--dataverse",
        action="store_true",
        help="start a stand-in for Dataverse too, with sample data and a connection to it, and query it",
    )
    commands.add_parser("test", help="run the tests; arguments go to pytest (--agents: other MCP clients)")
    commands.add_parser("upstream", help="tools of other MCP servers: sync, list, enable, disable")
    check = commands.add_parser("check", help="lint, formatting, types, infra/azure and workflows")
    check.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    validate = commands.add_parser("validate", help="check a folder of tools; all faults at once")
    validate.add_argument(
        "path", nargs="?", default=str(paths.REPO / "tools"), metavar="PATH", help="the folder (default: tools)"
    )
    validate.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    new = commands.add_parser("new", help="make a tool that works, with its test")
    new.add_argument("name", metavar="NAME", help="the tool's name: a-z, 0-9, _ and -, beginning with a letter")
    new.add_argument(
        "--contract",
        action="store_true",
        help="pptb.config.json and headless.py instead of a decorated function",
    )
    connection_options.add_parser(commands)
    jobs_options.add_parser(commands)
    bench = commands.add_parser("bench", help="run the benchmarks; one JSON line each")
    bench.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    lock = commands.add_parser("lock", help="write the lock files anew from requirements*.in and package.json")
    lock.add_argument("--upgrade", action="store_true", help="take newer versions of indirect requirements")
    lock.add_argument(
        "--tools", action="store_true", help="write tools.lock.json instead, with which the app starts quickly"
    )
    package = commands.add_parser("package", help="make the zip that is deployed")
    package.add_argument("--output", metavar="FILE", help="the zip (default: dist/app.zip)")
    package.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    commands.add_parser("setup", help="only set up")
    return parser


def _port(text: str) -> int:
    port = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return port
