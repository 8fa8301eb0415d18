"""Writing records: create, update, upsert, delete, versions, links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.dataverse.support import NOBODY, ROOT

if TYPE_CHECKING:
    from tests.integration.dataverse.support import Api

RETURN = "return=representation"


def test_create_tells_the_address(api: Api) -> None:
    answer = api.send("POST", "accounts", {"name": "New"})
    assert (answer.status, answer.body) == (204, None)
    assert answer.headers["OData-EntityId"].startswith(f"{ROOT}accounts(")
    row = api.get(answer.headers["OData-EntityId"])
    assert row["name"] == "New"
    assert row["statecode"] == 0
    assert row["_ownerid_value"] == api.user
    assert row["createdon"].endswith("Z")


def test_create_with_representation(api: Api) -> None:
    answer = api.send("POST", "accounts?$select=name", {"name": "New", "accountid": NOBODY}, prefer=RETURN)
    assert answer.status == 201
    assert answer.headers["Preference-Applied"] == RETURN
    assert set(answer.body) == {"@odata.context", "@odata.etag", "accountid", "name"}
    assert answer.body["accountid"] == NOBODY


@pytest.mark.parametrize(
    ("body", "status", "code", "text"),
    [
        ({"Name": "x"}, 400, "0x80048d19", "Invalid property 'Name'"),
        (
            {"revenue": "x"},
            400,
            "0x80048d19",
            "Cannot convert the literal 'x' to the expected type 'Edm.Decimal'",
        ),
        ({"numberofemployees": 1.5}, 400, "0x80048d19", "Edm.Int32"),
        ({"numberofemployees": 2**31}, 400, "0x80048d19", "Edm.Int32"),
        ({"name": 5}, 400, "0x80048d19", "Edm.String"),
        ({"creditonhold": "true"}, 400, "0x80048d19", "Edm.Boolean"),
        ({"accountid": "x"}, 400, "0x80048d19", "Edm.Guid"),
        ({"name": "x" * 161}, 400, "0x80044331", "maximum allowed length of '160'"),
        ({"accountcategorycode": 9}, 400, "0x80040203", "outside the valid range"),
        ({"_primarycontactid_value": NOBODY}, 400, "0x80048d19", "Navigation properties"),
        ({"nope@odata.bind": f"/contacts({NOBODY})"}, 400, "0x80048d19", "An undeclared property 'nope'"),
        ({"primarycontactid@odata.bind": f"/contacts({NOBODY})"}, 404, "0x80040217", "contact"),
        ({"primarycontactid@odata.bind": "/contacts(x)"}, 400, "0x80060888", "syntax"),
        ({"accountnumber": "a-00001"}, 412, "0x80060892", "Entity Key"),
        ([], 400, "0x80048d19", "JSON object"),
    ],
)
def test_create_refuses(api: Api, body: object, status: int, code: str, text: str) -> None:
    found = api.error("POST", "accounts", body)
    assert found[:2] == (status, code)
    assert text in found[2]
    assert len(api.environment.ids("account")) == 12


def test_duplicate_id(api: Api) -> None:
    assert api.error("POST", "accounts", {"accountid": api.account()})[:2] == (412, "0x80040237")


def test_customer_lookup_has_a_property_for_each_table(api: Api) -> None:
    made = api.create(
        "contacts", {"lastname": "x", "parentcustomerid_account@odata.bind": f"accounts({api.account()})"}
    )
    row = api.get(f"contacts({made})", prefer='odata.include-annotations="*"')
    assert row["_parentcustomerid_value"] == api.account()
    assert (
        row["_parentcustomerid_value@Microsoft.Dynamics.CRM.associatednavigationproperty"]
        == "parentcustomerid_account"
    )
    body = {"parentcustomerid@odata.bind": f"accounts({api.account()})"}
    assert api.error("POST", "contacts", body)[1] == "0x80048d19"


def test_deep_insert_is_all_or_nothing(api: Api) -> None:
    body = {
        "name": "Deep",
        "primarycontactid": {"lastname": "In"},
        "contact_customer_accounts": [{"lastname": "Out"}],
    }
    made = api.create("accounts", body)
    row = api.get(f"accounts({made})?$expand=primarycontactid,contact_customer_accounts")
    assert row["primarycontactid"]["lastname"] == "In"
    assert [one["lastname"] for one in row["contact_customer_accounts"]] == ["Out"]
    contacts = len(api.environment.ids("contact"))
    body["contact_customer_accounts"] = [{"nope": 1}]
    assert api.error("POST", "accounts", body)[0] == 400
    assert len(api.environment.ids("contact")) == contacts


def test_update_changes_the_version(api: Api) -> None:
    url = f"accounts({api.account()})"
    before = api.get(url)
    answer = api.send("PATCH", url, {"name": "Changed", "revenue": None})
    assert (answer.status, answer.body) == (204, None)
    after = api.get(url)
    assert (after["name"], after["revenue"]) == ("Changed", None)
    assert after["@odata.etag"] != before["@odata.etag"]
    answer = api.send("PATCH", f"{url}?$select=name", {"name": "Again"}, prefer=RETURN)
    assert (answer.status, answer.body["name"]) == (200, "Again")


def test_upsert_and_its_conditions(api: Api) -> None:
    url = f"accounts({NOBODY})"
    assert api.error("PATCH", url, {"name": "x"}, if_match="*")[:2] == (404, "0x80040217")
    answer = api.send("PATCH", url, {"name": "x"}, prefer=RETURN, if_none_match="null")
    assert (answer.status, answer.body["accountid"]) == (201, NOBODY)
    assert api.error("PATCH", url, {"name": "y"}, if_none_match="*")[:2] == (412, "0x80040237")
    assert api.send("PATCH", url, {"name": "y"}, if_match="*").status == 204
    answer = api.send("PATCH", "accounts(accountnumber='K')", {"name": "by key"}, prefer=RETURN)
    assert (answer.status, answer.body["accountnumber"]) == (201, "K")
    answer = api.send("PATCH", "accounts(accountnumber='K')", {"name": "again"}, prefer=RETURN)
    assert answer.status == 200


def test_versions_guard_writes(api: Api) -> None:
    url = f"accounts({api.account()})"
    old = api.get(url)["@odata.etag"]
    assert api.send("PATCH", url, {"name": "x"}, if_match=old).status == 204
    assert api.error("PATCH", url, {"name": "y"}, if_match=old)[:2] == (412, "0x80060882")
    assert api.error("DELETE", url, if_match=old)[0] == 412
    new = api.get(url)["@odata.etag"]
    assert api.send("GET", url, if_none_match=new).status == 304
    assert api.send("GET", url, if_none_match=old).status == 200
    assert api.send("GET", f"{url}?$expand=primarycontactid", if_none_match=new).status == 200
    assert api.send("DELETE", url, if_match=new).status == 204
    assert api.error("DELETE", url)[0] == 404


def test_delete_clears_lookups_and_links(api: Api) -> None:
    assert api.send("DELETE", f"contacts({api.contact(1)})").status == 204
    assert api.get(f"accounts({api.account(1)})")["_primarycontactid_value"] is None
    assert api.get(f"sample_portfolio({api.project(1)})/sample_project_contact")["value"] == []


def test_single_properties(api: Api) -> None:
    url = f"accounts({api.account()})"
    assert api.send("PUT", f"{url}/name", {"value": "Put"}).status == 204
    assert api.get(f"{url}/name")["value"] == "Put"
    assert api.send("DELETE", f"{url}/revenue").status == 204
    assert api.send("GET", f"{url}/revenue").status == 204
    assert api.error("PUT", f"{url}/name", {"nope": 1})[0] == 400
    assert api.error("POST", f"{url}/name", {"value": 1})[0] == 405


def test_many_to_many_links(api: Api) -> None:
    url = f"sample_portfolio({api.project(1)})/sample_project_contact"
    reference = {"@odata.id": f"{ROOT}contacts({api.contact(5)})"}
    assert api.send("POST", f"{url}/$ref", reference).status == 204
    assert api.error("POST", f"{url}/$ref", reference)[:2] == (412, "0x80040237")
    assert len(api.get(url)["value"]) == 2
    assert len(api.get(f"{url}/$ref")["value"]) == 2
    assert (
        api.get(f"contacts({api.contact(5)})/sample_project_contact")["value"][0]["sample_name"] == "Project 1"
    )
    assert api.send("DELETE", f"{url}({api.contact(5)})/$ref").status == 204
    assert api.send("DELETE", f"{url}/$ref?$id={ROOT}contacts({api.contact(1)})").status == 204
    assert api.get(url)["value"] == []


def test_lookup_links(api: Api) -> None:
    url = f"accounts({api.account(1)})/primarycontactid/$ref"
    assert api.send("PUT", url, {"@odata.id": f"contacts({api.contact(3)})"}).status == 204
    assert api.get(f"accounts({api.account(1)})")["_primarycontactid_value"] == api.contact(3)
    assert api.send("DELETE", url).status == 204
    assert api.get(f"accounts({api.account(1)})")["_primarycontactid_value"] is None
    assert api.error("PUT", url, {"@odata.id": f"accounts({api.account(3)})"})[0] == 400
    children = f"accounts({api.account(1)})/account_parent_account/$ref"
    assert api.send("POST", children, {"@odata.id": f"accounts({api.account(2)})"}).status == 204
    assert api.get(f"accounts({api.account(2)})")["_parentaccountid_value"] == api.account(1)
    assert api.error("PATCH", children, {})[0] == 405


def test_create_through_a_collection(api: Api) -> None:
    url = f"accounts({api.account(1)})/contact_customer_accounts"
    assert api.send("POST", url, {"lastname": "Child"}).status == 204
    assert [one["fullname"] for one in api.get(url)["value"]] == ["Child"]
