"""FetchXML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from infra.local.dataverse.markup import XmlError, parse_xml
from tests.integration.dataverse.support import inner_cookie

if TYPE_CHECKING:
    from tests.integration.dataverse.support import Api

ALL = 'odata.include-annotations="*"'
COOKIE = "@Microsoft.Dynamics.CRM.fetchxmlpagingcookie"
MORE = "@Microsoft.Dynamics.CRM.morerecords"


def fetch(api: Api, text: str, set_name: str = "accounts") -> Any:
    return api.get(f"{set_name}?fetchXml={quote(text)}", prefer=ALL)


def numbers(api: Api, inner: str, head: str = "") -> list[int]:
    body = fetch(api, f"<fetch {head}><entity name='account'><attribute name='name'/>{inner}</entity></fetch>")
    return [int(one["name"][-5:]) for one in body["value"]]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("attribute='name' operator='eq' value='account 00002'", [2]),
        ("attribute='name' operator='like' value='%0001_'", [10, 11, 12]),
        ("attribute='name' operator='begins-with' value='Account 0001'", [10, 11, 12]),
        ("attribute='name' operator='ends-with' value='9'", [9]),
        ("attribute='revenue' operator='gt' value='11000'", [12]),
        ("attribute='revenue' operator='ne' value='1000'", list(range(2, 13))),
        ("attribute='description' operator='not-null'", []),
        ("attribute='creditonhold' operator='eq' value='1'", [3, 6, 9, 12]),
        ("attribute='createdon' operator='today'", list(range(1, 13))),
        ("attribute='createdon' operator='on-or-before' value='2000-01-01'", []),
        ("attribute='createdon' operator='last-x-days' value='2'", list(range(1, 13))),
        ("attribute='numberofemployees' operator='lt' valueof='accountcategorycode'", [1]),
        ("attribute='ownerid' operator='eq-userid'", []),
    ],
)
def test_conditions(api: Api, condition: str, expected: list[int]) -> None:
    assert numbers(api, f"<filter><condition {condition}/></filter>") == expected


def test_lists_and_nested_filters(api: Api) -> None:
    inner = """<filter type='or'>
      <condition attribute='numberofemployees' operator='in'><value>1</value><value>4</value></condition>
      <filter>
      <condition attribute='numberofemployees' operator='between'><value>8</value><value>10</value></condition>
      <condition attribute='numberofemployees' operator='not-in'><value>9</value></condition></filter></filter>
      <order attribute='numberofemployees' descending='true'/>"""
    assert numbers(api, inner) == [10, 8, 4, 1]
    assert numbers(api, inner, "top='2'") == [10, 8]


def test_nulls_are_left_out_and_ids_kept(api: Api) -> None:
    row = fetch(api, "<fetch top='1'><entity name='account'><attribute name='description'/>"
                     "<attribute name='primarycontactid'/></entity></fetch>")["value"][0]  # fmt: skip
    assert row["accountid"] == api.account(1)
    assert "description" not in row
    assert row["_primarycontactid_value"] == api.contact(1)
    assert row["_primarycontactid_value@OData.Community.Display.V1.FormattedValue"] == "Contact 00001"


def test_pages_by_cookie(api: Api) -> None:
    names, page, cookie = [], 1, ""
    while True:
        inner = "<attribute name='name'/><order attribute='address1_city' descending='true'/>"
        body = fetch(api, of_account(inner, f"count='5' page='{page}' {cookie}"))
        names += [one["name"] for one in body["value"]]
        if not body[MORE]:
            break
        if page == 1:
            last = body["value"][-1]["accountid"]
            assert api.send("DELETE", f"accounts({last})").status == 204
        cookie = f"paging-cookie='{escape(inner_cookie(body[COOKIE]))}'"
        page += 1
    assert COOKIE not in body
    assert len(names) == len(set(names)) == 12


def test_simple_paging(api: Api) -> None:
    inner = "<order attribute='name'/>"
    assert numbers(api, inner, "count='5' page='3'") == [11, 12]


def test_links(api: Api) -> None:
    text = """<fetch><entity name='account'><attribute name='name'/>
      <link-entity name='contact' from='contactid' to='primarycontactid' alias='c'><attribute name='lastname'/>
        <filter><condition attribute='lastname' operator='eq' value='00003'/></filter></link-entity></entity>
      </fetch>"""
    rows = fetch(api, text)["value"]
    assert [(one["name"], one["c.lastname"]) for one in rows] == [("Account 00003", "00003")]
    outer = text.replace("alias='c'", "alias='c' link-type='outer'")
    rows = fetch(api, outer)["value"]
    assert len(rows) == 12
    assert sum("c.lastname" in one for one in rows) == 1
    missing = "<filter><condition entityname='c' attribute='contactid' operator='null'/></filter></entity>"
    assert len(fetch(api, outer.replace("</entity>", missing))["value"]) == 11


def test_link_through_an_intersect_table(api: Api) -> None:
    text = """<fetch><entity name='sample_project'><attribute name='sample_name'/>
      <link-entity name='sample_project_contact' from='sample_projectid' to='sample_projectid' intersect='true'>
        <link-entity name='contact' from='contactid' to='contactid' alias='who'><attribute name='fullname'/>
        <order attribute='fullname' descending='true'/></link-entity></link-entity></entity></fetch>"""
    body = fetch(api, text, "sample_portfolio")
    assert [one["who.fullname"] for one in body["value"]] == ["Contact 00003", "Contact 00002", "Contact 00001"]


def test_distinct(api: Api) -> None:
    text = "<fetch distinct='true'><entity name='account'><attribute name='address1_city'/></entity></fetch>"
    assert sorted(one["address1_city"] for one in fetch(api, text)["value"]) == ["Bergen", "Oslo", "Porto"]


def test_aggregates(api: Api) -> None:
    text = """<fetch aggregate='true'><entity name='account'>
      <attribute name='address1_city' alias='city' groupby='true'/>
      <attribute name='accountid' alias='n' aggregate='count'/>
      <attribute name='revenue' alias='sum' aggregate='sum'/>
      <attribute name='revenue' alias='most' aggregate='max'/><order alias='city'/></entity></fetch>"""
    assert fetch(api, text)["value"][0] == {"city": "Bergen", "n": 4, "sum": 22000.0, "most": 10000.0}


def of_account(inner: str, head: str = "") -> str:
    return f"<fetch {head}><entity name='account'>{inner}</entity></fetch>"


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("<fetch", 400, "0x80040201"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><fetch/>", 400, "0x80040201"),
        ("<fetch/>", 400, "0x80040201"),
        ("<fetch><entity name='contact'/></fetch>", 400, "0x80060888"),
        (of_account("<attribute name='nope'/>"), 400, "0x80041103"),
        (of_account("", "top='1' page='2'"), 400, "0x80040201"),
        (of_account("<filter><condition attribute='name' operator='nope'/></filter>"), 400, "0x80040201"),
        (of_account("<filter><condition attribute='name' operator='this-year'/></filter>"), 501, "stand-in"),
        (
            of_account("<filter><condition attribute='revenue' operator='eq' value='x'/></filter>"),
            400,
            "0x80040201",
        ),
        (of_account("<link-entity name='nope' from='a' to='b'/>"), 400, "0x80041102"),
        (of_account("<link-entity name='contact' from='contactid'/>"), 400, "0x80040201"),
        (of_account("<link-entity name='contact' from='a' to='b' link-type='any'/>"), 501, "stand-in"),
    ],
)
def test_errors(api: Api, text: str, status: int, code: str) -> None:
    assert api.error("GET", f"accounts?fetchXml={quote(text)}")[:2] == (status, code)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "declared",
    [
        "<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>",
        "<!ENTITY c SYSTEM 'file:///etc/hostname'>",
        "<!ENTITY % c SYSTEM 'file:///etc/hostname'>",
    ],
)
def test_entities_are_refused_in_every_encoding(encoding: str, declared: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?><!DOCTYPE fetch [{declared}]><fetch>&c;</fetch>"
    for given in (text, text.encode(encoding)):
        with pytest.raises(XmlError, match="document types are not accepted"):
            parse_xml(given)


def test_a_document_type_in_a_comment_is_none() -> None:
    assert parse_xml("<fetch><!-- <!DOCTYPE x> --></fetch>").tag == "fetch"
