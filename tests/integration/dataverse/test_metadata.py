"""Definitions: reading them, changing them, and what data sees of the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from infra.local.dataverse.labels import text_of
from infra.local.dataverse.markup import parse_xml
from tests.integration.dataverse.support import ROOT

if TYPE_CHECKING:
    from tests.integration.dataverse.support import Api

CRM = "Microsoft.Dynamics.CRM."
ACCOUNT = "EntityDefinitions(LogicalName='account')"
PROJECT = "EntityDefinitions(LogicalName='sample_project')"


def label(text: str, language: int = 1033) -> dict[str, Any]:
    return {"LocalizedLabels": [{"Label": text, "LanguageCode": language}]}


def text_column(name: str, **more: Any) -> dict[str, Any]:
    return {"@odata.type": f"{CRM}StringAttributeMetadata", "SchemaName": name, "MaxLength": 50,
            "DisplayName": label(name), **more}  # fmt: skip


def test_entities(api: Api) -> None:
    found = api.get(f"{ACCOUNT}?$select=LogicalName,EntitySetName,PrimaryIdAttribute,PrimaryNameAttribute")
    assert {name: found[name] for name in found if "@" not in name and name != "MetadataId"} == {
        "LogicalName": "account", "EntitySetName": "accounts", "PrimaryIdAttribute": "accountid",
        "PrimaryNameAttribute": "name",
    }  # fmt: skip
    assert api.get(f"EntityDefinitions({found['MetadataId']})")["LogicalName"] == "account"
    custom = api.get(f"EntityDefinitions?$select=EntitySetName&$filter={quote('IsCustomEntity eq true')}")[
        "value"
    ]
    assert [one["EntitySetName"] for one in custom] == ["sample_portfolio"]
    assert api.get(f"{ACCOUNT}/EntitySetName")["value"] == "accounts"
    managed = api.get("EntityDefinitions?$select=LogicalName&$filter=IsCustomizable/Value eq true&$count=true")
    assert managed["@odata.count"] == len(managed["value"]) > 5


def test_parts(api: Api) -> None:
    attributes = api.get(f"{ACCOUNT}/Attributes?$select=LogicalName,AttributeType")["value"]
    assert {"name": "String", "primarycontactid": "Lookup"}.items() <= {
        one["LogicalName"]: one["AttributeType"] for one in attributes
    }.items()
    choice = api.get(f"{ACCOUNT}/Attributes(LogicalName='accountcategorycode')/{CRM}PicklistAttributeMetadata"
                     "?$select=LogicalName&$expand=OptionSet")  # fmt: skip
    assert [one["Value"] for one in choice["OptionSet"]["Options"]] == [1, 2]
    strings = api.get(f"{ACCOUNT}/Attributes/{CRM}StringAttributeMetadata?$select=LogicalName,MaxLength")[
        "value"
    ]
    assert {"LogicalName": "name", "MaxLength": 160}.items() <= strings[0].items()
    keys = api.get(f"{PROJECT}/Keys")["value"]
    assert keys[0]["KeyAttributes"] == ["sample_code", "sample_year"]
    assert {one["SchemaName"] for one in api.get(f"{ACCOUNT}/ManyToOneRelationships")["value"]} >= {
        "account_primary_contact"
    }
    assert {one["SchemaName"] for one in api.get(f"{ACCOUNT}/OneToManyRelationships")["value"]} >= {
        "sample_account_project"
    }
    assert len(api.get(f"{PROJECT}/ManyToManyRelationships")["value"]) == 1
    assert {one["Name"] for one in api.get(f"{ACCOUNT}/Privileges")["value"]} >= {"prvReadAccount"}
    wide = api.get(
        f"{ACCOUNT}?$select=LogicalName"
        "&$expand=Attributes($select=LogicalName;$filter=AttributeType eq 'Money')"
    )
    assert [one["LogicalName"] for one in wide["Attributes"]] == ["revenue"]


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("EntityDefinitions(LogicalName='nope')", 404),
        ("EntityDefinitions(Nope='account')", 400),
        ("EntityDefinitions?$select=Nope", 400),
        ("EntityDefinitions?$orderby=LogicalName", 400),
        (f"{ACCOUNT}/Attributes?$select=MaxLength", 400),
        (f"{ACCOUNT}/Nope", 404),
        ("GlobalOptionSetDefinitions(Name='nope')", 404),
        ("RelationshipDefinitions(SchemaName='nope')", 404),
    ],
)
def test_errors(api: Api, url: str, status: int) -> None:
    assert api.error("GET", url)[0] == status


def test_a_table_of_ones_own(api: Api) -> None:
    body = {"@odata.type": f"{CRM}EntityMetadata", "SchemaName": "new_Box", "DisplayName": label("Box"),
            "HasNotes": True, "Attributes": [text_column("new_Name", IsPrimaryName=True)]}  # fmt: skip
    answer = api.send("POST", "EntityDefinitions", body, mscrm_solutionuniquename="samplecore")
    assert answer.status == 204
    address = answer.headers["OData-EntityId"].removeprefix(ROOT)
    found = api.get(address)
    assert (found["LogicalName"], found["EntitySetName"], found["HasNotes"]) == ("new_box", "new_boxes", True)
    assert api.environment.components == [("samplecore", found["MetadataId"])]
    assert (
        api.get(api.send("POST", "new_boxes", {"new_name": "first"}).headers["OData-EntityId"])["new_name"]
        == "first"
    )

    attributes = f"{address}/Attributes"
    made = api.send("POST", attributes, text_column("new_Color")).headers["OData-EntityId"]
    assert made.startswith(f"{ROOT}{address}/Attributes(")
    assert api.send("POST", "new_boxes", {"new_color": "red"}).status == 204
    assert api.error("POST", attributes, text_column("new_Color"))[0] == 400
    changed = {**api.get(made), "DisplayName": label("Couleur", 1036), "MaxLength": 3}
    assert api.send("PUT", made.removeprefix(ROOT), changed, mscrm_mergelabels="true").status == 204
    texts = {one["LanguageCode"]: one["Label"] for one in api.get(made)["DisplayName"]["LocalizedLabels"]}
    assert texts == {1033: "new_Color", 1036: "Couleur"}
    assert api.error("POST", "new_boxes", {"new_color": "green"})[1] == "0x80044331"
    assert api.send("PUT", made.removeprefix(ROOT), changed).status == 204
    assert len(api.get(made)["DisplayName"]["LocalizedLabels"]) == 1
    assert api.send("DELETE", f"{attributes}(LogicalName='new_color')").status == 204
    assert api.error("POST", "new_boxes", {"new_color": "red"})[1] == "0x80048d19"

    assert api.send("PUT", address, {**found, "DisplayName": label("Crate")}).status == 204
    assert text_of(api.get(address)["DisplayName"]) == "Crate"
    assert api.error("PATCH", address, {})[0] == 405
    assert api.send("DELETE", address).status == 204
    assert api.error("GET", "new_boxes")[0] == 404


def test_what_cannot_be_made_or_removed(api: Api) -> None:
    assert api.error("POST", "EntityDefinitions", {"SchemaName": "new_Box"})[0] == 400
    assert api.error("POST", "EntityDefinitions", {"SchemaName": "Box"})[0] == 400
    body = {"SchemaName": "new_Box", "Attributes": [text_column("new_Name", IsPrimaryName=True)]}
    assert api.error("POST", "EntityDefinitions", body, mscrm_solutionuniquename="nope")[0] == 400
    assert api.error("GET", "new_boxes")[0] == 404
    assert api.error("DELETE", ACCOUNT)[0] == 400
    assert api.error("DELETE", f"{ACCOUNT}/Attributes(LogicalName='name')")[0] == 400
    assert (
        api.error("POST", f"{ACCOUNT}/Attributes", {"@odata.type": f"{CRM}Nope", "SchemaName": "new_X"})[0]
        == 400
    )


def test_relationships(api: Api) -> None:
    body = {"@odata.type": f"{CRM}OneToManyRelationshipMetadata", "SchemaName": "new_contact_project",
            "ReferencedEntity": "contact", "ReferencingEntity": "sample_project",
            "Lookup": {"SchemaName": "new_Lead", "DisplayName": label("Lead")}}  # fmt: skip
    answer = api.send("POST", "RelationshipDefinitions", body)
    assert answer.status == 204
    row = {"sample_name": "x", "new_Lead@odata.bind": f"contacts({api.contact(1)})"}
    made = api.create("sample_portfolio", row)
    assert api.get(f"sample_portfolio({made})")["_new_lead_value"] == api.contact(1)
    assert len(api.get(f"contacts({api.contact(1)})/new_contact_project")["value"]) == 1
    address = answer.headers["OData-EntityId"].removeprefix(ROOT)
    found = api.get(address)
    assert api.send("PUT", address, {**found, "IsValidForAdvancedFind": False}).status == 204
    assert (
        api.get("RelationshipDefinitions(SchemaName='new_contact_project')")["IsValidForAdvancedFind"] is False
    )
    assert api.send("DELETE", address).status == 204
    assert "_new_lead_value" not in api.get(f"sample_portfolio({made})")

    many = {"@odata.type": f"{CRM}ManyToManyRelationshipMetadata", "SchemaName": "new_account_contact",
            "Entity1LogicalName": "account", "Entity2LogicalName": "contact"}  # fmt: skip
    assert api.send("POST", "RelationshipDefinitions", many).status == 204
    assert api.error("POST", "RelationshipDefinitions", many)[0] == 400
    url = f"accounts({api.account(1)})/new_account_contact"
    assert api.send("POST", f"{url}/$ref", {"@odata.id": f"contacts({api.contact(2)})"}).status == 204
    assert len(api.get(url)["value"]) == 1


def test_polymorphic_lookup(api: Api) -> None:
    child = {"ReferencingEntity": "sample_project"}
    pairs = [{"SchemaName": f"new_media_{name}", "ReferencedEntity": name, **child}
             for name in ("account", "contact")]  # fmt: skip
    body = {
        "OneToManyRelationships": pairs,
        "Lookup": {"SchemaName": "new_Media", "DisplayName": label("Media")},
    }
    made = api.send("POST", "CreatePolymorphicLookupAttribute", body).body
    assert len(made["RelationshipIds"]) == 2
    targets = api.get(f"{PROJECT}/Attributes({made['AttributeId']})")["Targets"]
    assert targets == ["account", "contact"]
    row = api.create("sample_portfolio", {"new_Media_contact@odata.bind": f"contacts({api.contact(3)})"})
    assert api.get(f"sample_portfolio({row})")["_new_media_value"] == api.contact(3)


def test_choices(api: Api) -> None:
    body = {"Name": "new_size", "DisplayName": label("Size"), "Options": [{"Value": 1, "Label": label("S")}]}
    address = api.send("POST", "GlobalOptionSetDefinitions", body).headers["OData-EntityId"].removeprefix(ROOT)
    column = {"@odata.type": f"{CRM}PicklistAttributeMetadata", "SchemaName": "new_Size",
              "GlobalOptionSet@odata.bind": f"/{address}"}  # fmt: skip
    assert api.send("POST", f"{PROJECT}/Attributes", column).status == 204
    named = {"OptionSetName": "new_size"}
    assert (
        api.send("POST", "InsertOptionValue", {**named, "Label": label("M")}).body["NewOptionValue"]
        == 100000000
    )
    assert api.send("POST", "InsertOptionValue", {**named, "Value": 2, "Label": label("L")}).status == 200
    assert api.send("POST", "UpdateOptionValue", {**named, "Value": 2, "Label": label("XL")}).status == 204
    assert api.send("POST", "DeleteOptionValue", {**named, "Value": 100000000}).status == 204
    assert api.send("POST", "OrderOption", {**named, "Values": [2, 1]}).status == 204
    options = api.get("GlobalOptionSetDefinitions(Name='new_size')")["Options"]
    assert [(one["Value"], text_of(one["Label"])) for one in options] == [(2, "XL"), (1, "S")]
    assert api.create("sample_portfolio", {"new_size": 2})
    assert api.error("POST", "sample_portfolio", {"new_size": 3})[0] == 400
    assert api.error("DELETE", address)[0] == 400
    own = {"EntityLogicalName": "account", "AttributeLogicalName": "accountcategorycode"}
    assert api.send("POST", "InsertOptionValue", {**own, "Value": 3, "Label": label("Partner")}).status == 200
    assert api.create("accounts", {"name": "x", "accountcategorycode": 3})
    assert api.error("POST", "DeleteOptionValue", {**own, "Value": 77})[0] == 400
    changed = {**api.get(address), "DisplayName": label("Sizes")}
    assert api.send("PUT", address, changed).status == 204
    assert text_of(api.get(address)["DisplayName"]) == "Sizes"


def test_keys(api: Api) -> None:
    body = {"SchemaName": "new_City", "KeyAttributes": ["telephone1"]}
    assert api.send("POST", f"{ACCOUNT}/Keys", body).status == 204
    made = api.create("accounts", {"name": "x", "telephone1": "1"})
    assert api.get("accounts(telephone1='1')")["accountid"] == made
    assert api.error("POST", "accounts", {"telephone1": "1"})[:2] == (412, "0x80060892")
    assert api.send("DELETE", f"{ACCOUNT}/Keys(LogicalName='new_city')").status == 204
    assert api.error("POST", f"{ACCOUNT}/Keys", {"SchemaName": "new_Key", "KeyAttributes": ["nope"]})[0] == 400


def test_csdl(api: Api) -> None:
    answer = api.send("GET", "$metadata")
    assert (answer.status, answer.media) == (200, "application/xml")
    space = "{http://docs.oasis-open.org/odata/ns/edm}"
    root = parse_xml(answer.content)
    types = {one.get("Name"): one for one in root.iter(f"{space}EntityType")}
    names = {one.get("Name"): one.get("Type") for one in types["account"].iter(f"{space}Property")}
    assert names["_primarycontactid_value"] == "Edm.Guid"
    assert names["revenue"] == "Edm.Decimal"
    assert "sample_portfolio" in {one.get("Name") for one in root.iter(f"{space}EntitySet")}
    assert "WhoAmI" in {one.get("Name") for one in root.iter(f"{space}Function")}
