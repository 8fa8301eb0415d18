"""Every method of `dataverseAPI`: the request on the wire, and what becomes of the answer."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from shared.apis.dataverse import DataverseApi
from tests.support.dataverse import ID, OTHER, ROOT, Wire, answer, body_of, target_of

ANNOTATED = 'return=representation,odata.include-annotations="*"'
FETCH = "<fetch top='1'><entity name='account'><attribute name='name' /></entity></fetch>"
SOLUTION = {"solutionUniqueName": "MySolution"}
LABEL = {"LocalizedLabels": [{"Label": "x", "LanguageCode": 1033}]}


def made(kind: str) -> httpx.Response:
    return httpx.Response(204, headers={"OData-EntityId": f"{ROOT}{kind}({ID.upper()})"})


@dataclass
class Case:
    """One call, what it sends, and what it gives."""

    name: str
    arguments: tuple[Any, ...]
    method: str
    target: str
    body: Any = None
    headers: dict[str, str | None] = field(default_factory=dict)
    answer: httpx.Response = field(default_factory=lambda: httpx.Response(204))
    result: Any = None


def cases() -> list[Case]:
    table = "EntityDefinitions(LogicalName='new_staff')"
    return [
        Case(
            "create",
            ("account", {"name": "A"}),
            "POST",
            "accounts",
            {"name": "A"},
            {"prefer": "return=representation"},
            answer({"accountid": ID, "name": "A"}, 201),
            {"id": ID, "accountid": ID, "name": "A"},
        ),
        Case(
            "create",
            ("task", {"subject": "T"}),
            "POST",
            "tasks",
            {"subject": "T"},
            {},
            made("tasks"),
            {"id": ID},
        ),
        Case(
            "retrieve",
            ("account", ID, ["name", "telephone1"]),
            "GET",
            f"accounts({ID})?$select=name,telephone1",
            None,
            {"prefer": None},
            answer({"name": "A"}),
            {"name": "A"},
        ),
        Case(
            "retrieve",
            ("new_staff", f"{{{ID.upper()}}}"),
            "GET",
            f"new_staffset({ID})",
            None,
            {},
            answer({}),
            {},
        ),
        Case(
            "retrieve",
            ("account", {"accountnumber": "O'Neil & Co", "region": 2}),
            "GET",
            "accounts(accountnumber='O''Neil%20%26%20Co',region=2)",
            None,
            {},
            answer({}),
            {},
        ),
        Case(
            "update",
            ("account", ID, {"name": "B"}),
            "PATCH",
            f"accounts({ID})",
            {"name": "B"},
            {"if-match": "*"},
        ),
        Case("delete", ("account", ID), "DELETE", f"accounts({ID})"),
        Case(
            "createMultiple",
            ("account", [{"name": "A"}, {"@odata.type": "X", "name": "B"}]),
            "POST",
            "accounts/Microsoft.Dynamics.CRM.CreateMultiple",
            {
                "Targets": [
                    {"@odata.type": "Microsoft.Dynamics.CRM.account", "name": "A"},
                    {"@odata.type": "X", "name": "B"},
                ]
            },
            {},
            answer({"Ids": [ID, OTHER]}),
            [ID, OTHER],
        ),
        Case(
            "updateMultiple",
            ("account", [{"accountid": ID, "name": "A"}]),
            "POST",
            "accounts/Microsoft.Dynamics.CRM.UpdateMultiple",
            {"Targets": [{"@odata.type": "Microsoft.Dynamics.CRM.account", "accountid": ID, "name": "A"}]},
        ),
        Case(
            "associate",
            ("systemuser", ID, "systemuserroles_association", "role", OTHER),
            "POST",
            f"systemusers({ID})/systemuserroles_association/$ref",
            {"@odata.id": f"{ROOT}roles({OTHER})"},
        ),
        Case(
            "disassociate",
            ("systemuser", ID, "systemuserroles_association", OTHER),
            "DELETE",
            f"systemusers({ID})/systemuserroles_association({OTHER})/$ref",
        ),
        Case(
            "fetchXmlQuery",
            (FETCH,),
            "GET",
            "accounts?fetchXml=%3Cfetch%20top%3D%271%27%3E%3Centity%20name%3D%27account%27%3E%3Cattribute%20name"
            "%3D%27name%27%20%2F%3E%3C%2Fentity%3E%3C%2Ffetch%3E",
            None,
            {"prefer": ANNOTATED},
            answer({"value": [{"name": "A"}]}),
            {"value": [{"name": "A"}]},
        ),
        Case(
            "retrieveMultiple",
            ("<fetch><entity name='account'/></fetch>",),
            "GET",
            "accounts?fetchXml=%3Cfetch%3E%3Centity%20name%3D%27account%27%2F%3E%3C%2Ffetch%3E",
            None,
            {"prefer": ANNOTATED},
            answer({"value": []}),
            {"value": []},
        ),
        Case(
            "queryData",
            ("accounts?$select=name&$filter=name eq 'A#1 %26 Söhne'&$top=5",),
            "GET",
            "accounts?$select=name&$filter=name%20eq%20'A%231%20%26%20S%C3%B6hne'&$top=5",
            None,
            {"prefer": ANNOTATED},
            answer({"value": []}),
            {"value": []},
        ),
        Case(
            "execute",
            ({"operationName": "WhoAmI", "operationType": "function"},),
            "GET",
            "WhoAmI()",
            None,
            {},
            answer({"UserId": ID}),
            {"UserId": ID},
        ),
        Case(
            "execute",
            (
                {
                    "operationName": "PublishThing",
                    "operationType": "action",
                    "entityName": "account",
                    "entityId": ID,
                    "parameters": {"Deep": True},
                },
            ),
            "POST",
            f"accounts({ID})/Microsoft.Dynamics.CRM.PublishThing",
            {"Deep": True},
            {},
            answer({"Ok": 1}),
            {"Ok": 1},
        ),
        Case(
            "getEntityMetadata",
            ("account", True, ["LogicalName"]),
            "GET",
            "EntityDefinitions(LogicalName='account')?$select=LogicalName",
            None,
            {},
            answer({"LogicalName": "x"}),
            {"LogicalName": "x"},
        ),
        Case("getEntityMetadata", (ID, False), "GET", f"EntityDefinitions({ID})", None, {}, answer({}), {}),
        Case(
            "getAllEntitiesMetadata",
            (),
            "GET",
            "EntityDefinitions?$select=LogicalName,DisplayName,MetadataId",
            None,
            {},
            answer({"value": [{"LogicalName": "a"}]}),
            {"value": [{"LogicalName": "a"}]},
        ),
        Case(
            "getEntityRelatedMetadata",
            ("new_staff", "Attributes(LogicalName='name')/OptionSet", ["Options"]),
            "GET",
            f"{table}/Attributes(LogicalName='name')/OptionSet?$select=Options",
            None,
            {},
            answer({}),
            {},
        ),
        Case(
            "getSolutions",
            (["uniquename"],),
            "GET",
            "solutions?$select=uniquename",
            None,
            {},
            answer({"value": []}),
            {"value": []},
        ),
        Case(
            "getCSDLDocument",
            (),
            "GET",
            "$metadata",
            None,
            {"accept": "application/xml"},
            httpx.Response(200, text="<edmx/>"),
            "<edmx/>",
        ),
        Case(
            "publishCustomizations",
            ("account",),
            "POST",
            "PublishXml",
            {
                "ParameterXml": "<importexportxml><entities><entity>account</entity>"
                "</entities></importexportxml>"
            },
        ),
        Case("publishCustomizations", (), "POST", "PublishAllXml"),
        Case(
            "deploySolution",
            (b"zip", {"importJobId": ID, "publishWorkflows": True, "convertToManaged": None}),
            "POST",
            "ImportSolution",
            {
                "PublishWorkflows": True,
                "OverwriteUnmanagedCustomizations": False,
                "CustomizationFile": "emlw",
                "ImportJobId": ID,
            },
            {},
            httpx.Response(204),
            {"ImportJobId": ID},
        ),
        Case(
            "getImportJobStatus",
            (ID,),
            "GET",
            f"importjobs({ID})",
            None,
            {},
            answer({"progress": 40.0}),
            {"progress": 40.0},
        ),
        Case(
            "createEntityDefinition",
            ({"SchemaName": "new_x"}, SOLUTION),
            "POST",
            "EntityDefinitions",
            {"SchemaName": "new_x"},
            {"mscrm.solutionuniquename": "MySolution", "mscrm.mergelabels": None},
            made("EntityDefinitions"),
            {"id": ID},
        ),
        Case(
            "updateEntityDefinition",
            ("new_staff", {"a": 1}),
            "PUT",
            table,
            {"a": 1},
            {"mscrm.mergelabels": "true"},
        ),
        Case(
            "updateEntityDefinition",
            (ID, {"a": 1}, {"mergeLabels": False, "consistencyStrong": True}),
            "PUT",
            f"EntityDefinitions({ID})",
            {"a": 1},
            {"mscrm.mergelabels": "false", "consistency": "Strong"},
        ),
        Case("deleteEntityDefinition", ("new_staff",), "DELETE", table),
        Case(
            "createAttribute",
            ("new_staff", {"SchemaName": "new_a"}),
            "POST",
            f"{table}/Attributes",
            {"SchemaName": "new_a"},
            {},
            made(f"{table}/Attributes"),
            {"id": ID},
        ),
        Case(
            "updateAttribute",
            ("new_staff", "new_a", {"a": 1}, SOLUTION),
            "PUT",
            f"{table}/Attributes(LogicalName='new_a')",
            {"a": 1},
            {"mscrm.mergelabels": "true", "mscrm.solutionuniquename": "MySolution"},
        ),
        Case("deleteAttribute", ("new_staff", ID), "DELETE", f"{table}/Attributes({ID})"),
        Case(
            "createPolymorphicLookupAttribute",
            ("new_staff", {"SchemaName": "new_Owner", "Targets": ["account", "contact"]}, SOLUTION),
            "POST",
            "CreatePolymorphicLookupAttribute",
            {
                "OneToManyRelationships": [
                    {
                        "SchemaName": f"new_Owner_new_staff_{target}",
                        "ReferencedEntity": target,
                        "ReferencingEntity": "new_staff",
                    }
                    for target in ("account", "contact")
                ],
                "Lookup": {
                    "SchemaName": "new_Owner",
                    "AttributeType": "Lookup",
                    "AttributeTypeName": {"Value": "LookupType"},
                    "@odata.type": "Microsoft.Dynamics.CRM.ComplexLookupAttributeMetadata",
                },
                "SolutionUniqueName": "MySolution",
            },
            {},
            answer({"AttributeId": ID, "RelationshipIds": [OTHER]}),
            {"AttributeId": ID, "RelationshipIds": [OTHER]},
        ),
        Case(
            "createRelationship",
            ({"SchemaName": "new_r"},),
            "POST",
            "RelationshipDefinitions",
            {"SchemaName": "new_r"},
            {},
            made("RelationshipDefinitions"),
            {"id": ID},
        ),
        Case(
            "updateRelationship",
            ("new_Rel", {"a": 1}),
            "PUT",
            "RelationshipDefinitions(SchemaName='new_Rel')",
            {"a": 1},
            {"mscrm.mergelabels": "true"},
        ),
        Case("deleteRelationship", (ID,), "DELETE", f"RelationshipDefinitions({ID})"),
        Case(
            "createGlobalOptionSet",
            ({"Name": "new_s"},),
            "POST",
            "GlobalOptionSetDefinitions",
            {"Name": "new_s"},
            {},
            made("GlobalOptionSetDefinitions"),
            {"id": ID},
        ),
        Case(
            "updateGlobalOptionSet",
            ("new_S", {"a": 1}),
            "PUT",
            "GlobalOptionSetDefinitions(Name='new_S')",
            {"a": 1},
            {"mscrm.mergelabels": "true"},
        ),
        Case("deleteGlobalOptionSet", ("new_s",), "DELETE", "GlobalOptionSetDefinitions(Name='new_s')"),
        Case(
            "insertOptionValue",
            ({"OptionSetName": "new_s", "Label": LABEL},),
            "POST",
            "InsertOptionValue",
            {"OptionSetName": "new_s", "Label": LABEL},
            {},
            answer({"NewOptionValue": 7}),
            {"NewOptionValue": 7},
        ),
        Case(
            "updateOptionValue",
            ({"OptionSetName": "new_s", "Value": 7, "Label": LABEL},),
            "POST",
            "UpdateOptionValue",
            {"MergeLabels": True, "OptionSetName": "new_s", "Value": 7, "Label": LABEL},
            {},
            httpx.Response(204),
            {},
        ),
        Case(
            "deleteOptionValue",
            ({"EntityLogicalName": "account", "AttributeLogicalName": "a", "Value": 7},),
            "POST",
            "DeleteOptionValue",
            {"EntityLogicalName": "account", "AttributeLogicalName": "a", "Value": 7},
            {},
            httpx.Response(204),
            {},
        ),
        Case(
            "orderOption",
            ({"OptionSetName": "new_s", "Values": [2, 1]},),
            "POST",
            "OrderOption",
            {"OptionSetName": "new_s", "Values": [2, 1]},
            {},
            httpx.Response(204),
            {},
        ),
    ]


#: Tested with their own files, or without a request of their own.
ELSEWHERE = {
    "getEntitySetName",
    "executeBatch",
    "executeTransaction",
    "iterateFetchXml",
    "iterateQuery",
    "buildLabel",
    "getAttributeODataType",
}
#: The reference's list, in its order.
REFERENCE = [
    "create",
    "retrieve",
    "update",
    "delete",
    "retrieveMultiple",
    "fetchXmlQuery",
    "queryData",
    "execute",
    "getEntityMetadata",
    "getAllEntitiesMetadata",
    "getEntityRelatedMetadata",
    "getSolutions",
    "getCSDLDocument",
    "publishCustomizations",
    "createMultiple",
    "updateMultiple",
    "associate",
    "disassociate",
    "deploySolution",
    "getImportJobStatus",
    "getEntitySetName",
    "buildLabel",
    "getAttributeODataType",
    "createEntityDefinition",
    "updateEntityDefinition",
    "deleteEntityDefinition",
    "createAttribute",
    "updateAttribute",
    "deleteAttribute",
    "createPolymorphicLookupAttribute",
    "createRelationship",
    "updateRelationship",
    "deleteRelationship",
    "createGlobalOptionSet",
    "updateGlobalOptionSet",
    "deleteGlobalOptionSet",
    "insertOptionValue",
    "updateOptionValue",
    "deleteOptionValue",
    "orderOption",
    "executeBatch",
    "executeTransaction",
]


def check(wire: Wire, case: Case, result: Any) -> None:
    assert result == case.result
    request = wire.request
    assert (request.method, target_of(request)) == (case.method, case.target)
    assert body_of(request) == case.body
    expected: dict[str, str | None] = {
        "host": "contoso.crm.dynamics.com",
        "authorization": "Bearer token-0",
        "odata-version": "4.0",
        "odata-maxversion": "4.0",
        "accept": "application/json",
        "content-type": "application/json" if case.body is not None else None,
        **case.headers,
    }
    assert {name: request.headers.get(name) for name in expected} == expected
    assert wire.environment.asked[-1] == ("https://contoso.crm.dynamics.com/.default", False)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_in_synchronous_code(case: Case) -> None:
    wire = Wire(case.answer)
    check(wire, case, getattr(wire.api, case.name)(*case.arguments))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_in_asynchronous_code(case: Case) -> None:
    async def main() -> Any:
        return await getattr(wire.api, case.name)(*case.arguments)

    wire = Wire(case.answer)
    check(wire, case, asyncio.run(main()))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_target_and_headers_are_the_last_two_arguments(case: Case) -> None:
    wire = Wire(case.answer)
    signature = inspect.signature(getattr(DataverseApi, case.name))
    names = list(signature.parameters)[1:]
    assert names[-2:] == ["connection_target", "additional_headers"]
    given = [*case.arguments, *[None] * (len(names) - 2 - len(case.arguments))]
    defaults = [signature.parameters[name].default for name in names]
    given = [
        defaults[at] if value is None and at >= len(case.arguments) else value for at, value in enumerate(given)
    ]
    getattr(wire.api, case.name)(*given, "secondary", {"MSCRM.SuppressDuplicateDetection": "true"})
    assert wire.targets == ["secondary"]
    assert wire.request.headers["mscrm.suppressduplicatedetection"] == "true"
    assert all("mscrm.suppressduplicatedetection" not in request.headers for request in wire.metadata)


def test_every_method_of_the_reference_is_there_and_tested() -> None:
    tested = {case.name for case in cases()}
    assert set(REFERENCE) <= tested | ELSEWHERE
    for name in [*REFERENCE, *ELSEWHERE]:
        assert callable(getattr(DataverseApi, name)), name


def test_both_spellings_are_one_method() -> None:
    names = {name for name in vars(DataverseApi) if not name.startswith("_") and name != "scope"}
    camel = {name for name in names if "_" not in name}
    both = {name: id(getattr(DataverseApi, name)) for name in ("getCSDLDocument", "get_csdl_document")}
    assert len(set(both.values())) == 1
    assert {id(getattr(DataverseApi, name)) for name in camel} == {
        id(getattr(DataverseApi, name)) for name in names
    }
    assert camel == {*REFERENCE, *ELSEWHERE}


def test_keywords_in_both_spellings() -> None:
    wire = Wire(answer({}), answer({}))
    wire.api.retrieve(entityLogicalName="account", id=ID, connectionTarget=1)
    wire.api.retrieve(entity_logical_name="account", id=ID, connection_target=1)
    assert wire.targets == [1, 1]
    with pytest.raises(TypeError, match="retrieve"):
        wire.api.retrieve("account", ID, colums=["name"])
    with pytest.raises(TypeError, match="both of its spellings"):
        wire.api.retrieve(entityLogicalName="account", entity_logical_name="account", id=ID)
    with pytest.raises(AttributeError, match="did you mean 'retrieve'"):
        _ = wire.api.retreive


def test_entity_set_names_come_from_the_metadata_once() -> None:
    wire = Wire()
    assert wire.api.getEntitySetName("new_staff") == "new_staffset"
    assert wire.api.get_entity_set_name("New_Staff ") == "new_staffset"
    (asked,) = wire.metadata
    assert target_of(asked) == (
        "EntityDefinitions(LogicalName='new_staff')?$select=LogicalName,EntitySetName,PrimaryIdAttribute"
    )
    wire.api.updateEntityDefinition("new_staff", {"a": 1})
    wire.api.getEntitySetName("new_staff")
    assert len(wire.metadata) == 2


def test_many_calls_at_once_ask_for_a_table_once() -> None:
    async def main() -> list[str]:
        return list(await asyncio.gather(*(wire.api.getEntitySetName("account") for _ in range(50))))

    wire = Wire()
    assert asyncio.run(main()) == ["accounts"] * 50
    assert len(wire.metadata) == 1


def test_helpers_need_no_invocation() -> None:
    api = DataverseApi()
    label = api.buildLabel("Konto", 1031)
    assert label.LocalizedLabels[0].Label == "Konto"
    assert label["LocalizedLabels"][0]["LanguageCode"] == 1031
    assert api.getAttributeODataType("Money") == "Microsoft.Dynamics.CRM.MoneyAttributeMetadata"
