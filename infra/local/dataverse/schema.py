"""Tables, columns, relationships and option sets: what metadata answers describe and what data must fit."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

_IDS: Final = uuid.UUID("6f0c8a52-0c0f-4f7e-9e61-3d6a6c1c7d10")


def stable_id(*parts: str) -> str:
    """A GUID that is the same in every run for the same parts."""
    return str(uuid.uuid5(_IDS, "/".join(parts)))


class Kind(StrEnum):
    """AttributeType of a column's definition."""

    STRING = "String"
    MEMO = "Memo"
    INTEGER = "Integer"
    BIGINT = "BigInt"
    DECIMAL = "Decimal"
    DOUBLE = "Double"
    MONEY = "Money"
    BOOLEAN = "Boolean"
    DATETIME = "DateTime"
    PICKLIST = "Picklist"
    STATE = "State"
    STATUS = "Status"
    LOOKUP = "Lookup"
    CUSTOMER = "Customer"
    OWNER = "Owner"
    ID = "Uniqueidentifier"


TEXT: Final = frozenset({Kind.STRING, Kind.MEMO})
NUMBERS: Final = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE, Kind.MONEY})
WHOLE: Final = frozenset({Kind.INTEGER, Kind.BIGINT})
CHOICES: Final = frozenset({Kind.PICKLIST, Kind.STATE, Kind.STATUS})
LOOKUPS: Final = frozenset({Kind.LOOKUP, Kind.CUSTOMER, Kind.OWNER})

#: OData type of a kind's property.
EDM: Final = {
    Kind.STRING: "Edm.String", Kind.MEMO: "Edm.String", Kind.INTEGER: "Edm.Int32", Kind.BIGINT: "Edm.Int64",
    Kind.DECIMAL: "Edm.Decimal", Kind.DOUBLE: "Edm.Double", Kind.MONEY: "Edm.Decimal",
    Kind.BOOLEAN: "Edm.Boolean", Kind.DATETIME: "Edm.DateTimeOffset", Kind.PICKLIST: "Edm.Int32",
    Kind.STATE: "Edm.Int32", Kind.STATUS: "Edm.Int32", Kind.LOOKUP: "Edm.Guid", Kind.CUSTOMER: "Edm.Guid",
    Kind.OWNER: "Edm.Guid", Kind.ID: "Edm.Guid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a lookup column: a record of a table."""

    table: str
    id: str


@dataclass(slots=True)
class Column:
    """A column. `definition` holds what a client sent for it and the stand-in has no use for."""

    name: str
    kind: Kind
    schema_name: str = ""
    label: str = ""
    max_length: int | None = None
    options: dict[int, str] = field(default_factory=dict)
    option_set: str | None = None  # name of a global option set, which then owns the options
    targets: tuple[str, ...] = ()
    date_only: bool = False
    read_only: bool = False
    custom: bool = False
    id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schema_name = self.schema_name or self.name
        self.label = self.label or self.schema_name

    @property
    def property_name(self) -> str:
        """Its name in JSON: `_name_value` for a lookup."""
        return f"_{self.name}_value" if self.kind in LOOKUPS else self.name

    @property
    def edm(self) -> str:
        """Its OData type."""
        return "Edm.Date" if self.date_only else EDM[self.kind]


@dataclass(slots=True)
class Table:
    """A table; `set_name` is its entity set, which need not be the plural of its name."""

    name: str
    set_name: str
    primary_id: str
    primary_name: str
    schema_name: str = ""
    label: str = ""
    custom: bool = False
    columns: dict[str, Column] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    id: str = ""
    type_code: int = 0
    definition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.schema_name = self.schema_name or self.name
        self.label = self.label or self.schema_name
        self.id = self.id or stable_id("table", self.name)
        for column in self.columns.values():
            self.add(column)

    def add(self, column: Column) -> None:
        """Take a column in, and give it an id if it has none."""
        column.id = column.id or stable_id("column", self.name, column.name)
        self.columns[column.name] = column

    def by_property(self, name: str) -> Column | None:
        """The column of a JSON property name."""
        if name.startswith("_") and name.endswith("_value"):
            column = self.columns.get(name[1:-6])
            return column if column is not None and column.kind in LOOKUPS else None
        column = self.columns.get(name)
        return column if column is not None and column.kind not in LOOKUPS else None


@dataclass(slots=True)
class OneToMany:
    """One record of `parent`, many of `child`, through the child's lookup `column`."""

    name: str
    parent: str
    child: str
    column: str
    single_name: str  # the child's navigation property to its parent
    many_name: str  # the parent's navigation property to its children
    id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = self.id or stable_id("relationship", self.name)


@dataclass(slots=True)
class ManyToMany:
    """Pairs of records of two tables; `intersect` is the table FetchXML joins through."""

    name: str
    first: str
    second: str
    intersect: str
    first_name: str  # navigation property of the first table, to the second
    second_name: str
    id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = self.id or stable_id("relationship", self.name)


@dataclass(frozen=True, slots=True)
class Navigation:
    """A navigation property as seen from one table."""

    name: str
    target: str
    collection: bool
    column: str | None = None  # the lookup: of this table, or of the target if `collection`
    many: ManyToMany | None = None
    flipped: bool = False  # this table is the second one of `many`
