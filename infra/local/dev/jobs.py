"""`dev.py jobs list|show|cancel|resend|purge`: the jobs of an app, wherever it runs, over all owners.

They work on the storage account that `AzureWebJobsStorage` of local.settings.json or of the environment names.
No seal key is needed: inputs stay sealed, and are never read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from infra.local.dev import jobs_actions, jobs_output
from infra.local.dev.connection_storage import (
    ACCOUNT_SETTING,
    Place,
    place_of,
    read_settings,
    storage_errors,
    use_settings,
)
from infra.local.dev.console import DevError, say, warn
from infra.local.dev.operating import print_json, reported
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.store import JobStore, Query
from shared.jobs.table_store import TableJobStore
from shared.storage import STORAGE_SETTING, Storage

_ROLES = (
    "roles Storage Table Data Contributor, Storage Queue Data Contributor and Storage Blob Data Contributor"
)


def run(options: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> int:
    """The exit code. Raises `DevError`, or with `--json` prints it as an object."""

    def work() -> int:
        settings = read_settings(environ)
        use_settings(settings)  # proxies, certificates, identities: as the app has them
        place = place_of(settings)
        with storage_errors(place, _ROLES):
            return _ACTIONS[options.action](options, _store_of(place), place)

    return reported(options, work)


def _store_of(place: Place) -> JobStore:
    if not isinstance(place.tables, Storage):
        raise DevError(
            f"{STORAGE_SETTING} is not set: there is no storage account to look at.",
            f"`python3 dev.py run` makes local.settings.json; or set that or {ACCOUNT_SETTING}.",
        )
    return TableJobStore(place.tables)


def _list(options: argparse.Namespace, store: JobStore, place: Place) -> int:
    statuses = () if options.status is None else (Status(options.status),)
    query = Query(owner=options.owner, tool_name=options.tool, statuses=statuses)
    found, now = jobs_actions.find(store, query, options.limit), utc_now()
    if options.json:
        shown = [jobs_output.to_json(job, now) for job in found.jobs]
        print_json({"ok": True, "storage": place.label, "jobs": shown, "complete": found.complete})
        return 0
    if found.jobs:
        jobs_output.show_list(found.jobs, now)
    else:
        say(f"No such jobs in {place.label}.")
    _tell_cut(complete=found.complete)
    return 0


def _show(options: argparse.Namespace, store: JobStore, place: Place) -> int:
    found = store.with_logs(jobs_actions.check_id(options.job))
    job, lines = found or (jobs_actions.get(store, options.job), [])
    if options.json:
        print_json({"ok": True, "storage": place.label, "job": jobs_output.full_json(job, lines, utc_now())})
    else:
        jobs_output.show_job(job, lines, utc_now())
    return 0


def _cancel(options: argparse.Namespace, store: JobStore, place: Place) -> int:
    job = jobs_actions.cancel(store, options.job)
    text = "ended" if job.status.terminal else "was asked to stop; it ends within seconds, or with its lease"
    return _done(options, place, [job], f"Job {job.job_id} {text}.")


def _resend(options: argparse.Namespace, store: JobStore, place: Place) -> int:
    if not options.all_pending:
        job = jobs_actions.resend(store, options.job, utc_now())
        return _done(options, place, [job], f"Sent the message of job {job.job_id} again.")
    found = jobs_actions.pending(store)
    sent: list[Job] = []
    left: list[dict[str, str]] = []
    for job in found.jobs:
        try:
            sent.append(jobs_actions.resend(store, job.job_id, utc_now()))
        except jobs_actions.NotDoneError as error:
            left.append({"jobId": job.job_id, "reason": error.message})
    # What was taken, cancelled or removed between the scan and its turn needs no message any more.
    if not options.json:
        for one in left:
            warn(one["reason"])
        _tell_cut(complete=found.complete)
    text = f"Sent the messages of {len(sent)} pending jobs again."
    return _done(options, place, sent, text, notSent=left, complete=found.complete)


def _purge(options: argparse.Namespace, store: JobStore, place: Place) -> int:
    found = (
        jobs_actions.Found((jobs_actions.purgeable(store, options.job),))
        if options.job
        else jobs_actions.ended_before(store, jobs_actions.ago(options.older_than, utc_now()))
    )
    if found.jobs:
        _confirm(options, f"{len(found.jobs)} ended job{'s' * (len(found.jobs) != 1)} of {place.label}")
    gone: list[Job] = []
    try:
        gone.extend(jobs_actions.purge(store, found.jobs))
    finally:
        if not options.json:
            say(f"Removed {len(gone)} of {len(found.jobs)}." if found.jobs else "There is nothing to remove.")
    if options.json:
        removed = [job.job_id for job in gone]
        print_json({"ok": True, "storage": place.label, "removed": removed, "complete": found.complete})
    else:
        _tell_cut(complete=found.complete)
    return 0


_ACTIONS: dict[str, Callable[[argparse.Namespace, JobStore, Place], int]] = {
    "list": _list,
    "show": _show,
    "cancel": _cancel,
    "resend": _resend,
    "purge": _purge,
}


def _confirm(options: argparse.Namespace, what: str) -> None:
    """Raises `DevError` unless somebody wants it."""
    if options.yes:
        return
    if options.json or not sys.stdin.isatty():
        raise DevError(f"Nothing was removed: {what} would be, for good.", "Say --yes to do it.", exit_code=2)
    say(f"Remove {what} for good, with results, logs and files? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise DevError("Nothing was removed.")


def _done(options: argparse.Namespace, place: Place, jobs: list[Job], text: str, **more: Any) -> int:
    if options.json:
        shown = [jobs_output.to_json(job, utc_now()) for job in jobs]
        print_json({"ok": True, "storage": place.label, "jobs": shown, **more})
    else:
        say(text)
    return 0


def _tell_cut(*, complete: bool) -> None:
    if not complete:
        warn(f"not all jobs were looked at, in {jobs_actions.SCANS} requests: run it again, or ask for less.")
