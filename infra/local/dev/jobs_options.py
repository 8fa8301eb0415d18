"""What `dev.py jobs …` takes on its command line. Read by any Python from 3.8 on."""

from __future__ import annotations

import argparse
import re
from typing import Any

STATUSES = ("pending", "in_progress", "completed", "failed")
MOST_LISTED = 1000
_AGE = re.compile(r"([1-9][0-9]{0,4})([dhm])", re.ASCII)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60}


def add_parser(commands: Any) -> None:
    """Add `jobs` to the commands of dev.py."""
    parser = commands.add_parser(
        "jobs",
        help="jobs of any environment: list, show, cancel, resend, purge",
        description="Works on the storage account that local.settings.json or the environment names "
        "(AzureWebJobsStorage, or AzureWebJobsStorage__accountName with `az login`), over all owners. "
        "Exit code: 0 done, 1 not done, 2 the command line is wrong.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|cancel|resend|purge")
    list_ = actions.add_parser("list", help="newest first; changes nothing")
    list_.add_argument("--owner", metavar="OWNER", help="only this owner's (default: all owners')")
    list_.add_argument("--status", choices=STATUSES, help="only those in this state")
    list_.add_argument("--tool", metavar="TOOL", help="only this tool's")
    list_.add_argument("--limit", type=_limit, default=20, metavar="N", help=f"1 to {MOST_LISTED} (default 20)")
    show = actions.add_parser("show", help="state, log, and what kind of result; changes nothing")
    show.add_argument("job", metavar="JOB", help="the job's id")
    cancel = actions.add_parser("cancel", help="end a pending job, ask a running one to stop")
    cancel.add_argument("job", metavar="JOB", help="the job's id")
    resend = actions.add_parser("resend", help="send the message of pending jobs again")
    which = resend.add_mutually_exclusive_group(required=True)
    which.add_argument("job", nargs="?", metavar="JOB", help="the job's id")
    which.add_argument("--all-pending", action="store_true", help="all that wait for a worker")
    purge = actions.add_parser("purge", help="remove ended jobs for good, with their results, logs and files")
    old = purge.add_mutually_exclusive_group(required=True)
    old.add_argument("job", nargs="?", metavar="JOB", help="the job's id")
    old.add_argument("--older-than", type=_age, metavar="AGE", help="all that ended so long ago: 7d, 12h, 30m")
    purge.add_argument("--yes", action="store_true", help="do not ask")
    for action in (list_, show, cancel, resend, purge):
        action.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def _limit(text: str) -> int:
    limit = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= limit <= MOST_LISTED:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MOST_LISTED}")
    return limit


def _age(text: str) -> int:
    """Seconds."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError("must be a number and d, h or m: 7d, 12h, 30m")
    return int(match.group(1)) * _SECONDS[match.group(2)]
