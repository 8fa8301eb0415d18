"""A job's table rows: the only place that knows their property names.

Times are ISO 8601 in UTC with milliseconds, as on the wire. Bodies and log chunks are binary: a text property
is counted in UTF-16 units, and escaping in JSON may triple it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from shared.jobs import keys, timings
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.store import KeyRow
from shared.jobs.timings import Timings
from shared.jobs.window import Window
from shared.tool.spec import ExecutionMode, Mode

_LOG = logging.getLogger(__name__)

type Entity = dict[str, Any]

#: The cap on error and progress texts, in characters: far below the 32,768 UTF-16 units of a property.
TEXT_LIMIT: Final = 8_000
SEALED: Final = "sealed"
LINES: Final = "lines"


def stamp(moment: datetime | None) -> str | None:
    """`2026-01-31T08:15:00.123Z`."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: object) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None


def new_nonce() -> str:
    return uuid.uuid4().hex[:16]


def job_entity(job: Job) -> Entity:
    """The whole row: writes replace it, so that an absent property is a removed one."""
    entity: Entity = {
        "PartitionKey": keys.partition_key(job.job_id),
        "RowKey": keys.JOB_ROW,
        "jobId": job.job_id,
        "owner": job.owner,
        "toolId": job.tool_id,
        "toolName": job.tool_name,
        "mode": str(job.mode),
        "executionMode": str(job.execution_mode),
        "correlationId": job.correlation_id,
        "status": str(job.status),
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "timeoutMs": job.timeout_ms,
        "createdAt": stamp(job.created_at),
        "progressPercent": job.progress_percent,
        "progressMessage": job.progress_message[:TEXT_LIMIT],
        "logLines": job.log_lines,
        "logChunk": job.log_chunk,
        "inputAt": job.input_at,
        "hasAuthToken": job.has_auth_token,
        "nonce": job.nonce,
    }
    optional: Entity = {
        "startedAt": stamp(job.started_at),
        "completedAt": stamp(job.completed_at),
        "attempts": timings.to_text(job.attempts) if job.attempts else None,
        "leaseUntil": stamp(job.lease_until),
        "error": job.error[:TEXT_LIMIT] or None,
        "errorCode": None if job.error_code is None else str(job.error_code),
        "prefillSummary": job.prefill_summary or None,
        "connectionName": job.connection_name or None,
        "timeoutAsked": job.timeout_asked or None,
        "sends": job.sends if job.sends != 1 else None,
        "sentAt": stamp(job.sent_at),
        "cancelRequested": job.cancel_requested or None,
        "kept": job.kept or None,
        "idempotency": job.idempotency or None,
        "deliveryError": job.delivery_error[:TEXT_LIMIT] or None,
        "window": None if job.window is None else job.window.to_text(),
        "traceparent": job.traceparent or None,
    }
    if job.result is not None:
        optional["resultSize"] = job.result.size
        optional["resultSha256"] = job.result.sha256 or None
        optional["resultAttempt"] = job.result.attempt or None
        optional["result"] = job.result.inline
    entity.update({name: value for name, value in optional.items() if value is not None})
    return entity


def _attempts(text: str | None) -> Timings:
    """What a row tells of attempts. Another release's form is as none: no move depends on it, and one row that
    cannot be read would stop every scan that meets it.
    """
    try:
        return timings.of_text(text) if text else ()
    except (ValueError, TypeError):
        return ()


def job_of(entity: Mapping[str, Any], etag: str) -> Job:
    created = moment(entity["createdAt"])
    if created is None:
        raise ValueError("a job row without createdAt")
    result: StoredBody | None = None
    if "resultSize" in entity:
        inline = entity.get("result")
        result = StoredBody(
            int(entity["resultSize"]),
            entity.get("resultSha256", ""),
            int(entity.get("resultAttempt", 0)),
            None if inline is None else bytes(inline),
        )
    code = entity.get("errorCode")
    window = entity.get("window")
    return Job(
        job_id=entity["jobId"],
        owner=entity["owner"],
        tool_id=entity["toolId"],
        tool_name=entity["toolName"],
        mode=Mode(entity["mode"]),
        execution_mode=ExecutionMode(entity["executionMode"]),
        correlation_id=entity["correlationId"],
        timeout_ms=int(entity["timeoutMs"]),
        max_attempts=int(entity["maxAttempts"]),
        created_at=created,
        status=Status(entity["status"]),
        attempt=int(entity["attempt"]),
        started_at=moment(entity.get("startedAt")),
        completed_at=moment(entity.get("completedAt")),
        attempts=_attempts(entity.get("attempts")),
        lease_until=moment(entity.get("leaseUntil")),
        progress_percent=int(entity["progressPercent"]),
        progress_message=entity["progressMessage"],
        result=result,
        error=entity.get("error", ""),
        error_code=None if code is None else ErrorCode(code),
        log_lines=int(entity["logLines"]),
        log_chunk=int(entity["logChunk"]),
        input_at=entity["inputAt"],
        has_auth_token=bool(entity["hasAuthToken"]),
        prefill_summary=entity.get("prefillSummary", ""),
        connection_name=entity.get("connectionName", ""),
        timeout_asked=bool(entity.get("timeoutAsked", False)),
        sends=int(entity.get("sends", 1)),
        sent_at=moment(entity.get("sentAt")),
        cancel_requested=bool(entity.get("cancelRequested", False)),
        kept=bool(entity.get("kept", False)),
        idempotency=entity.get("idempotency", ""),
        delivery_error=entity.get("deliveryError", ""),
        window=None if window is None else Window.of_text(window),
        traceparent=entity.get("traceparent", ""),
        nonce=entity["nonce"],
        etag=etag,
    )


def readable(found: Iterable[tuple[Mapping[str, Any], str]]) -> tuple[Job, ...]:
    """The jobs of rows with their versions. One that cannot be read must not hide the others: it is logged."""
    jobs: list[Job] = []
    for entity, etag in found:
        try:
            jobs.append(job_of(entity, etag))
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            _LOG.error("the job row %s cannot be read: %r", entity.get("PartitionKey"), error)
    return tuple(jobs)


def input_entity(job_id: str, sealed: bytes) -> Entity:
    return {"PartitionKey": keys.partition_key(job_id), "RowKey": keys.INPUT_ROW, SEALED: sealed}


def input_key(job_id: str) -> Entity:
    return {"PartitionKey": keys.partition_key(job_id), "RowKey": keys.INPUT_ROW}


def checkpoint_entity(job_id: str, sealed: bytes) -> Entity:
    return {**checkpoint_key(job_id), SEALED: sealed}


def checkpoint_key(job_id: str) -> Entity:
    return {"PartitionKey": keys.partition_key(job_id), "RowKey": keys.CHECKPOINT_ROW}


def chunk_entity(job_id: str, slot: int, data: bytes) -> Entity:
    return {"PartitionKey": keys.partition_key(job_id), "RowKey": keys.log_row(slot), LINES: data}


#: What a scan reads of a job's row: everything but a result body.
LIGHT: Final = (
    "PartitionKey",
    "RowKey",
    "jobId",
    "owner",
    "toolId",
    "toolName",
    "mode",
    "executionMode",
    "correlationId",
    "status",
    "attempt",
    "maxAttempts",
    "timeoutMs",
    "createdAt",
    "startedAt",
    "completedAt",
    "attempts",
    "leaseUntil",
    "progressPercent",
    "progressMessage",
    "logLines",
    "logChunk",
    "inputAt",
    "hasAuthToken",
    "error",
    "errorCode",
    "resultSize",
    "resultSha256",
    "resultAttempt",
    "prefillSummary",
    "connectionName",
    "timeoutAsked",
    "sends",
    "sentAt",
    "cancelRequested",
    "kept",
    "idempotency",
    "deliveryError",
    "window",
    "traceparent",
    "nonce",
)


def key_entity(row: KeyRow) -> Entity:
    return {
        "PartitionKey": keys.key_partition(row.key),
        "RowKey": keys.KEY_ROW,
        "jobId": row.job_id,
        "fingerprint": row.fingerprint,
    }


def key_of(entity: Mapping[str, Any], etag: str) -> KeyRow:
    partition = str(entity["PartitionKey"])
    return KeyRow(partition.removeprefix(keys.key_partition("")), entity["jobId"], entity["fingerprint"], etag)
