"""Entity sets: reading and writing records, their properties and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from infra.local.dataverse.call import Answer
from infra.local.dataverse.errors import bad_query, duplicate, missing_record, not_allowed, unknown_segment
from infra.local.dataverse.fetch import run_fetch
from infra.local.dataverse.operations import bound_operation, is_operation
from infra.local.dataverse.payload import connect, disconnect, finish, insert, read_payload
from infra.local.dataverse.query import MAX_PAGE, page_size, read_options, run
from infra.local.dataverse.rows import plain
from infra.local.dataverse.schema import LOOKUPS
from infra.local.dataverse.values import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.local.dataverse.call import Segment
    from infra.local.dataverse.context import Context
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Column, Navigation, Table

_TOTAL: Final = "@Microsoft.Dynamics.CRM.totalrecordcount"


def handle_records(context: Context, table: Table) -> Answer:
    """Answer a request whose path begins with an entity set. Raises ApiError."""
    first, *rest = context.call.segments
    if first.key is None:
        return _collection(context, table, rest)
    if not rest:
        return _record(context, table, first.key)
    row = context.require(table, first.key)
    if is_operation(rest[0]):
        return bound_operation(context, table, row, rest[0])
    column = table.by_property(rest[0].name)
    if column is not None:
        return _property(context, table, row, column, raw=[one.name for one in rest[1:]] == ["$value"])
    navigation = context.catalogue.navigation(table, rest[0].name)
    if navigation is None:
        raise unknown_segment(rest[0].name)
    if rest[-1].name == "$ref":
        return _reference(context, table, row, navigation, rest[0])
    return _related(context, table, row, navigation, rest)


def _collection(context: Context, table: Table, rest: list[Segment]) -> Answer:
    if rest and is_operation(rest[0]):
        return bound_operation(context, table, None, rest[0])
    rows = context.store.table(table.name).values()
    method = context.call.method
    if rest:
        if rest[0].name != "$count" or method != "GET":
            raise unknown_segment(rest[0].name)
        return Answer(200, str(min(len(rows), MAX_PAGE)), media="text/plain")
    if method == "GET":
        if "fetchXml" in context.call.query:
            return run_fetch(context, table, context.call.query["fetchXml"])
        return _list(context, table, rows)
    if method == "POST":
        with context.store.transaction():
            row = insert(context, table, context.call.json())
        return _written(context, table, row, created=True)
    raise not_allowed(method, table.set_name)


def _list(context: Context, table: Table, rows: Iterable[Row]) -> Answer:
    call, renderer = context.call, context.renderer
    options = read_options(call.query)
    renderer.check(table, options)
    size = page_size(call)
    page = run(context.store, table, rows, options, call.query, size)
    body: dict[str, Any] = {"@odata.context": renderer.context(table, options)}
    if options.count:
        body["@odata.count"] = min(page.total, MAX_PAGE)
    if renderer.annotations.everything:
        exceeded = options.count and page.total > MAX_PAGE
        body[_TOTAL] = min(page.total, MAX_PAGE) if options.count else -1
        body[f"{_TOTAL}limitexceeded"] = exceeded
    body["value"] = [renderer.record(table, row, options) for row in page.rows]
    if page.next_cookie is not None:
        kept = [f"{name}={quote(value, safe="$,()=/'*@")}" for name, value in call.query.items()
                if name != "$skiptoken"]  # fmt: skip
        kept.append(f"$skiptoken={quote(page.next_cookie, safe='=/')}")
        body["@odata.nextLink"] = f"{call.url}?{'&'.join(kept)}"
    return Answer(200, body, _applied(context, maxpagesize=size))


def _record(context: Context, table: Table, key_text: str) -> Answer:
    match context.call.method:
        case "GET":
            row = context.require(table, key_text)
            return _one(context, table, row)
        case "PATCH":
            return _upsert(context, table, key_text)
        case "DELETE":
            row = context.require(table, key_text)
            context.check_match(row)
            with context.store.transaction():
                context.store.delete(table, row)
            return Answer()
    raise not_allowed(context.call.method, table.set_name)


def _one(context: Context, table: Table, row: Row) -> Answer:
    options = read_options(context.call.query)
    context.renderer.check(table, options)
    unchanged = context.call.header("if-none-match") == row.etag
    if unchanged and not options.expand and "odata.include-annotations" not in context.call.prefer:
        return Answer(304)
    body = {"@odata.context": context.renderer.context(table, options, single=True)}
    return Answer(
        200, body | context.renderer.record(table, row, options), _applied(context) | {"ETag": row.etag}
    )


def _upsert(context: Context, table: Table, key_text: str) -> Answer:
    key = context.key_of(table, key_text)
    row = context.find(table, key)
    body = context.call.json()
    if row is None:
        if context.call.header("if-match") is not None:
            raise missing_record(table.name, str(key.get(table.primary_id, key_text)))
        with context.store.transaction():
            row_id = key.pop(table.primary_id, None)
            properties = {table.columns[name].property_name: plain(value) for name, value in key.items()
                          if table.columns[name].kind not in LOOKUPS}  # fmt: skip
            row = insert(context, table, {**body, **properties}, row_id)
        return _written(context, table, row, created=True)
    if context.call.header("if-none-match") == "*":
        raise duplicate("A record with matching key values already exists.")
    context.check_match(row)
    with context.store.transaction():
        payload = read_payload(context, table, body)
        payload.values.pop(table.primary_id, None)
        context.store.update(table, row, payload.values)
        finish(context, table, row, payload)
    return _written(context, table, row, created=False)


def _written(context: Context, table: Table, row: Row, *, created: bool) -> Answer:
    location = context.location(table, row)
    if not context.wants_representation:
        return Answer(204, headers={"OData-EntityId": location, "Location": location})
    options = read_options(context.call.query)
    context.renderer.check(table, options)
    body = {"@odata.context": context.renderer.context(table, options, single=True)}
    headers = {"Preference-Applied": "return=representation", "Location": location, "ETag": row.etag}
    return Answer(201 if created else 200, body | context.renderer.record(table, row, options), headers)


def _property(context: Context, table: Table, row: Row, column: Column, *, raw: bool) -> Answer:
    method = context.call.method
    if method == "GET":
        value = row.values.get(column.name)
        if value is None:
            return Answer(204)
        if raw:
            return Answer(200, str(plain(value)), media="text/plain")
        link = f"{context.call.root}$metadata#{table.set_name}({row.id})/{column.property_name}"
        return Answer(200, {"@odata.context": link} | context.renderer.value(table, column, value, "value"))
    if method not in {"PUT", "DELETE"} or raw:
        raise not_allowed(method, column.property_name)
    value = None
    if method == "PUT":
        body = context.call.json()
        if set(body) - {"@odata.context"} != {"value"}:
            raise bad_query("The body of a property update has one property, 'value'.")
        value = read_json(body["value"], column, table, context.catalogue.options(column))
    context.check_match(row)
    with context.store.transaction():
        context.store.update(table, row, {column.name: value})
    return Answer()


def _related(context: Context, table: Table, row: Row, navigation: Navigation, rest: list[Segment]) -> Answer:
    target = context.catalogue.table(navigation.target)
    related = context.store.related(row, table, navigation)
    if len(rest) > 1 or rest[0].key is not None:
        raise unknown_segment(rest[-1].name)
    if navigation.collection and context.call.method == "POST":
        with context.store.transaction():
            made = insert(context, target, context.call.json())
            connect(context, table, row, navigation, made)
        return _written(context, target, made, created=True)
    if context.call.method != "GET":
        raise not_allowed(context.call.method, navigation.name)
    if navigation.collection:
        return _list(context, target, related)
    return _one(context, target, related[0]) if related else Answer(204)


def _reference(context: Context, table: Table, row: Row, navigation: Navigation, step: Segment) -> Answer:
    """POST (collections) and PUT (lookups) of `{"@odata.id": …}`, DELETE by path or `$id`, GET of addresses."""
    method = context.call.method
    target = context.catalogue.table(navigation.target)
    if method == "GET":
        links = [
            {"@odata.id": context.location(target, one)}
            for one in context.store.related(row, table, navigation)
        ]
        context_url = {"@odata.context": f"{context.call.root}$metadata#Collection($ref)"}
        return Answer(200, {**context_url, "value": links})
    with context.store.transaction():
        if method == ("POST" if navigation.collection else "PUT"):
            reference = context.call.json().get("@odata.id")
            if not isinstance(reference, str):
                raise bad_query('The body of a reference is {"@odata.id": "…"}.')
            found, other = context.resolve(reference)
            if found.name != navigation.target:
                raise bad_query(f"A reference to '{found.name}' does not fit '{navigation.name}'.")
            connect(context, table, row, navigation, other)
        elif method == "DELETE":
            other_row = _other(context, target, step) if navigation.collection else None
            disconnect(context, table, row, navigation, other_row)
        else:
            raise not_allowed(method, f"{navigation.name}/$ref")
    return Answer()


def _other(context: Context, target: Table, step: Segment) -> Row:
    if step.key is not None:
        return context.require(target, step.key)
    if "$id" in context.call.query:
        return context.resolve(context.call.query["$id"])[1]
    raise bad_query("A reference is removed from a collection by its key or by $id.")


def _applied(context: Context, maxpagesize: int | None = None) -> dict[str, str]:
    parts = [] if maxpagesize is None else [f"odata.maxpagesize={maxpagesize}"]
    if (wanted := context.call.prefer.get("odata.include-annotations")) is not None:
        parts.append(f'odata.include-annotations="{wanted}"')
    return {"Preference-Applied": ", ".join(parts)} if parts else {}
