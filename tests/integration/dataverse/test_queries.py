"""OData queries on entity sets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from tests.integration.dataverse.support import Api

FORMATTED = "OData.Community.Display.V1.FormattedValue"


def test_the_documentation_example(api: Api) -> None:
    body = api.get("accounts?$select=name&$top=5")
    assert [one["name"] for one in body["value"]] == [f"Account 0000{number}" for number in range(1, 6)]
    assert body["@odata.context"].endswith("$metadata#accounts(name)")
    assert set(body["value"][0]) == {"@odata.etag", "accountid", "name"}


@pytest.mark.parametrize(
    ("filter_", "numbers"),
    [
        ("name eq 'ACCOUNT 00003'", [3]),
        ("revenue gt 10000", [11, 12]),
        ("revenue ge 3000 and revenue lt 5000.0", [3, 4]),
        ("not (revenue gt 1000)", [1]),
        ("contains(name,'0001')", [1, 10, 11, 12]),
        ("startswith(name,'account') and endswith(name,'7')", [7]),
        ("creditonhold eq true and numberofemployees le 6", [3, 6]),
        ("numberofemployees in (2,4)", [2, 4]),
        ("description ne null", []),
        ("parentaccountid/name eq 'x'", []),
        ("primarycontactid/lastname eq '00008'", [8]),
        ("createdon lt 2000-01-01", []),
        ("createdon gt 2000-01-01T00:00:00Z and revenue eq 1000", [1]),
    ],
)
def test_filter(api: Api, filter_: str, numbers: list[int]) -> None:
    assert api.names(f"accounts?$filter={quote(filter_)}") == numbers


def test_filter_by_id_and_lookup(api: Api) -> None:
    assert api.names(f"accounts?$filter=accountid eq {api.account(4)}") == [4]
    assert api.names(f"accounts?$filter=_primarycontactid_value eq {api.contact(5).upper()}") == [5]


def test_order_and_nulls_first(api: Api) -> None:
    assert api.names("accounts?$orderby=address1_city,revenue desc&$top=4") == [10, 7, 4, 1]
    api.send("PATCH", f"accounts({api.account(9)})", {"address1_city": None})
    assert api.names("accounts?$orderby=address1_city&$top=1") == [9]
    assert api.names("accounts?$orderby=address1_city desc,name desc&$top=1") == [11]


def test_pages_by_next_link_while_rows_come_and_go(api: Api) -> None:
    url, numbers = "accounts?$select=name&$orderby=name desc&$count=true", []
    first = api.send("GET", url, prefer="odata.maxpagesize=5")
    assert first.headers["Preference-Applied"] == "odata.maxpagesize=5"
    assert (
        "$skiptoken=%3Ccookie%20pagenumber=%222%22%20pagingcookie=%22%253ccookie"
        in first.body["@odata.nextLink"]
    )
    while url:
        body = api.get(url, prefer="odata.maxpagesize=5")
        assert body["@odata.count"] in {11, 12}
        numbers += [int(one["name"][-5:]) for one in body["value"]]
        url = body.get("@odata.nextLink", "")
        if len(numbers) == 5:
            assert api.send("DELETE", f"accounts({api.account(8)})").status == 204  # the last of the first page
    assert numbers == list(range(12, 0, -1))


def test_top_does_not_count_with_a_page_size(api: Api) -> None:
    body = api.get("accounts?$top=2", prefer="odata.maxpagesize=7")
    assert len(body["value"]) == 7
    assert "@odata.nextLink" in body


def test_count_stops_at_5000(api: Api) -> None:
    for number in range(5001):
        api.environment.insert("contact", {"lastname": f"x{number}"})
    body = api.get("contacts?$count=true&$filter=startswith(lastname,'x')&$select=lastname",
                   prefer='odata.include-annotations="*"')  # fmt: skip
    assert body["@odata.count"] == body["@Microsoft.Dynamics.CRM.totalrecordcount"] == 5000
    assert body["@Microsoft.Dynamics.CRM.totalrecordcountlimitexceeded"] is True
    assert len(body["value"]) == 5000
    assert len(api.get(body["@odata.nextLink"])["value"]) == 1
    assert api.send("GET", "contacts/$count").body == "5000"


def test_expand_one_and_many(api: Api) -> None:
    row = api.get("accounts?$select=name&$top=1&$expand=primarycontactid($select=lastname)")["value"][0]
    assert row["primarycontactid"]["lastname"] == "00001"
    assert set(row["primarycontactid"]) == {"@odata.etag", "contactid", "lastname"}
    row = api.get(
        f"contacts({api.contact(2)})?$select=fullname&$expand=account_primary_contact($select=name;$top=1)"
    )
    assert [one["name"] for one in row["account_primary_contact"]] == ["Account 00002"]
    assert api.get(row["account_primary_contact@odata.nextLink"])["value"][0]["name"] == "Account 00002"
    row = api.get(f"sample_portfolio({api.project(3)})?$expand=sample_project_contact($select=fullname)")
    assert [one["fullname"] for one in row["sample_project_contact"]] == ["Contact 00003"]


def test_annotations(api: Api) -> None:
    url = f"accounts({api.account(3)})?$select=revenue,creditonhold,accountcategorycode,_primarycontactid_value"
    row = api.get(url, prefer='odata.include-annotations="*"')
    assert row[f"revenue@{FORMATTED}"] == "$3,000.00"
    assert row[f"creditonhold@{FORMATTED}"] == "Yes"
    assert row[f"accountcategorycode@{FORMATTED}"] == "Standard"
    lookup = "_primarycontactid_value"
    assert row[f"{lookup}@{FORMATTED}"] == "Contact 00003"
    assert row[f"{lookup}@Microsoft.Dynamics.CRM.lookuplogicalname"] == "contact"
    assert row[f"{lookup}@Microsoft.Dynamics.CRM.associatednavigationproperty"] == "primarycontactid"
    only = api.get(url, prefer=f'odata.include-annotations="{FORMATTED}"')
    assert f"revenue@{FORMATTED}" in only
    assert f"{lookup}@Microsoft.Dynamics.CRM.lookuplogicalname" not in only
    assert not any(FORMATTED in name for name in api.get(url))


@pytest.mark.parametrize(
    ("url", "status", "code", "text"),
    [
        ("accounts?$select=Name", 400, "0x80060888", "Could not find a property named 'Name'"),
        ("accounts?$filter=nope eq 1", 400, "0x80060888", "Could not find a property named 'nope'"),
        ("accounts?$orderby=nope", 400, "0x80060888", "Could not find a property named 'nope'"),
        ("accounts?$expand=nope", 400, "0x80060888", "Could not find a property named 'nope'"),
        ("accounts?$filter=name eq", 400, "0x80060888", "Syntax error"),
        ("accounts?$filter=accountid eq 'x'", 400, "0x80060888", "incompatible types"),
        ("accounts?$top=x", 400, "0x80060888", "$top"),
        ("accounts?$skip=5", 400, "0x80060888", "Skip Clause"),
        ("accounts?$nope=5", 400, "0x80060888", "not supported"),
        ("accounts?$apply=aggregate($count as n)", 501, "stand-in", "$apply"),
        ("accounts?$skiptoken=x", 400, "0x80060888", "skip token"),
        ("Accounts", 404, "0x8006088a", "Resource not found for the segment 'Accounts'."),
        ("sample_projects", 404, "0x8006088a", "sample_projects"),
        ("accounts(nope)", 400, "0x80060888", "query syntax"),
        ("accounts(00000000-0000-0000-0000-000000000001)", 404, "0x80040217", "Does Not Exist"),
        ("accounts(name='x')", 400, "0x80060888", "not a defined key"),
    ],
)
def test_errors(api: Api, url: str, status: int, code: str, text: str) -> None:
    found = api.error("GET", url)
    assert found[:2] == (status, code)
    assert text in found[2]


def test_errors_are_annotated_on_request(api: Api) -> None:
    answer = api.send("GET", "accounts(nope)", prefer='odata.include-annotations="*"')
    assert answer.body["error"]["@Microsoft.PowerApps.CDS.ErrorDetails.HttpStatusCode"] == "400"


def test_alternate_keys(api: Api) -> None:
    assert api.get("accounts(accountnumber='A-00007')?$select=name")["name"] == "Account 00007"
    assert api.get("accounts(accountnumber=%27A-00007%27)?$select=name")["name"] == "Account 00007"
    key = "sample_portfolio(sample_code='P',sample_year=2022)"
    assert api.get(f"{key}?$select=sample_name")["sample_name"] == "Project 2"
    assert api.error("GET", "accounts(accountnumber='none')")[0] == 404


def test_properties_and_navigation(api: Api) -> None:
    account = f"accounts({api.account(2)})"
    assert api.get(f"{account}/name")["value"] == "Account 00002"
    assert api.send("GET", f"{account}/name/$value").body == "Account 00002"
    assert api.send("GET", f"{account}/description").status == 204
    assert api.get(f"{account}/primarycontactid?$select=lastname")["lastname"] == "00002"
    assert api.send("GET", f"{account}/parentaccountid").status == 204
    assert api.get(f"contacts({api.contact(2)})/account_primary_contact")["value"][0]["name"] == "Account 00002"
    assert api.error("GET", f"{account}/nope")[0] == 404


def test_service_document(api: Api) -> None:
    assert {"accounts", "sample_portfolio"} <= {one["url"] for one in api.get("")["value"]}
