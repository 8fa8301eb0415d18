"""The definitions of one environment: looked up by requests, changed by metadata requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.dataverse.errors import ApiError, unknown_segment
from infra.local.dataverse.schema import Navigation, OneToMany, stable_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.dataverse.schema import Column, ManyToMany, Table

_FIRST_CUSTOM_TYPE_CODE = 10_000


@dataclass(slots=True)
class OptionSet:
    """A global choice."""

    name: str
    label: str
    options: dict[int, str]
    id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = self.id or stable_id("optionset", self.name)


@dataclass(slots=True)
class Catalogue:
    """Tables by logical name, relationships by schema name, option sets by name."""

    tables: dict[str, Table] = field(default_factory=dict)
    one_to_many: dict[str, OneToMany] = field(default_factory=dict)
    many_to_many: dict[str, ManyToMany] = field(default_factory=dict)
    option_sets: dict[str, OptionSet] = field(default_factory=dict)

    def add(self, table: Table) -> Table:
        """Take a table in."""
        if not table.type_code:
            table.type_code = _FIRST_CUSTOM_TYPE_CODE + len(self.tables)
        self.tables[table.name] = table
        return table

    def relate(self, *relationships: OneToMany | ManyToMany) -> None:
        """Take relationships in."""
        for relationship in relationships:
            if isinstance(relationship, OneToMany):
                self.one_to_many[relationship.name] = relationship
            else:
                self.many_to_many[relationship.name] = relationship

    def table(self, name: str) -> Table:
        """The table of a logical name. Raises ApiError."""
        if (found := self.tables.get(name)) is None:
            raise ApiError(
                400, "0x80041102", f"The entity with a name = '{name}' was not found in the MetadataCache."
            )
        return found

    def by_set(self, set_name: str) -> Table | None:
        """The table of an entity set; names mind their case."""
        return next((table for table in self.tables.values() if table.set_name == set_name), None)

    def require_set(self, set_name: str) -> Table:
        """The table of an entity set. Raises ApiError (404)."""
        if (found := self.by_set(set_name)) is None:
            raise unknown_segment(set_name)
        return found

    def navigations(self, table: Table) -> Iterator[Navigation]:
        """Every navigation property of a table."""
        for one in self.one_to_many.values():
            if one.child == table.name:
                yield Navigation(one.single_name, one.parent, collection=False, column=one.column)
            if one.parent == table.name:
                yield Navigation(one.many_name, one.child, collection=True, column=one.column)
        for many in self.many_to_many.values():
            if many.first == table.name:
                yield Navigation(many.first_name, many.second, collection=True, many=many)
            if many.second == table.name:
                yield Navigation(many.second_name, many.first, collection=True, many=many, flipped=True)

    def navigation(self, table: Table, name: str) -> Navigation | None:
        """A navigation property by name."""
        return next((found for found in self.navigations(table) if found.name == name), None)

    def options(self, column: Column) -> dict[int, str]:
        """The choices of a column, its own or its global option set's; to be changed in place."""
        if column.option_set is not None and column.option_set in self.option_sets:
            return self.option_sets[column.option_set].options
        return column.options

    def drop_table(self, table: Table) -> None:
        """Forget a table and the relationships it takes part in."""
        del self.tables[table.name]
        for one in [one for one in self.one_to_many.values() if table.name in {one.parent, one.child}]:
            del self.one_to_many[one.name]
        for many in [many for many in self.many_to_many.values() if table.name in {many.first, many.second}]:
            del self.many_to_many[many.name]
