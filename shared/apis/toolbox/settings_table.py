"""Tools' settings in the app's storage account."""

from __future__ import annotations

import json
from typing import Any

from shared.apis.toolbox.settings import TABLE, partition_of
from shared.errors import LostLeaseError
from shared.storage import Storage, make
from shared.tool.spec import JsonObject


class TableSettingsStore:
    """A `SettingsStore`; the table is made when first missed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self, owner: str, tool: str) -> tuple[JsonObject, str]:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            row = self._storage.table(TABLE).get_entity(partition_of(owner), tool)
        except ResourceNotFoundError:
            return {}, ""
        found: JsonObject = json.loads(row["values"])
        return found, str(row.metadata["etag"] or "")

    def write(self, owner: str, tool: str, values: JsonObject, version: str) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import (
            ResourceExistsError,
            ResourceModifiedError,
            ResourceNotFoundError,
        )
        from azure.data.tables import UpdateMode

        table = self._storage.table(TABLE)
        row: dict[str, Any] = {
            "PartitionKey": partition_of(owner),
            "RowKey": tool,
            "values": json.dumps(values, ensure_ascii=False),
        }
        try:
            if version:
                condition = MatchConditions.IfNotModified
                table.update_entity(row, mode=UpdateMode.REPLACE, etag=version, match_condition=condition)
            else:
                self._insert(row)
        except (ResourceExistsError, ResourceModifiedError, ResourceNotFoundError) as error:
            raise LostLeaseError from error

    def _insert(self, row: dict[str, Any]) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        table = self._storage.table(TABLE)
        try:
            table.create_entity(row)
        except ResourceNotFoundError:
            make(table.create_table)
            table.create_entity(row)
