"""Ids, keys, literals and bodies."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any
from urllib.parse import unquote

import pytest

from shared.errors import ToolError
from tests.support.dataverse import ID, Wire, answer, body_of, target_of

NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("O'Neil & Söhne", "'O''Neil & Söhne'"),
        ("", "''"),
        (ID, f"'{ID}'"),
        (uuid.UUID(ID), ID),
        (
            "Microsoft.Dynamics.CRM.EntityFilters'Entity,Attributes'",
            "Microsoft.Dynamics.CRM.EntityFilters'Entity,Attributes'",
        ),
        ("Microsoft.Dynamics.CRM.X'a' or 1", "'Microsoft.Dynamics.CRM.X''a'' or 1'"),
        ({"entityLogicalName": "new_staff", "id": ID}, f'{{"@odata.id":"new_staffset({ID})"}}'),
        ({"@odata.id": "accounts(1)"}, '{"@odata.id":"accounts(1)"}'),
        ('{"@odata.id":"accounts(1)"}', '{"@odata.id":"accounts(1)"}'),
        (1033, "1033"),
        (1.5, "1.5"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (NOON, "2026-11-30T10:00:00Z"),
        (NOON.date(), "2026-11-30"),
        ([1, "a"], '[1,"a"]'),
        ({"PageNumber": 1, "Now": NOON}, '{"PageNumber":1,"Now":"2026-11-30T10:00:00Z"}'),
    ],
    ids=str,
)
def test_literals_of_function_parameters(value: Any, literal: str) -> None:
    wire = Wire(answer({"ok": True}))
    parameters = {"First": value, "Second": 2}
    request = {"operationName": "Do", "operationType": "function", "parameters": parameters}
    assert wire.api.execute(request).ok is True
    path, _, query = target_of(wire.request).partition("?")
    assert path == "Do(First=@p0,Second=@p1)"
    first, second = query.split("&")
    assert unquote(first) == f"@p0={literal}"
    assert second == "@p1=2"


def test_bound_functions() -> None:
    wire = Wire(answer({}), answer({}))
    request = {"operationName": "Do", "operationType": "function", "entityName": "new_staff"}
    wire.api.execute(request)
    wire.api.execute({**request, "entityId": ID, "operationName": "Microsoft.Dynamics.CRM.Do"})
    assert [target_of(request) for request in wire.requests] == [
        "new_staffset/Microsoft.Dynamics.CRM.Do()",
        f"new_staffset({ID})/Microsoft.Dynamics.CRM.Do()",
    ]


def test_values_in_a_body() -> None:
    wire = Wire(answer({}, 201))
    wire.api.create(
        "account",
        {"a": NOON, "b": NOON.date(), "c": uuid.UUID(ID), "d": decimal.Decimal("1.25"), "e": b"zip"},
    )
    assert body_of(wire.request) == {
        "a": "2026-11-30T10:00:00Z",
        "b": "2026-11-30",
        "c": ID,
        "d": 1.25,
        "e": "emlw",
    }


@pytest.mark.parametrize(
    ("key", "segment"),
    [
        (ID.upper(), ID),
        (f" {{{ID}}} ", ID),
        (uuid.UUID(ID), ID),
        ({"accountnumber": "A/1"}, "accountnumber='A%2F1'"),
        (
            {"a": 1, "b": True, "c": None, "d": NOON.date(), "e": ID.upper()},
            f"a=1,b=true,c=null,d=2026-11-30,e={ID}",
        ),
        ("accountnumber='A, (1)',region=2", "accountnumber='A%2C%20%281%29',region=2"),
        ("name='O''Neil'", "name='O''Neil'"),
        (f"parentid={ID}", f"parentid={ID}"),
    ],
    ids=str,
)
def test_keys(key: Any, segment: str) -> None:
    wire = Wire(answer({}))
    wire.api.retrieve("account", key)
    assert target_of(wire.request) == f"accounts({segment})"


BAD_CALLS: list[tuple[str, tuple[Any, ...], str]] = [
    *(
        ("retrieve", ("account", key), "alternate key|GUID|the key's column")
        for key in (
            "",
            "1",
            None,
            5,
            {},
            "a=b",
            "a='x",
            f"{ID})/x(",
            "a='x')/y(b='z'",
            {"a b": 1},
            {"a": [1]},
            {"a": NOON},
            f"{ID}'",
        )
    ),
    *(("retrieve", (name, ID), "logical name") for name in ("", "a b", "a'b", "accounts(1)/x", None, "ä")),
    ("retrieve", ("account", ID, "name"), "list of names"),
    ("retrieve", ("account", ID, ["a&b"]), "cannot be the name of a column"),
    ("create", ("account", [1]), "record must be an object"),
    ("create", ("account", {"a": datetime.datetime(2026, 1, 1)}), "no time zone"),
    ("create", ("account", {"a": float("nan")}), "JSON"),
    ("create", ("account", {"a": object()}), "JSON"),
    ("create", ("account", {"a": decimal.Decimal("0.1234567890123456789")}), "digits"),
    ("createMultiple", ("account", []), "not be empty"),
    ("createMultiple", ("account", {"a": 1}), "list of objects"),
    ("updateMultiple", ("account", [{"name": "A"}]), "no 'accountid'"),
    ("updateMultiple", ("account", [{"accountid": "x"}]), "GUID"),
    ("associate", ("account", ID, "a/b", "contact", ID), "relationshipName"),
    ("disassociate", ("account", ID, "a_b", "x"), "relatedEntityId must be a GUID"),
    ("execute", ("WhoAmI",), "must be an object"),
    ("execute", ({"operationName": "a/b", "operationType": "action"},), "operationName"),
    ("execute", ({"operationName": "A", "operationType": "query"},), "operationType"),
    ("execute", ({"operationName": "A", "operationType": "action", "parameters": [1]},), "parameters must be"),
    ("execute", ({"operationName": "A", "operationType": "action", "entityId": ID},), "needs entityName"),
    (
        "execute",
        ({"operationName": "A", "operationType": "function", "parameters": {"a b": 1}},),
        "parameter's name",
    ),
    (
        "execute",
        ({"operationName": "A", "operationType": "function", "parameters": {"a": object()}},),
        "no JSON form",
    ),
    ("getEntityMetadata", ("x", False), "MetadataId must be a GUID"),
    ("getEntityRelatedMetadata", ("account", "Rows"), "relatedPath"),
    ("getEntityRelatedMetadata", ("account", "Attributes/../x"), "relatedPath"),
    ("getEntityRelatedMetadata", ("account", "Attributes?x=1"), "relatedPath"),
    ("getSolutions", ([],), "at least one column"),
    ("deploySolution", ("",), "solutionContent"),
    ("deploySolution", (b"x", {"force": True}), "unknown option"),
    ("deploySolution", (b"x", {"publishWorkflows": "yes"}), "True or False"),
    ("getImportJobStatus", ("x",), "importJobId must be a GUID"),
    ("publishCustomizations", ("a</entity>",), "logical name"),
    ("createEntityDefinition", ({},), "must be an object"),
    ("createAttribute", ("account", {"a": 1}, {"solution": "x"}), "unknown option"),
    ("createAttribute", ("account", {"a": 1}, {"solutionUniqueName": "x\r\ny"}), "solutionUniqueName"),
    ("createPolymorphicLookupAttribute", ("account", {"SchemaName": "x"}), "Targets"),
    ("deleteRelationship", ("a'b",), "identifier"),
    ("insertOptionValue", ({"Value": 1},), "name OptionSetName"),
    ("insertOptionValue", (5,), "must be an object"),
    ("buildLabel", ("x", 0), "LCID"),
    ("getAttributeODataType", ("Text",), "none of String"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    BAD_CALLS,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(BAD_CALLS)],
)
def test_arguments_that_are_refused(name: str, arguments: tuple[Any, ...], words: str) -> None:
    wire = Wire()
    with pytest.raises(ToolError, match=words):
        getattr(wire.api, name)(*arguments)
    assert wire.requests == []


def test_an_import_job_gets_an_id() -> None:
    wire = Wire()
    job = wire.api.deploySolution("emlw").ImportJobId
    assert body_of(wire.request)["ImportJobId"] == job
    assert uuid.UUID(job)


def test_relationships_of_ones_own_for_a_polymorphic_lookup() -> None:
    wire = Wire(answer({"AttributeId": ID}))
    mine = [{"SchemaName": "new_a"}]
    wire.api.createPolymorphicLookupAttribute("account", {"SchemaName": "x", "OneToManyRelationships": mine})
    assert body_of(wire.request)["OneToManyRelationships"] == mine
