"""One job for one idempotency key: a repeated call gets the job that the first one made.

A key belongs to an owner and a tool, and lives as long as its job. Neither it nor the arguments are stored,
only HMACs of them under the seal key. A job's row stands before its key's row does, so a key always leads to a
job; whoever finds the key taken removes its own job, whose message was never sent.

    partition   HMAC of [owner, tool, key]
    row         the job's id, and the fingerprint: HMAC of the arguments
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from shared.errors import IdempotencyError, JobError, LostLeaseError
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore, KeyRow
from shared.tool.spec import JsonObject

#: A key that other calls keep taking and leaving is given up after so many tries.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key as it is looked up: under the current seal key first, then under older ones."""

    keys: tuple[str, ...]
    fingerprints: tuple[str, ...]

    @property
    def current(self) -> str:
        return self.keys[0]


def make_key(owner: str, tool: str, key: str, arguments: JsonObject, sealer: Sealer) -> Key:
    """Raises `SettingsError` when there is no seal key."""
    scope = json.dumps([owner, tool, key]).encode()
    canonical = json.dumps(arguments, sort_keys=True, separators=(",", ":")).encode()
    return Key(sealer.digests("idempotency-key", scope), sealer.digests("idempotency-arguments", canonical))


def settle(job: Job, key: Key, store: JobStore) -> Job:
    """The job that the key stands for: `job`, or the one that was there first. Blocks.

    Raises `IdempotencyError` when that one was made for other arguments.
    """
    own = KeyRow(key.current, job.job_id, key.fingerprints[0])
    for _ in range(_TRIES):
        found = _under_older(key, store) or store.take_key(own)
        if found is None:
            return job
        winner = store.get(found.job_id)
        if winner is not None:
            if found.fingerprint != key.fingerprints[key.keys.index(found.key)]:
                raise IdempotencyError
            return winner
        # Its job is gone: purged, or removed by a call that lost. The key is free again.
        try:
            store.replace_key(found, own)
        except LostLeaseError:
            continue
        return job
    raise JobError("The idempotency key could not be settled; send the call again.")


def is_tied(job: Job, store: JobStore) -> bool:
    """Whether a job with an idempotency key is the one that the key leads to. Blocks.

    A call that was cut off between its job's row and its key's row leaves a job that nobody was told of.
    """
    if not job.idempotency:
        return True
    row = store.get_key(job.idempotency)
    return row is not None and row.job_id == job.job_id


def _under_older(key: Key, store: JobStore) -> KeyRow | None:
    """The row under an older seal key, if its job stands: there are such while keys are exchanged."""
    for older in key.keys[1:]:
        found = store.get_key(older)
        if found is not None and store.get(found.job_id) is not None:
            return found
    return None
