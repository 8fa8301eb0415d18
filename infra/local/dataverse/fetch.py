"""Runs FetchXML: joins, filters, order, pages; the answer's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse.aggregate import aggregate
from infra.local.dataverse.call import Answer
from infra.local.dataverse.conditions import compile_condition
from infra.local.dataverse.cookies import read_inner, write_inner, write_outer
from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.fetchxml import Condition, invalid, read_fetch
from infra.local.dataverse.fields import after_cookie, column_field
from infra.local.dataverse.predicates import comparable
from infra.local.dataverse.query import MAX_PAGE, page_size
from infra.local.dataverse.rows import Row, plain
from infra.local.dataverse.schema import Column, Kind, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from infra.local.dataverse.context import Context
    from infra.local.dataverse.fetchxml import Fetch, Filter, Part, Sort

type Joined = dict[str, Row | None]  # alias -> record; None where an outer join found none

_COOKIE = "Microsoft.Dynamics.CRM.fetchxmlpagingcookie"
_MORE = "Microsoft.Dynamics.CRM.morerecords"
_TOTAL = "Microsoft.Dynamics.CRM.totalrecordcount"


def run_fetch(context: Context, table: Table, text: str) -> Answer:
    """Answer `?fetchXml=` on an entity set. Raises ApiError."""
    fetch = read_fetch(text)
    if fetch.entity.table != table.name:
        raise ApiError(
            400,
            "0x80060888",
            f"The entity '{fetch.entity.table}' of the FetchXML is not that of '{table.set_name}'.",
        )
    query = _Query(context, fetch, table)
    rows = query.joined()
    body: dict[str, Any] = {"@odata.context": f"{context.call.root}$metadata#{table.set_name}"}
    if fetch.aggregate:
        body["value"] = aggregate(context, fetch, query.tables, rows)
        return Answer(200, body)
    return query.answer(body, rows)


class _Query:
    def __init__(self, context: Context, fetch: Fetch, table: Table) -> None:
        self.context = context
        self.fetch = fetch
        self.tables: dict[str, Table] = {"": table}
        self.parts: list[Part] = []
        self._collect(fetch.entity)

    def _collect(self, part: Part) -> None:
        self.tables[part.alias] = self._table(part.table)
        self.parts.append(part)
        for link in part.links:
            self._collect(link)

    def _table(self, name: str) -> Table:
        for many in self.context.catalogue.many_to_many.values():
            if many.intersect == name:
                ids = [f"{many.first}id", f"{many.second}id"]
                columns = {one: Column(one, Kind.ID) for one in [f"{name}id", *ids]}
                return Table(name, name, f"{name}id", f"{name}id", columns=columns)
        return self.context.catalogue.table(name)

    def _rows(self, name: str) -> Iterable[Row]:
        store = self.context.store
        for many in store.catalogue.many_to_many.values():
            if many.intersect == name:
                return [Row(f"{one}{two}", {f"{many.first}id": one, f"{many.second}id": two})
                        for one, two in store.links.get(many.name, {})]  # fmt: skip
        return store.table(name).values()

    def column(self, alias: str, name: str) -> Column:
        """A column of a part. Raises ApiError (400)."""
        column = self.tables[alias].columns.get(name)
        if column is None:
            message = f"'{self.tables[alias].name}' entity doesn't contain attribute with Name = '{name}'."
            raise ApiError(400, "0x80041103", message)
        return column

    def joined(self) -> list[Joined]:
        """The records that pass every filter, in order."""
        entity = self.fetch.entity
        rows: list[Joined] = [{"": row} for row in self._rows(entity.table)]
        for link in entity.links:
            rows = self._join(rows, link, "")
        tests = [self._filter(one, "") for one in entity.filters]
        rows = [row for row in rows if all(test(row) for test in tests)]
        return rows if self.fetch.aggregate else self._sorted(rows)

    def _join(self, rows: list[Joined], link: Part, parent: str) -> list[Joined]:
        own, outer = self.column(link.alias, link.from_column), self.column(parent, link.to_column)
        tests = [self._filter(one, link.alias) for one in link.filters]
        index: dict[Any, list[Row]] = {}
        for row in self._rows(link.table):
            value = plain(row.values.get(own.name))
            if value is not None and all(test({link.alias: row}) for test in tests):
                index.setdefault(value, []).append(row)
        result: list[Joined] = []
        for joined in rows:
            source = joined.get(parent)
            value = plain(source.values.get(outer.name)) if source is not None else None
            found = [] if value is None else index.get(value, [])
            result += [{**joined, link.alias: one} for one in found]
            if not found and link.outer:
                result.append({**joined, link.alias: None})
        for child in link.links:
            result = self._join(result, child, link.alias)
        return result

    def _filter(self, node: Filter, alias: str) -> Callable[[Joined], bool]:
        tests = [self._condition(item, alias) if isinstance(item, Condition) else self._filter(item, alias)
                 for item in node.items]  # fmt: skip
        if node.either:
            return lambda row: any(test(row) for test in tests)
        return lambda row: all(test(row) for test in tests)

    def _condition(self, condition: Condition, alias: str) -> Callable[[Joined], bool]:
        alias = condition.entity or alias
        if alias not in self.tables:
            raise invalid(f"there is no link with the alias '{alias}'.")
        field = column_field(self.column(alias, condition.attribute))
        if condition.other is not None:
            return self._between_columns(condition, alias)
        test = compile_condition(condition, self.column(alias, condition.attribute), self.context.user_id)

        def holds(row: Joined) -> bool:
            record = row.get(alias)
            return test(None if record is None else field.get(record))

        return holds

    def _between_columns(self, condition: Condition, alias: str) -> Callable[[Joined], bool]:
        one = self.column(alias, condition.attribute)
        two = self.column(alias, condition.other or "")

        def holds(row: Joined) -> bool:
            record = row.get(alias)
            other = None if record is None else column_field(two).get(record)
            if record is None or other is None:
                return False
            exact = Condition(condition.attribute, condition.operator, (str(other),))
            return compile_condition(exact, one, self.context.user_id)(column_field(one).get(record))

        return holds

    def _orders(self) -> Iterator[tuple[str, Sort]]:
        for part in self.parts:
            for sort in part.sorts:
                yield sort.entity or part.alias, sort

    def _sorted(self, rows: list[Joined]) -> list[Joined]:
        for alias, sort in reversed(list(self._orders())):
            field = column_field(self.column(alias, sort.attribute))

            def key(row: Joined, alias: str = alias, field: Any = field) -> tuple[bool, Any]:
                record = row.get(alias)
                value = None if record is None else comparable(field.get(record), field.type)
                return (value is not None, 0 if value is None else value)

            rows = sorted(rows, key=key, reverse=sort.descending)
        return rows

    def answer(self, body: dict[str, Any], rows: list[Joined]) -> Answer:
        """The page the query asks for."""
        fetch, wants = self.fetch, self.context.renderer.annotations.wants
        written = [(row, self._write(row)) for row in rows] if fetch.distinct else [(row, {}) for row in rows]
        if fetch.distinct:
            seen = {repr(sorted(record.items())): (row, record) for row, record in reversed(written)}
            written = list(reversed(list(seen.values())))
        total = len(written)
        size = fetch.top or min(fetch.count or page_size(self.context.call) or MAX_PAGE, MAX_PAGE)
        pageable = not fetch.distinct and not any(alias for alias, _ in self._orders())
        start = (fetch.page - 1) * size
        if fetch.cookie and pageable and fetch.page > 1:
            start = self._start(rows)
        page = written[start : start + size]
        more = fetch.top is None and len(written) > start + size
        if more and wants(_COOKIE) and pageable:
            first, last = page[0][0][""], page[-1][0][""]
            if first is not None and last is not None:
                inner = write_inner(fetch.page, self._cookie_columns(), first, last)
                body[f"@{_COOKIE}"] = write_outer(fetch.page + 1, inner, twice=True)
        if wants(_TOTAL) and fetch.total:
            body[f"@{_TOTAL}"] = min(total, MAX_PAGE)
            body[f"@{_TOTAL}limitexceeded"] = total > MAX_PAGE
        if wants(_MORE):
            body[f"@{_MORE}"] = more
        if self.context.call.query.get("$count") == "true":
            body["@odata.count"] = min(total, MAX_PAGE)
        body["value"] = [record or self._write(row) for row, record in page]
        applied = self.context.call.prefer.get("odata.include-annotations")
        headers = {"Preference-Applied": f'odata.include-annotations="{applied}"'} if applied else {}
        return Answer(200, body, headers)

    def _cookie_columns(self) -> list[Column]:
        table = self.tables[""]
        columns = [self.column(alias, sort.attribute) for alias, sort in self._orders()]
        key = table.columns[table.primary_id]
        return columns if key in columns else [*columns, key]

    def _start(self, rows: list[Joined]) -> int:
        """Where the page after the cookie's begins. A link may repeat a record: all of its rows are behind."""
        cookie = read_inner(self.fetch.cookie or "")
        table = self.tables[""]
        order = [(self.column(alias, sort.attribute), sort.descending) for alias, sort in self._orders()]
        records = [row[""] for row in rows]
        following = after_cookie(
            [one for one in records if one is not None], order, cookie, table, self.context.store
        )
        last = next((one for one in reversed(records[: len(rows) - len(following)])), None)
        start = len(rows) - len(following)
        while start < len(rows) and last is not None and rows[start][""] is last:
            start += 1
        return start

    def _write(self, row: Joined) -> dict[str, Any]:
        result: dict[str, Any] = {}
        root = row[""]
        if root is not None and not self.fetch.distinct:
            result["@odata.etag"] = root.etag
        for part in self.parts:
            record, table = row.get(part.alias), self.tables[part.alias]
            if record is None:
                continue
            for column, name in self._outputs(part, table):
                value = record.values.get(column.name)
                if value is not None:
                    result |= self.context.renderer.value(table, column, value, name)
        return result

    def _outputs(self, part: Part, table: Table) -> Iterator[tuple[Column, str]]:
        prefix = f"{part.alias}." if part.alias else ""
        whole = part.everything or (not part.alias and not part.attributes)
        if whole:
            for column in table.columns.values():
                yield column, f"{prefix}{column.name}" if prefix else column.property_name
            return
        for attribute in part.attributes:
            column = self.column(part.alias, attribute.name)
            yield column, attribute.alias or (f"{prefix}{column.name}" if prefix else column.property_name)
        chosen = {attribute.name for attribute in part.attributes}
        if not part.alias and table.primary_id not in chosen and not self.fetch.distinct:
            yield table.columns[table.primary_id], table.primary_id
