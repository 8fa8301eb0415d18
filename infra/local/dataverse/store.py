"""The records of one environment, with versions (ETags), links, and an undo log for change sets."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse import values as value_rules
from infra.local.dataverse.errors import duplicate
from infra.local.dataverse.rows import KeyIndex, Row, find_slowly
from infra.local.dataverse.schema import CHOICES, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from infra.local.dataverse.catalogue import Catalogue
    from infra.local.dataverse.schema import ManyToMany, Navigation, Table

_FIRST_VERSION: Final = 1_000_000


class Store:
    """Rows by table and id, in order of creation; links by relationship."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.rows: dict[str, dict[str, Row]] = {}
        self.links: dict[str, dict[tuple[str, str], None]] = {}
        self.user: Ref | None = None  # who creates and owns: set for each request
        self._version = _FIRST_VERSION
        self._numbers: dict[str, int] = {}  # of deleted records too: a paging cookie may name one
        self._keys = KeyIndex(self.table)
        self._created = 0
        self._undo: list[Callable[[], object]] | None = None

    def table(self, name: str) -> dict[str, Row]:
        """The rows of a table."""
        return self.rows.setdefault(name, {})

    def create(self, table: Table, values: Mapping[str, Any], row_id: str | None = None) -> Row:
        """A new record. Raises ApiError (412) when its id or an alternate key is taken."""
        rows = self.table(table.name)
        row = Row(row_id or value_rules.new_guid())
        if row.id in rows:
            raise duplicate()
        row.values = {
            **self._defaults(table),
            **{name: value for name, value in values.items() if value is not None},
        }
        row.values[table.primary_id] = row.id
        self._complete(table, row)
        self._check_keys(table, row)
        self._touch(row)
        rows[row.id] = row
        self._created += 1
        row.number = self._numbers[row.id] = self._created
        self._keys.note(table.name, row)
        self._log(lambda: rows.pop(row.id, None))
        return row

    def update(self, table: Table, row: Row, values: Mapping[str, Any]) -> None:
        """Change a record: a value None clears. Raises ApiError (412) when an alternate key is taken."""
        before, version = dict(row.values), row.version
        row.values.update(values)
        row.values = {name: value for name, value in row.values.items() if value is not None}
        row.values[table.primary_id] = row.id
        if "modifiedon" in table.columns:
            row.values["modifiedon"] = value_rules.now()
        self._complete(table, row)
        try:
            self._check_keys(table, row)
        except Exception:
            row.values = before
            raise
        self._touch(row)
        self._keys.note(table.name, row)
        self._log(lambda: self._restore(table.name, row, before, version))

    def delete(self, table: Table, row: Row) -> None:
        """Remove a record, the links it has, and what points to it."""
        rows = self.table(table.name)
        del rows[row.id]
        self._log(lambda: self._put_back(table.name, row))
        for many in self.catalogue.many_to_many.values():
            for pair in [
                pair for pair in self.links.get(many.name, ()) if self._touches(many, pair, table, row.id)
            ]:
                self.unlink(many, *pair)
        for one in self.catalogue.one_to_many.values():
            if one.parent == table.name:
                child = self.catalogue.table(one.child)
                for other in list(self.table(child.name).values()):
                    if other.values.get(one.column) == Ref(table.name, row.id):
                        self.update(child, other, {one.column: None})

    def link(self, many: ManyToMany, first: str, second: str) -> None:
        """Relate two records. Raises ApiError (412) when they are related already."""
        pairs = self.links.setdefault(many.name, {})
        if (first, second) in pairs:
            raise duplicate()
        pairs[first, second] = None
        self._log(lambda: pairs.pop((first, second), None))

    def unlink(self, many: ManyToMany, first: str, second: str) -> None:
        """Take two records apart; nothing happens when they were."""
        pairs = self.links.setdefault(many.name, {})
        if (first, second) in pairs:
            del pairs[first, second]
            self._log(lambda: pairs.setdefault((first, second), None))

    def related(self, row: Row, table: Table, navigation: Navigation) -> list[Row]:
        """The records a navigation property leads to."""
        rows = self.table(navigation.target)
        if navigation.many is not None:
            pairs = self.links.get(navigation.many.name, {})
            ids = [first if navigation.flipped else second for first, second in pairs
                   if (second if navigation.flipped else first) == row.id]  # fmt: skip
            return [rows[one] for one in ids if one in rows]
        column = navigation.column or ""
        if navigation.collection:
            return [other for other in rows.values() if other.values.get(column) == Ref(table.name, row.id)]
        ref = row.values.get(column)
        found = rows.get(ref.id) if isinstance(ref, Ref) and ref.table == navigation.target else None
        return [found] if found else []

    def by_key(self, table: Table, key: Mapping[str, Any]) -> Row | None:
        """The record of some columns' values; quick for those of a declared alternate key."""
        names = sorted(key)
        if any(names == sorted(columns) for columns in table.keys.values()):
            return self._keys.find(table.name, key)
        return find_slowly(self.table(table.name).values(), key)

    def number_of(self, row_id: str) -> int:
        """When a record was created, counted over all; -1 for one that never was."""
        return self._numbers.get(row_id, -1)

    def name_of(self, ref: Ref) -> str | None:
        """The primary name of the record a lookup points to."""
        row = self.table(ref.table).get(ref.id)
        return None if row is None else row.values.get(self.catalogue.table(ref.table).primary_name)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes made within, or none when it ends with an exception. One in another is part of it."""
        if self._undo is not None:
            yield
            return
        self._undo = []
        try:
            yield
        except BaseException:
            steps, self._undo = self._undo, None
            for step in reversed(steps):
                step()
            raise
        finally:
            self._undo = None

    def _log(self, step: Callable[[], object]) -> None:
        if self._undo is not None:
            self._undo.append(step)

    def _touch(self, row: Row) -> None:
        self._version += 1
        row.version = self._version
        if "versionnumber" in row.values:
            row.values["versionnumber"] = row.version

    def _defaults(self, table: Table) -> dict[str, Any]:
        moment = value_rules.now()
        known: dict[str, Any] = {"createdon": moment, "modifiedon": moment, "versionnumber": 0}
        if self.user is not None:
            known |= {"ownerid": self.user, "createdby": self.user}
        known |= {name: min(self.catalogue.options(column)) for name, column in table.columns.items()
                  if name in {"statecode", "statuscode"} and column.kind in CHOICES}  # fmt: skip
        return {name: value for name, value in known.items() if name in table.columns}

    def _complete(self, table: Table, row: Row) -> None:
        if "fullname" in table.columns and not {"firstname", "lastname"}.isdisjoint(row.values):
            parts = (row.values.get("firstname"), row.values.get("lastname"))
            row.values["fullname"] = " ".join(part for part in parts if part)

    def _check_keys(self, table: Table, row: Row) -> None:
        for name, columns in table.keys.items():
            key = {column: row.values.get(column) for column in columns}
            if None in key.values():
                continue
            other = self.by_key(table, key)
            if other is not None and other is not row:
                names = ", ".join(columns)
                message = (
                    f"Entity Key {name} violated. A record with the same value for {names} "
                    "already exists. A duplicate record cannot be created. Select one or more unique values "
                    "and try again."
                )
                raise duplicate(message, "0x80060892")

    def _put_back(self, table: str, row: Row) -> None:
        rows = self.table(table)
        ordered = sorted([*rows.values(), row], key=lambda one: one.number)
        rows.clear()  # in place: other steps of the undo log hold on to it
        rows.update({one.id: one for one in ordered})
        self._keys.note(table, row)

    def _restore(self, table: str, row: Row, values: dict[str, Any], version: int) -> None:
        row.values, row.version = values, version
        self._keys.note(table, row)

    @staticmethod
    def _touches(many: ManyToMany, pair: tuple[str, str], table: Table, row_id: str) -> bool:
        return (many.first == table.name and pair[0] == row_id) or (
            many.second == table.name and pair[1] == row_id
        )
