"""One environment: definitions, records, and who may use it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from infra.local.dataverse.catalogue import Catalogue
from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.schema import Ref, stable_id
from infra.local.dataverse.store import Store
from infra.local.dataverse.tables import add_tables
from infra.local.dataverse.values import as_guid, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

VERSION = "9.2.25094.00182"


class Environment:
    """An environment with the sample tables. Its methods may be called from any thread.

    `apps` are the client ids that have a user here; None admits every app of the tenant.
    """

    def __init__(self, name: str, apps: Iterable[str] | None = None) -> None:
        self.name = name
        self.apps = None if apps is None else frozenset(apps)
        self.organization_id = stable_id("organization", name)
        self.business_unit_id = stable_id("businessunit", name)
        self.lock = threading.RLock()
        self.published: list[str] = []  # ParameterXml of each PublishXml, "*" for PublishAllXml
        self.components: list[tuple[str, str]] = []  # (solution, id) of definitions written for a solution
        self.catalogue = Catalogue()
        self.store = Store(self.catalogue)
        add_tables(self.catalogue)
        unit = {"name": name, "organizationid": self.organization_id}
        self.store.create(self.catalogue.table("businessunit"), unit, self.business_unit_id)
        for solution, label in (("Default", "Default Solution"), ("samplecore", "Sample Core")):
            fields = {"uniquename": solution, "friendlyname": label, "version": "1.0.0.0", "ismanaged": False,
                      "isvisible": True}  # fmt: skip
            self.store.create(self.catalogue.table("solution"), fields, stable_id("solution", name, solution))

    def user_of(self, app: str) -> str:
        """The id of an app's user; made at its first use. Raises ApiError (403) when it has none here."""
        if self.apps is not None and app not in self.apps:
            raise ApiError(403, "0x80072560", "The user is not a member of the organization.")
        user_id = stable_id("user", self.name, app)
        table = self.catalogue.table("systemuser")
        if user_id not in self.store.table("systemuser"):
            unit = Ref("businessunit", self.business_unit_id)
            fields = {"firstname": "#", "lastname": app, "applicationid": as_guid(app), "businessunitid": unit,
                      "isdisabled": False}  # fmt: skip
            self.store.create(table, fields, user_id)
        return user_id

    def insert(self, table_name: str, values: Mapping[str, Any], row_id: str | None = None) -> str:
        """Add a record directly and tell its id. A lookup's value is `Ref(table, id)`. Raises ApiError."""
        with self.lock:
            table = self.catalogue.table(table_name)
            stored = {}
            for name, value in values.items():
                column = table.columns[name]
                options = self.catalogue.options(column)
                stored[name] = value if isinstance(value, Ref) else read_json(value, column, table, options)
            return self.store.create(table, stored, row_id).id

    def record(self, table_name: str, row_id: str) -> dict[str, Any] | None:
        """What is stored of a record, by column name; None when there is none."""
        with self.lock:
            row = self.store.table(table_name).get(row_id)
            return None if row is None else dict(row.values)

    def ids(self, table_name: str) -> list[str]:
        """The ids of a table's records, in order of creation."""
        with self.lock:
            return list(self.store.table(table_name))

    def clear(self, table_name: str) -> None:
        """Remove every record of a table, without any of what a DELETE does."""
        with self.lock:
            self.store.table(table_name).clear()
