"""Rows that are no jobs: idempotency keys, and what the timer remembers."""

from __future__ import annotations

import time

from shared.errors import JobError, LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.model import Job
from shared.jobs.store import KeyRow
from shared.jobs.table_parts import Parts
from shared.jobs.table_write import WRITE_BACKOFF, WRITE_TRIES
from shared.storage import make, upsert


class SideRows(Parts):
    """See `shared.jobs.store`."""

    def take_key(self, row: KeyRow) -> KeyRow | None:
        from azure.core.exceptions import (
            ResourceExistsError,
            ResourceNotFoundError,
            ServiceRequestError,
            ServiceResponseError,
        )

        for repetition in range(WRITE_TRIES):
            if repetition > 1:
                time.sleep(WRITE_BACKOFF * 2 ** (repetition - 2))
            try:
                self._table.create_entity(rows.key_entity(row))
            except ResourceExistsError:
                found = self.get_key(row.key)
                if found is None:
                    continue  # removed meanwhile
                # Our own insert, whose answer was lost and which was repeated.
                return None if found.job_id == row.job_id else found
            except ResourceNotFoundError:
                make(self._table.create_table)
                continue
            except (ServiceRequestError, ServiceResponseError):
                # The SDK repeats no insert, and storage drops idle connections.
                if repetition == WRITE_TRIES - 1:
                    raise
                continue
            return None
        raise JobError("The idempotency key could not be stored.")

    def get_key(self, key: str) -> KeyRow | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            entity = self._table.get_entity(keys.key_partition(key), keys.KEY_ROW)
        except ResourceNotFoundError:
            return None
        return rows.key_of(entity, entity.metadata["etag"] or "")

    def replace_key(self, old: KeyRow, new: KeyRow) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError
        from azure.data.tables import UpdateMode

        try:
            self._table.update_entity(
                rows.key_entity(new),
                mode=UpdateMode.REPLACE,
                etag=old.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        except (ResourceModifiedError, ResourceNotFoundError) as error:
            found = self.get_key(new.key)
            if found is None or found.job_id != new.job_id:
                raise LostLeaseError from error

    def get_state(self, name: str) -> str:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return str(self._table.get_entity(keys.STATE_PARTITION, name)["value"])
        except ResourceNotFoundError:
            return ""

    def put_state(self, name: str, value: str) -> None:
        upsert(self._table, {"PartitionKey": keys.STATE_PARTITION, "RowKey": name, "value": value})

    def _drop_key(self, job: Job) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceModifiedError

        row = self.get_key(job.idempotency)
        if row is None or row.job_id != job.job_id:
            return
        try:
            self._table.delete_entity(
                keys.key_partition(row.key),
                keys.KEY_ROW,
                etag=row.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        except ResourceModifiedError:
            return  # a newer job has it now
