"""Records as they are kept, and an index of them by the values of a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.dataverse.schema import Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


@dataclass(slots=True)
class Row:
    """A record: its values by column name (no entry is null; a lookup holds a Ref) and its version."""

    id: str
    values: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    number: int = 0  # in order of creation

    @property
    def etag(self) -> str:
        """The weak ETag of this version."""
        return f'W/"{self.version}"'


class KeyIndex:
    """Rows of each table by the values of some columns, made when first asked for.

    An entry may be out of date, so that a find looks at the row; but each row is under its newest values.
    """

    def __init__(self, rows: Callable[[str], Mapping[str, Row]]) -> None:
        self._rows = rows
        self._indexes: dict[tuple[str, tuple[str, ...]], dict[tuple[Any, ...], Row]] = {}

    def find(self, table: str, key: Mapping[str, Any]) -> Row | None:
        """The row whose columns have these values."""
        names = tuple(sorted(key))
        rows = self._rows(table)
        index = self._indexes.get((table, names))
        if index is None:
            index = {_marks(row, names): row for row in rows.values()}
            self._indexes[table, names] = index
        wanted = tuple(folded(key[name]) for name in names)
        row = index.get(wanted)
        if row is None or rows.get(row.id) is not row or _marks(row, names) != wanted:
            return None
        return row

    def note(self, table: str, row: Row) -> None:
        """Take notice of a new or changed row."""
        for (name, names), index in self._indexes.items():
            if name == table:
                index[_marks(row, names)] = row


def find_slowly(rows: Iterable[Row], key: Mapping[str, Any]) -> Row | None:
    """The first row with these values, of columns that are no declared key."""
    wanted = {name: folded(value) for name, value in key.items()}
    return next(
        (row for row in rows if all(folded(row.values.get(name)) == wanted[name] for name in wanted)), None
    )


def _marks(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(folded(row.values.get(name)) for name in names)


def folded(value: Any) -> Any:
    """A value as keys compare it: text without regard to case."""
    return value.casefold() if isinstance(value, str) else plain(value)


def plain(value: Any) -> Any:
    """A stored value without its wrapping: a lookup's id, else the value."""
    return value.id if isinstance(value, Ref) else value
