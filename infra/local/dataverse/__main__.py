"""Command line of the stand-in: runs it until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.dataverse.seed import add_companies
from infra.local.dataverse.stand_in import EnvironmentSpec, StandIn

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when it cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.local.dataverse", description="Run a stand-in for Dataverse on this machine."
    )
    parser.add_argument(
        "--port", type=int, default=0, help="of the first environment; 0 picks free ones (default)"
    )
    parser.add_argument("--environments", default="dev", metavar="NAMES", help="comma-separated (default dev)")
    parser.add_argument("--accounts", type=int, default=12, help="records to begin with (default 12)")
    parser.add_argument(
        "--companies", type=int, default=0, help="records that look real, with contacts (default 0)"
    )
    parser.add_argument("--token-lifetime", type=float, default=3600, metavar="SECONDS")
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="gets addresses and the app's secret, as JSON"
    )
    given = parser.parse_args(arguments)
    specs = [EnvironmentSpec(name.strip(), accounts=given.accounts) for name in given.environments.split(",")]
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # for the server's thread too: they are waited for below
    try:
        stand_in = StandIn.start(specs, port=given.port, token_lifetime=given.token_lifetime)
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"The Dataverse stand-in cannot start: {error}\n")
        return 1
    with stand_in:
        for name in stand_in.names:
            add_companies(stand_in.environment(name), given.companies)
            sys.stdout.write(f"environment {name}: {stand_in.url(name)}\n")
        sys.stdout.write(f"authority to trust: {stand_in.ca_file}\n")
        sys.stdout.write(f"Dataverse stand-in ready: {stand_in.url()}\n")
        sys.stdout.flush()
        if given.ready_file is not None:
            try:
                _write_ready(stand_in, given.ready_file)
            except OSError as error:
                sys.stderr.write(f"The ready file cannot be written: {error.strerror}\n")
                return 1
        signal.sigwait(ends)
        if given.ready_file is not None:
            given.ready_file.unlink(missing_ok=True)
    return 0


def _write_ready(stand_in: StandIn, path: Path) -> None:
    """For the owner alone, in one step: it has the app's secret."""
    document = {
        "pid": os.getpid(),
        "environments": {name: stand_in.connection(name) for name in stand_in.names},
    }
    draft = path.with_name(path.name + ".part")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file)
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
