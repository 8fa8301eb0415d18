"""What commands that work on an app's storage have in common: how they fail, and how they print JSON."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Callable
from typing import Any

from infra.local.dev.console import DevError, say
from shared.errors import ConnectionsError, JobError, SettingsError


def reported(options: argparse.Namespace, work: Callable[[], int]) -> int:
    """The exit code of `work`. A failure is raised as `DevError`, or with `--json` printed as an object."""
    for library in ("azure", "msal", "shared"):  # what they would print of a failure is told in words of ours
        logging.getLogger(library).addHandler(logging.NullHandler())
    try:
        return work()
    except (ConnectionsError, JobError, SettingsError) as error:
        failure = DevError(error.message)
    except DevError as error:
        failure = error
    if not options.json:
        raise failure
    print_json({"ok": False, "error": failure.message, **({"hint": failure.hint} if failure.hint else {})})
    return failure.exit_code


def print_json(document: dict[str, Any]) -> None:
    say(json.dumps(document, ensure_ascii=False))
