"""Conditional writes of job rows, whatever happens to a request or its answer on the way.

Every write is conditional on the version that was read, and carries a fresh nonce. After an answer that says
"changed meanwhile" the row is read again: the own nonce in it means that the write went through and only its
answer was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from shared.errors import JobError, LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.model import Job
from shared.jobs.table_parts import Parts
from shared.storage import error_code, make, may_pass

#: Tries of one conditional write when the connection breaks or the service is busy; the SDK repeats only some.
WRITE_TRIES: Final = 5
#: Seconds before the second repetition, doubled each time; the first follows at once (a shut idle connection).
WRITE_BACKOFF: Final = 0.2


class RowWriter(Parts):
    """Writes job rows, alone or with others of their partition."""

    def get(self, job_id: str) -> Job | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            entity = self._table.get_entity(keys.partition_key(job_id), keys.JOB_ROW)
        except ResourceNotFoundError:
            return None
        return rows.job_of(entity, entity.metadata["etag"] or "")

    def _transact(self, fresh: Job, operations: list[Any]) -> Job:
        def submit() -> Job:
            # The job row is the first operation, and answers come in order.
            answers = self._table.submit_transaction(operations)
            return replace(fresh, etag=answers[0]["etag"] or "")

        return self._conditional(fresh, submit)

    def _conditional(self, fresh: Job, write: Callable[[], Job]) -> Job:
        """Carries out a conditional write, whatever happens to its request or its answer on the way."""
        from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

        for repetition in range(WRITE_TRIES):
            if repetition > 1:
                time.sleep(WRITE_BACKOFF * 2 ** (repetition - 2))
            try:
                written = write()
                if written.etag:
                    return written
                # An answer that was cut off in its head is no answer: the repetition finds out what it was.
            except (ServiceRequestError, ServiceResponseError, OSError):
                # OSError: a transaction's answer that breaks off in its body is read outside of the SDK's care.
                if repetition == WRITE_TRIES - 1:
                    raise
            except HttpResponseError as error:
                if error_code(error) == "TableNotFound":
                    make(self._table.create_table)
                elif error.status_code in (404, 409, 412):
                    return self._own_write(fresh, error)
                elif not may_pass(error) or repetition == WRITE_TRIES - 1:
                    raise
        raise JobError("The job could not be written.")

    def _own_write(self, fresh: Job, error: Exception) -> Job:
        """The row as stored, if it is the one we wrote: then only the answer was lost."""
        stored = self.get(fresh.job_id)
        if stored is not None and stored.nonce == fresh.nonce:
            return stored
        raise LostLeaseError from error
