"""Records as JSON: properties, ETags, annotations, expanded navigation properties."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from infra.local.dataverse.errors import unknown_property
from infra.local.dataverse.query import check_select, run
from infra.local.dataverse.rows import plain
from infra.local.dataverse.schema import Ref
from infra.local.dataverse.values import formatted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from infra.local.dataverse.call import Call
    from infra.local.dataverse.query import Expand, Options
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Column, Table
    from infra.local.dataverse.store import Store

FORMATTED: Final = "OData.Community.Display.V1.FormattedValue"
LOOKUP_TABLE: Final = "Microsoft.Dynamics.CRM.lookuplogicalname"
NAVIGATION: Final = "Microsoft.Dynamics.CRM.associatednavigationproperty"


class Annotations:
    """Which annotations a request asked for: `odata.include-annotations` is a list of names with wildcards."""

    def __init__(self, call: Call) -> None:
        self._patterns = [part.strip() for part in call.prefer.get("odata.include-annotations", "").split(",")]

    @property
    def everything(self) -> bool:
        """Whether every annotation was asked for."""
        return "*" in self._patterns

    def wants(self, name: str) -> bool:
        """Whether an annotation was asked for."""
        return any(fnmatchcase(name, pattern) for pattern in self._patterns if pattern)


class Renderer:
    """Writes records of one environment for one request."""

    def __init__(self, store: Store, call: Call) -> None:
        self.store = store
        self.root = call.root
        self.aliases = call.query
        self.annotations = Annotations(call)

    def record(self, table: Table, row: Row, options: Options) -> dict[str, Any]:
        """A record with its ETag, the selected properties (all without a $select) and the primary key."""
        result: dict[str, Any] = {"@odata.etag": row.etag}
        for column in self._columns(table, options.select):
            result |= self.value(table, column, row.values.get(column.name), column.property_name)
        for expand in options.expand:
            result |= self._expanded(table, row, expand)
        return result

    def check(self, table: Table, options: Options) -> None:
        """Refuse a $select or $expand that names what is not there. Raises ApiError (400)."""
        navigations = list(self.store.catalogue.navigations(table))
        check_select(table, options.select, navigations)
        for expand in options.expand:
            found = next((one for one in navigations if one.name == expand.name), None)
            if found is None:
                raise unknown_property(expand.name, table.name)
            target = self.store.catalogue.table(found.target)
            check_select(target, expand.options.select, self.store.catalogue.navigations(target))

    def value(self, table: Table, column: Column, value: Any, name: str) -> dict[str, Any]:
        """A property called `name` with the annotations asked for."""
        result: dict[str, Any] = {}
        if isinstance(value, Ref):
            result |= self._reference(table, column, value, name)
        elif self.annotations.wants(FORMATTED):
            text = formatted(value, column, self.store.catalogue.options(column))
            if text is not None:
                result[f"{name}@{FORMATTED}"] = text
        result[name] = plain(value)
        return result

    def context(self, table: Table, options: Options, *, single: bool = False) -> str:
        """The context URL of an answer."""
        picked = [
            *options.select,
            *(f"{expand.name}({','.join(expand.options.select)})" for expand in options.expand),
        ]
        chosen = f"({','.join(picked)})" if picked else ""
        return f"{self.root}$metadata#{table.set_name}{chosen}{'/$entity' if single else ''}"

    def _columns(self, table: Table, select: Iterable[str]) -> Iterator[Column]:
        chosen = set(select)
        if not chosen or "*" in chosen:
            yield from table.columns.values()
            return
        navigations = {one.column for one in self.store.catalogue.navigations(table)
                       if one.name in chosen and not one.collection}  # fmt: skip
        for column in table.columns.values():
            if column.property_name in chosen or column.name in navigations or column.name == table.primary_id:
                yield column

    def _reference(self, table: Table, column: Column, ref: Ref, name: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        wants = self.annotations.wants
        if wants(FORMATTED) and (text := self.store.name_of(ref)) is not None:
            result[f"{name}@{FORMATTED}"] = text
        if wants(NAVIGATION):
            for one in self.store.catalogue.navigations(table):
                if one.column == column.name and one.target == ref.table and not one.collection:
                    result[f"{name}@{NAVIGATION}"] = one.name
        if wants(LOOKUP_TABLE):
            result[f"{name}@{LOOKUP_TABLE}"] = ref.table
        return result

    def _expanded(self, table: Table, row: Row, expand: Expand) -> dict[str, Any]:
        navigation = self.store.catalogue.navigation(table, expand.name)
        if navigation is None:
            return {}
        target = self.store.catalogue.table(navigation.target)
        related = self.store.related(row, table, navigation)
        if not navigation.collection:
            return {expand.name: self.record(target, related[0], expand.options) if related else None}
        page = run(self.store, target, related, expand.options, self.aliases)
        link = f"{self.root}{table.set_name}({row.id})/{expand.name}"
        if expand.options.select:
            link += f"?$select={quote(','.join(expand.options.select), safe=',')}"
        return {
            expand.name: [self.record(target, one, expand.options) for one in page.rows],
            f"{expand.name}@odata.nextLink": link,
        }
