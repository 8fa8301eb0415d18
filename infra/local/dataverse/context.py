"""What the handlers of one request share, and how records are addressed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.call import Answer, parse_path, split_outside
from infra.local.dataverse.errors import bad_query, missing_record, unknown_property, version_mismatch
from infra.local.dataverse.literals import parse_literal
from infra.local.dataverse.render import Renderer
from infra.local.dataverse.schema import LOOKUPS, Ref
from infra.local.dataverse.values import as_guid

if TYPE_CHECKING:
    from infra.local.dataverse.call import Call, Segment
    from infra.local.dataverse.environment import Environment
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Table

_ROOT: Final = re.compile(r"^(?:https?://[^/]+)?/?api/data/v\d+\.\d+/")


class Context:
    """An environment, a call to it, and the user who makes it."""

    def __init__(self, environment: Environment, call: Call, user_id: str) -> None:
        self.environment = environment
        self.catalogue = environment.catalogue
        self.store = environment.store
        self.call = call
        self.user_id = user_id
        self.renderer = Renderer(environment.store, call)

    @property
    def wants_representation(self) -> bool:
        """Whether the record is to be answered after a write."""
        return self.call.prefer.get("return", "") == "representation"

    def key_of(self, table: Table, text: str) -> dict[str, Any]:
        """A key predicate by column: the primary key, or every column of an alternate one. Raises ApiError."""
        if (guid := as_guid(text)) is not None:
            return {table.primary_id: guid}
        key: dict[str, Any] = {}
        for part in split_outside(text, ","):
            name, equals, value = part.partition("=")
            if not equals:
                raise bad_query()
            if value.strip().startswith("@"):
                value = self.call.query.get(value.strip(), "")
            column = table.by_property(name.strip())
            if column is None:
                raise unknown_property(name.strip(), table.name)
            literal = parse_literal(value)
            if literal is None:
                raise bad_query()
            key[column.name] = literal.value
            if column.kind in LOOKUPS:
                key[column.name] = Ref(column.targets[0], str(literal.value))
        if set(key) != {table.primary_id} and not any(
            set(key) == set(columns) for columns in table.keys.values()
        ):
            raise bad_query("The specified key attributes are not a defined key for the "
                            f"{table.name} entity")  # fmt: skip
        return key

    def find(self, table: Table, key: dict[str, Any]) -> Row | None:
        """The record of a key, if there is one."""
        if set(key) == {table.primary_id}:
            return self.store.table(table.name).get(key[table.primary_id])
        return self.store.by_key(table, key)

    def require(self, table: Table, key_text: str | None) -> Row:
        """The record a path names. Raises ApiError: 400 for a malformed key, 404 without a record."""
        key = self.key_of(table, key_text or "")
        row = self.find(table, key)
        if row is None:
            raise missing_record(table.name, str(key.get(table.primary_id, key_text)))
        return row

    def resolve(self, uri: str) -> tuple[Table, Row]:
        """The record of an `@odata.bind` or `@odata.id`, absolute or relative. Raises ApiError."""
        segments = parse_path(_ROOT.sub("", uri))
        table = self.catalogue.require_set(segments[0].name)
        if len(segments) != 1 or segments[0].key is None:
            raise bad_query(f"Invalid URI '{uri}' for a reference.")
        return table, self.require(table, segments[0].key)

    def check_match(self, row: Row) -> None:
        """Hold the version of a record against If-Match. Raises ApiError (412)."""
        wanted = self.call.header("if-match")
        if wanted not in {None, "*", row.etag}:
            raise version_mismatch()

    def location(self, table: Table, row: Row) -> str:
        """The address of a record."""
        return f"{self.call.root}{table.set_name}({row.id})"


def operation_name(segment: Segment) -> str:
    """The name of a function or action without its namespace."""
    return segment.name.removeprefix("Microsoft.Dynamics.CRM.")


def entity_reference(table: Table, row: Row) -> dict[str, Any]:
    """A record as an action answers it."""
    return {"@odata.type": f"#Microsoft.Dynamics.CRM.{table.name}", table.primary_id: row.id}


def created(location: str) -> Answer:
    """204 with the address of what was made."""
    return Answer(204, headers={"OData-EntityId": location, "Location": location})
