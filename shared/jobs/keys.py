"""Ids and keys of stored jobs.

    job id         UUIDv7, see `shared.ids`
    partition key  the id inverted: newer jobs sort first, and the key is computed from the id, so that every
                   read of a job is a point read
    row keys       "checkpoint"  what an attempt has kept for the next one, sealed (until the job has ended)
                   "in"        the sealed input (until the job has ended)
                   "job"       the job itself
                   "log-NN"    a chunk of its log, NN = 00 … RING-1
    blob names     "<job id>/in", "<job id>/result-N", "<job id>/artifact-N/<name>", "<job id>/part-N/NNNNN",
                   N = the attempt: a lost worker cannot overwrite another's

Two more kinds of rows, whose partitions sort behind those of jobs:

    "key-<hash>" / "key"   an idempotency key, see `shared.jobs.idempotency`
    "state" / <name>       what the reaper remembers

"checkpoint" < "in" < "job" < "log-": one range read of a partition from "job" on gives a job with its log and
without its input, one up to "job" gives what a worker needs. Keys hold only digits, lower-case letters and
hyphens, none of which Table storage forbids (/ \\ # ? and control characters).
"""

from __future__ import annotations

from typing import Final

from shared import ids

JOB_ROW: Final = "job"
INPUT_ROW: Final = "in"
CHECKPOINT_ROW: Final = "checkpoint"
LOG_ROW_PREFIX: Final = "log-"
KEY_ROW: Final = "key"
STATE_PARTITION: Final = "state"
#: Behind every job's partition, before every other one.
END_OF_JOBS: Final = "g"

new_job_id = ids.new_id
is_job_id = ids.is_id
partition_key = ids.inverted
job_id_of = ids.of_inverted


def log_row(slot: int) -> str:
    return f"{LOG_ROW_PREFIX}{slot:02d}"


def input_blob(job_id: str) -> str:
    return f"{job_id}/in"


def result_blob(job_id: str, attempt: int) -> str:
    return f"{job_id}/result-{attempt}"


def key_partition(digest: str) -> str:
    return f"key-{digest}"


def blob_prefix(job_id: str) -> str:
    return f"{job_id}/"


def artifact_blob(job_id: str, attempt: int, name: str) -> str:
    return f"{job_id}/artifact-{attempt}/{name}"


def part_blob(job_id: str, attempt: int, number: int) -> str:
    """Of the parts that an attempt has kept for the next one, counted from 0."""
    return f"{parts_prefix(job_id)}{attempt}/{number:05d}"


def parts_prefix(job_id: str) -> str:
    return f"{job_id}/part-"


def first_partition(milliseconds: int) -> str:
    """Where the jobs begin that were made at that time or earlier: newer ones sort before it."""
    return f"{(1 << 48) - 1 - milliseconds:012x}"
