"""EntityDefinitions, RelationshipDefinitions, GlobalOptionSetDefinitions: reading, and the way to writing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse import definitions
from infra.local.dataverse.call import Answer
from infra.local.dataverse.components import check_solution
from infra.local.dataverse.errors import BAD_QUERY, ApiError, bad_query, unknown_property, unknown_segment
from infra.local.dataverse.filters import parse
from infra.local.dataverse.literals import Type
from infra.local.dataverse.metadata_write import (
    create_attribute,
    create_entity,
    create_key,
    delete_attribute,
    delete_entity,
    delete_key,
    update_attribute,
    update_entity,
)
from infra.local.dataverse.predicates import Field, compile_filter
from infra.local.dataverse.query import Options, read_options
from infra.local.dataverse.relationship_write import (
    create_option_set,
    create_relationship,
    delete_option_set,
    delete_relationship,
    update_option_set,
    update_relationship,
)
from infra.local.dataverse.values import as_guid

if TYPE_CHECKING:
    from infra.local.dataverse.call import Segment
    from infra.local.dataverse.context import Context
    from infra.local.dataverse.schema import ManyToMany, OneToMany, Table

SETS: Final = frozenset({"EntityDefinitions", "RelationshipDefinitions", "GlobalOptionSetDefinitions"})
_KEY: Final = re.compile(r"(\w+)\s*=\s*'((?:[^']|'')*)'")
_EXPANDED: Final = frozenset({"OptionSet", "GlobalOptionSet"})


def handle_metadata(context: Context) -> Answer:
    """Answer a request for definitions. Raises ApiError."""
    first, *rest = context.call.segments
    check_solution(context)
    with context.store.transaction():
        if first.name == "EntityDefinitions":
            return _entities(context, first, rest)
        if first.name == "RelationshipDefinitions":
            return _relationships(context, first, rest)
        return _option_sets(context, first, rest)


def _entities(context: Context, first: Segment, rest: list[Segment]) -> Answer:
    catalogue = context.catalogue
    if first.key is None:
        if context.call.method == "POST":
            return create_entity(context)
        _only(context, "GET")
        return _many(context, [definitions.entity(one) for one in catalogue.tables.values()], "EntityMetadata")
    document = _find(first, [definitions.entity(one) for one in catalogue.tables.values()], "LogicalName")
    table = catalogue.tables[document["LogicalName"]]
    if rest:
        return _part(context, table, rest)
    match context.call.method:
        case "PUT":
            return update_entity(context, table)
        case "DELETE":
            return delete_entity(context, table)
    _only(context, "GET")
    return _single(context, document, "EntityMetadata")


def _part(context: Context, table: Table, rest: list[Segment]) -> Answer:
    step, cast = rest[0], (rest[1].name if len(rest) > 1 else None)
    documents = definitions.collection(context.catalogue, table, step.name)
    if documents is None:
        document = definitions.entity(table)
        if step.name not in document or len(rest) > 1:
            raise unknown_segment(step.name)
        return Answer(200, {"value": document[step.name]})
    if cast is not None:
        if not cast.startswith(definitions.CRM) or len(rest) > 2:
            raise unknown_segment(cast)
        documents = [one for one in documents if one.get("@odata.type") == f"#{cast}"]
    kind = cast.removeprefix(definitions.CRM) if cast else _kind_of(step.name)
    if step.key is None:
        if context.call.method == "POST" and step.name == "Attributes":
            return create_attribute(context, table)
        if context.call.method == "POST" and step.name == "Keys":
            return create_key(context, table)
        _only(context, "GET")
        return _many(context, documents, kind)
    document = _find(step, documents, "SchemaName" if "Relationship" in step.name else "LogicalName")
    if step.name == "Attributes" and context.call.method in {"PUT", "DELETE"}:
        column = table.columns[document["LogicalName"]]
        if context.call.method == "PUT":
            return update_attribute(context, table, column)
        return delete_attribute(context, table, column)
    if step.name == "Keys" and context.call.method == "DELETE":
        return delete_key(table, document["LogicalName"])
    _only(context, "GET")
    return _single(context, document, kind)


def _relationships(context: Context, first: Segment, rest: list[Segment]) -> Answer:
    catalogue = context.catalogue
    known: dict[str, OneToMany | ManyToMany] = {**catalogue.one_to_many, **catalogue.many_to_many}
    documents = [definitions.relationship(catalogue, one) for one in known.values()]
    if rest and rest[0].name.startswith(definitions.CRM):
        documents = [one for one in documents if one["@odata.type"] == f"#{rest[0].name}"]
    if first.key is None:
        if context.call.method == "POST":
            return create_relationship(context)
        _only(context, "GET")
        return _many(context, documents, "RelationshipMetadataBase")
    document = _find(first, documents, "SchemaName")
    match context.call.method:
        case "PUT":
            return update_relationship(context, known[document["SchemaName"]])
        case "DELETE":
            return delete_relationship(context, known[document["SchemaName"]])
    _only(context, "GET")
    return _single(context, document, "RelationshipMetadataBase")


def _option_sets(context: Context, first: Segment, rest: list[Segment]) -> Answer:
    documents = [definitions.option_set(one) for one in context.catalogue.option_sets.values()]
    if rest and not rest[0].name.startswith(definitions.CRM):
        raise unknown_segment(rest[0].name)
    if first.key is None:
        if context.call.method == "POST":
            return create_option_set(context)
        _only(context, "GET")
        return _many(context, documents, "OptionSetMetadataBase")
    document = _find(first, documents, "Name")
    shared = context.catalogue.option_sets[document["Name"]]
    match context.call.method:
        case "PUT":
            return update_option_set(context, shared)
        case "DELETE":
            return delete_option_set(context, shared)
    _only(context, "GET")
    return _single(context, document, "OptionSetMetadataBase")


def _only(context: Context, method: str) -> None:
    if context.call.method != method:
        raise ApiError(405, BAD_QUERY, f"Operation {context.call.method} is not supported on definitions here.")


def _find(step: Segment, documents: list[dict[str, Any]], name: str) -> dict[str, Any]:
    text = step.key or ""
    guid = as_guid(text)
    match = _KEY.fullmatch(text)
    if guid is None and match is None:
        raise bad_query()
    if match is not None and match[1] not in {name, "MetadataId"}:
        raise bad_query(f"'{match[1]}' is no key of {step.name}.")
    wanted = guid or (match[2].replace("''", "'") if match else "")
    field = "MetadataId" if guid else name
    for document in documents:
        if document[field] == wanted:
            return document
    raise ApiError(404, BAD_QUERY, f"Could not find {step.name} with the key {text} in the MetadataCache.")


def _many(context: Context, documents: list[dict[str, Any]], kind: str) -> Answer:
    options = read_options(context.call.query)
    if options.orderby or options.skiptoken:
        raise bad_query("The query parameter $orderby is not supported on definitions.")
    if options.filter is not None:
        holds = compile_filter(parse(options.filter, context.call.query), _field)
        documents = [one for one in documents if holds(one)]
    body: dict[str, Any] = {"@odata.context": f"{context.call.root}$metadata#{kind}"}
    if options.count:
        body["@odata.count"] = len(documents)
    body["value"] = [_picked(context, one, options, kind) for one in documents[: options.top]]
    return Answer(200, body)


def _single(context: Context, document: dict[str, Any], kind: str) -> Answer:
    options = read_options(context.call.query)
    body = {"@odata.context": f"{context.call.root}$metadata#{kind}/$entity"}
    return Answer(200, body | _picked(context, document, options, kind))


def _picked(context: Context, document: dict[str, Any], options: Options, kind: str) -> dict[str, Any]:
    known = definitions.BASE_ATTRIBUTE if kind == "AttributeMetadata" else document.keys()
    for name in options.select:
        if name not in known:
            raise unknown_property(name, kind)
    chosen = {*options.select, "@odata.type"}
    result = {name: value for name, value in document.items()
              if name in chosen or (not options.select and name not in _EXPANDED)}  # fmt: skip
    if options.select and "MetadataId" in document:
        result["MetadataId"] = document["MetadataId"]
    for expand in options.expand:
        if expand.name in _EXPANDED and expand.name in document:
            result[expand.name] = document[expand.name]
            continue
        table = (
            context.catalogue.tables.get(str(document.get("LogicalName"))) if kind == "EntityMetadata" else None
        )
        items = None if table is None else definitions.collection(context.catalogue, table, expand.name)
        if items is None:
            raise unknown_property(expand.name, kind)
        if expand.options.filter is not None:
            holds = compile_filter(parse(expand.options.filter, context.call.query), _field)
            items = [one for one in items if holds(one)]
        result[expand.name] = [_picked(context, one, expand.options, _kind_of(expand.name)) for one in items]
    return result


def _kind_of(collection: str) -> str:
    return {
        "Attributes": "AttributeMetadata", "Keys": "EntityKeyMetadata",
        "Privileges": "SecurityPrivilegeMetadata",
        "ManyToManyRelationships": "ManyToManyRelationshipMetadata",
    }.get(collection, "OneToManyRelationshipMetadata")  # fmt: skip


def _field(names: tuple[str, ...]) -> Field:
    def get(document: dict[str, Any]) -> Any:
        value: Any = document
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return Field(Type.ANY, get)
