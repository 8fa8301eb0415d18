"""`dataverseAPI`'s methods for definitions: tables, columns, relationships; on the wire to the stand-in."""

from __future__ import annotations

from typing import Any, Final

import pytest

from shared.apis import dataverseAPI
from tests.integration.dataverse.definitions_support import (
    CRM,
    column,
    many_to_many,
    new_table,
    one_to_many,
    table_definition,
)
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import Case, Cases, Place, Plan, Sent

CASES: Final = Cases()
TABLES: Final = "EntityDefinitions"
MERGED: Final = {"mscrm.mergelabels": "true"}
SOLUTION: Final = {"solutionUniqueName": "samplecore"}
OF_SOLUTION: Final = {"mscrm.solutionuniquename": "samplecore"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("getEntityMetadata")
def by_logical_name(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert (found.LogicalName, found.EntitySetName) == ("sample_project", "sample_portfolio")
        assert "SchemaName" not in found

    target = f"{TABLES}(LogicalName='sample_project')?$select=LogicalName,EntitySetName"
    return Plan(("sample_project", True, ["LogicalName", "EntitySetName"]), (Sent("GET", target),), read)


@CASES.of("getEntityMetadata")
def by_metadata_id(place: Place) -> Plan:
    table = place.environment.catalogue.table("account")

    def read(found: Any) -> None:
        assert (found.LogicalName, found.PrimaryNameAttribute) == ("account", "name")

    return Plan((table.id, False), (Sent("GET", f"{TABLES}({table.id})"),), read)


@CASES.of("getAllEntitiesMetadata")
def with_the_usual_columns(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert {one.LogicalName for one in found.value} == set(place.environment.catalogue.tables)
        labels = {one.LogicalName: one.DisplayName.UserLocalizedLabel.Label for one in found.value}
        assert labels["sample_project"] == "Project"
        assert all(one.MetadataId for one in found.value)

    return Plan((), (Sent("GET", f"{TABLES}?$select=LogicalName,DisplayName,MetadataId"),), read)


@CASES.of("getEntityRelatedMetadata")
def a_collection(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert [one.KeyAttributes for one in found.value] == [["sample_code", "sample_year"]]

    target = f"{TABLES}(LogicalName='sample_project')/Keys?$select=KeyAttributes"
    return Plan(("sample_project", "Keys", ["KeyAttributes"]), (Sent("GET", target),), read)


@CASES.of("getEntityRelatedMetadata")
def one_column(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert (found.LogicalName, found.AttributeType) == ("name", "String")

    path = "Attributes(LogicalName='name')"
    target = f"{TABLES}(LogicalName='account')/{path}?$select=LogicalName,AttributeType"
    return Plan(("account", path, ["LogicalName", "AttributeType"]), (Sent("GET", target),), read)


@CASES.of("createEntityDefinition")
def a_table(place: Place) -> Plan:
    definition = table_definition("sample_Made")

    def made(found: Any) -> None:
        table = place.environment.catalogue.table("sample_made")
        assert (found.id, table.label) == (table.id, "sample_Made")
        assert ("samplecore", table.id) in place.environment.components

    sent = Sent("POST", TABLES, definition, OF_SOLUTION)
    return Plan((definition, SOLUTION), (sent,), made)


@CASES.of("updateEntityDefinition")
def the_whole_table(place: Place) -> Plan:
    new_table(place, "sample_Changed")
    definition = table_definition("sample_Changed", label_text="Now", language=1031)

    def changed(found: Any) -> None:
        assert found is None
        label = place.get(f"{TABLES}(LogicalName='sample_changed')?$select=DisplayName")["DisplayName"]
        texts = {one["LanguageCode"]: one["Label"] for one in label["LocalizedLabels"]}
        assert texts == {1033: "sample_Changed", 1031: "Now"}  # merged, unless it says otherwise

    sent = Sent("PUT", f"{TABLES}(LogicalName='sample_changed')", definition, MERGED)
    return Plan(("sample_changed", definition), (sent,), changed)


@CASES.of("updateEntityDefinition")
def the_whole_table_by_id_with_options(place: Place) -> Plan:
    table = new_table(place, "sample_Labelled")
    definition = table_definition("sample_Labelled", label_text="Only", language=1031)

    def changed(found: Any) -> None:
        label = place.get(f"{TABLES}({table})?$select=DisplayName")["DisplayName"]
        assert [one["Label"] for one in label["LocalizedLabels"]] == ["Only"]
        assert ("samplecore", table) in place.environment.components

    options = {**SOLUTION, "mergeLabels": False, "consistencyStrong": True}
    headers = {**OF_SOLUTION, "mscrm.mergelabels": "false", "consistency": "Strong"}
    sent = Sent("PUT", f"{TABLES}({table})", definition, headers)
    return Plan((table, definition, options), (sent,), changed)


@CASES.of("deleteEntityDefinition")
def a_table_with_its_rows(place: Place) -> Plan:
    new_table(place, "sample_Gone")
    place.post("sample_gones", {"sample_name": "a row"})

    def gone(found: Any) -> None:
        assert found is None
        assert "sample_gone" not in place.environment.catalogue.tables

    return Plan(("sample_gone",), (Sent("DELETE", f"{TABLES}(LogicalName='sample_gone')"),), gone)


@CASES.of("createAttribute")
def a_text_column(place: Place) -> Plan:
    new_table(place, "sample_Wider")
    definition = column("sample_Note", MaxLength=50)

    def made(found: Any) -> None:
        stored = place.environment.catalogue.table("sample_wider").columns["sample_note"]
        assert (found.id, stored.max_length) == (stored.id, 50)

    target = f"{TABLES}(LogicalName='sample_wider')/Attributes"
    sent = Sent("POST", target, definition, OF_SOLUTION)
    return Plan(("sample_wider", definition, SOLUTION), (sent,), made)


@CASES.of("updateAttribute")
def the_whole_column(place: Place) -> Plan:
    new_table(place, "sample_Longer")
    definition = column("sample_Name", MaxLength=77)

    def changed(found: Any) -> None:
        assert found is None
        assert place.environment.catalogue.table("sample_longer").columns["sample_name"].max_length == 77

    target = f"{TABLES}(LogicalName='sample_longer')/Attributes(LogicalName='sample_name')"
    sent = Sent("PUT", target, definition, MERGED)
    return Plan(("sample_longer", "sample_name", definition), (sent,), changed)


@CASES.of("deleteAttribute")
def a_column_by_id(place: Place) -> Plan:
    new_table(place, "sample_Narrower")
    place.post(f"{TABLES}(LogicalName='sample_narrower')/Attributes", column("sample_Extra"))
    table = place.environment.catalogue.table("sample_narrower")
    extra = table.columns["sample_extra"].id

    def gone(found: Any) -> None:
        assert found is None
        assert "sample_extra" not in table.columns

    target = f"{TABLES}(LogicalName='sample_narrower')/Attributes({extra})"
    return Plan(("sample_narrower", extra), (Sent("DELETE", target),), gone)


@CASES.of("createPolymorphicLookupAttribute")
def a_lookup_into_two_tables(place: Place) -> Plan:
    new_table(place, "sample_Pointing")
    lookup = {"SchemaName": "sample_To", "Targets": ["account", "contact"]}
    body = {
        "OneToManyRelationships": [
            {
                "SchemaName": f"sample_To_sample_pointing_{target}", "ReferencedEntity": target,
                "ReferencingEntity": "sample_pointing",
            }
            for target in ("account", "contact")
        ],
        "Lookup": {
            "SchemaName": "sample_To", "AttributeType": "Lookup", "AttributeTypeName": {"Value": "LookupType"},
            "@odata.type": f"{CRM}ComplexLookupAttributeMetadata",
        },
        "SolutionUniqueName": "samplecore",
    }  # fmt: skip

    def made(found: Any) -> None:
        stored = place.environment.catalogue.table("sample_pointing").columns["sample_to"]
        assert (found.AttributeId, stored.targets) == (stored.id, ("account", "contact"))
        assert len(found.RelationshipIds) == 2

    sent = Sent("POST", "CreatePolymorphicLookupAttribute", body)
    return Plan(("sample_pointing", lookup, SOLUTION), (sent,), made)


@CASES.of("createRelationship")
def from_one_to_many(place: Place) -> Plan:
    new_table(place, "sample_Child")
    definition = one_to_many("sample_account_child", "account", "sample_child", "sample_Parent")

    def made(found: Any) -> None:
        stored = place.environment.catalogue.one_to_many["sample_account_child"]
        assert (found.id, stored.parent, stored.column) == (stored.id, "account", "sample_parent")

    return Plan((definition,), (Sent("POST", "RelationshipDefinitions", definition),), made)


@CASES.of("updateRelationship")
def the_whole_relationship(place: Place) -> Plan:
    new_table(place, "sample_Related")
    definition = many_to_many("sample_Related_contact", "sample_related", "contact")
    place.post("RelationshipDefinitions", definition)
    definition = {**definition, "Entity1AssociatedMenuConfiguration": {"Behavior": "DoNotDisplay"}}

    def changed(found: Any) -> None:
        assert found is None
        stored = place.get("RelationshipDefinitions(SchemaName='sample_Related_contact')")
        assert stored["Entity1AssociatedMenuConfiguration"] == {"Behavior": "DoNotDisplay"}

    target = "RelationshipDefinitions(SchemaName='sample_Related_contact')"
    sent = Sent("PUT", target, definition, MERGED)
    return Plan(("sample_Related_contact", definition), (sent,), changed)


@CASES.of("deleteRelationship")
def by_its_id(place: Place) -> Plan:
    new_table(place, "sample_Parted")
    place.post("RelationshipDefinitions", many_to_many("sample_parted_contact", "sample_parted", "contact"))
    identifier = place.environment.catalogue.many_to_many["sample_parted_contact"].id

    def gone(found: Any) -> None:
        assert found is None
        assert "sample_parted_contact" not in place.environment.catalogue.many_to_many

    return Plan((identifier,), (Sent("DELETE", f"RelationshipDefinitions({identifier})"),), gone)


def test_a_table_whose_set_has_another_name_now_is_looked_up_anew(invocation: Bench) -> None:
    """What was kept of a table goes when its definition is changed or deleted."""
    place = invocation.place("dev")
    new_table(place, "sample_Renamed", EntitySetName="sample_firsts")

    async def work() -> list[str]:
        first = await dataverseAPI.getEntitySetName("sample_renamed")
        await dataverseAPI.deleteEntityDefinition("sample_renamed")
        new_table(place, "sample_Renamed", EntitySetName="sample_seconds")
        return [first, await dataverseAPI.getEntitySetName("sample_renamed")]

    assert invocation.run(work) == ["sample_firsts", "sample_seconds"]
