"""Ids and keys of stored jobs.

    job id         UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits; lower-case, with hyphens
    partition key  the id's 128 bits inverted, as 32 hex digits: newer jobs sort first, and the key is computed
                   from the id, so that every read of a job is a point read
    row keys       "in"        the sealed input (until the job has ended)
                   "job"       the job itself
                   "log-NN"    a chunk of its log, NN = 00 … RING-1
    blob names     "<job id>/in", "<job id>/result-N", N = the attempt: a lost worker cannot overwrite another's

"in" < "job" < "log-": one range read of a partition from "job" on gives a job with its log and without its
input. Keys hold only digits, lower-case letters and hyphens, none of which Table storage forbids (/ \\ # ? and
control characters).
"""

from __future__ import annotations

import os
import re
import time
import uuid
from typing import Final

JOB_ROW: Final = "job"
INPUT_ROW: Final = "in"
LOG_ROW_PREFIX: Final = "log-"

_JOB_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_ALL_BITS = (1 << 128) - 1


def new_job_id(now_ms: int | None = None) -> str:
    """A new UUIDv7. `now_ms`: milliseconds since 1970 (the clock's when absent)."""
    milliseconds = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_job_id(text: object) -> bool:
    """Whether the text can be a job id. Checked before any storage call."""
    return isinstance(text, str) and _JOB_ID.fullmatch(text) is not None


def partition_key(job_id: str) -> str:
    return f"{_ALL_BITS ^ uuid.UUID(job_id).int:032x}"


def job_id_of(partition: str) -> str:
    """The inverse of `partition_key`."""
    return str(uuid.UUID(int=_ALL_BITS ^ int(partition, 16)))


def log_row(slot: int) -> str:
    return f"{LOG_ROW_PREFIX}{slot:02d}"


def input_blob(job_id: str) -> str:
    return f"{job_id}/in"


def result_blob(job_id: str, attempt: int) -> str:
    return f"{job_id}/result-{attempt}"
