"""All rows of a query: cookies, links, cursors."""

from __future__ import annotations

import asyncio
import xml.etree.ElementTree as ET
from typing import Any
from urllib.parse import parse_qs, quote

import httpx
import pytest

from shared.errors import DataverseError, ToolError
from tests.support.dataverse import ROOT, Wire, answer, batch_answer, body_of, part, rows, target_of

FETCH = "<fetch><entity name='account'><attribute name='n'/></entity></fetch>"
COOKIE = '<cookie page="1"><accountid last="{A&B}" first="{0}" /></cookie>'


def fetch_page(values: Any, following: str | None, more: bool) -> httpx.Response:
    body: dict[str, Any] = {"value": values, "@Microsoft.Dynamics.CRM.morerecords": more}
    if following:
        twice = quote(quote(following, safe=""), safe="")
        body["@Microsoft.Dynamics.CRM.fetchxmlpagingcookie"] = (
            f'<cookie pagenumber="2" pagingcookie="{twice}" istracking="False" />'
        )
    return answer(body)


def fetch_of(request: httpx.Request) -> ET.Element:
    (xml,) = parse_qs(request.url.query.decode())["fetchXml"]
    return ET.fromstring(xml)


def test_fetch_xml_goes_on_by_cookie() -> None:
    wire = Wire(fetch_page(rows(3), COOKIE, True), fetch_page(rows(2, 3), COOKIE, False))
    assert [row.n for row in wire.api.iterateFetchXml(FETCH, 3)] == [0, 1, 2, 3, 4]
    first, second = (fetch_of(request) for request in wire.requests)
    assert first.attrib == {"count": "3", "page": "1"}
    assert second.attrib == {"count": "3", "page": "2", "paging-cookie": COOKIE}
    assert second.find("entity/attribute") is not None


def test_fetch_xml_without_cookies_goes_by_number() -> None:
    wire = Wire(fetch_page(rows(1), None, True), fetch_page(rows(1, 1), None, False))
    assert len(list(wire.api.iterateFetchXml(FETCH))) == 2
    assert [fetch_of(request).attrib for request in wire.requests] == [
        {"count": "5000", "page": "1"},
        {"count": "5000", "page": "2"},
    ]


def test_top_makes_one_page() -> None:
    wire = Wire(fetch_page(rows(1), COOKIE, True))
    assert len(list(wire.api.iterateFetchXml(FETCH.replace("<fetch>", "<fetch top='1'>")))) == 1
    assert fetch_of(wire.request).attrib == {"top": "1"}


def test_queries_go_on_by_link_in_asynchronous_code() -> None:
    async def main() -> list[int]:
        return [row.n async for row in wire.api.iterate_query("accounts?$select=n", 2)]

    link = f"{ROOT}accounts?$select=n&$skiptoken=%3Ccookie%20pagenumber=%222%22/%3E"
    wire = Wire(answer({"value": rows(2), "@odata.nextLink": link}), answer({"value": rows(1, 2)}))
    assert asyncio.run(main()) == [0, 1, 2]
    assert [target_of(request) for request in wire.requests] == [
        "accounts?$select=n",
        "accounts?$select=n&$skiptoken=%3Ccookie%20pagenumber=%222%22/%3E",
    ]
    assert all("odata.maxpagesize=2" in request.headers["prefer"] for request in wire.requests)


@pytest.mark.parametrize("kind", ["fetch", "query"])
def test_pages_give_a_cursor_to_go_on_from(kind: str) -> None:
    def start(wire: Wire, cursor: str | None) -> Any:
        if kind == "fetch":
            return wire.api.iterateFetchXml(FETCH, 2, cursor)
        return wire.api.iterateQuery("accounts", pageSize=2, cursor=cursor)

    def pages() -> list[httpx.Response]:
        if kind == "fetch":
            return [fetch_page(rows(2, 2 * n), COOKIE, n < 2) for n in range(3)]
        following = [{"@odata.nextLink": f"{ROOT}accounts?$skiptoken={n}"} if n < 2 else {} for n in range(3)]
        return [answer({"value": rows(2, 2 * n), **following[n]}) for n in range(3)]

    whole = Wire(*pages())
    found = list(start(whole, None).pages())
    assert [(page.number, len(page.records), page.last) for page in found] == [
        (1, 2, False),
        (2, 2, False),
        (3, 2, True),
    ]
    rest = Wire(*pages()[1:])
    assert [row.n for row in start(rest, found[0].cursor)] == [2, 3, 4, 5]
    assert [target_of(request) for request in rest.requests] == [
        target_of(request) for request in whole.requests[1:]
    ]


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/api/data/v9.2/accounts",
        f"{ROOT}".replace("https", "http") + "accounts",
        "accounts",
        5,
        "https://contoso.crm.dynamics.com.evil.example/api/data/v9.2/accounts",
    ],
)
def test_links_to_other_places_are_not_followed(link: Any) -> None:
    wire = Wire(answer({"value": rows(1), "@odata.nextLink": link}))
    with pytest.raises(DataverseError, match="not followed"):
        list(wire.api.iterateQuery("accounts"))
    assert len(wire.requests) == 1


def test_twelve_thousand_rows_through_throttling_and_an_expired_token() -> None:
    faults = {2: httpx.Response(429, headers={"retry-after": "0"}), 5: httpx.Response(401)}
    faults |= {number: httpx.Response(429, headers={"retry-after": "0.01"}) for number in (8, 9)}
    asked = 0

    def handle(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        if fault := faults.pop(asked, None):
            return fault
        page = int(fetch_of(request).get("page", "1"))
        return fetch_page(rows(1000, 1000 * (page - 1)), COOKIE, page < 12)

    wire = Wire(*[handle] * 40)
    assert [row.n for row in wire.api.iterateFetchXml(FETCH, 1000)] == list(range(12_000))
    assert asked == 16


def test_for_in_asynchronous_code_says_what_to_write() -> None:
    async def main() -> None:
        for _ in wire.api.iterateQuery("accounts"):
            pass

    wire = Wire()
    with pytest.raises(RuntimeError, match="async for"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a text"),
        ("<fetch>", "not well-formed"),
        ("<a/>", "must begin with <fetch>"),
        ("<fetch/>", "names no table"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><fetch/>", "document type"),
        ("<fetch><entity name='a b'/></fetch>", "logical name"),
    ],
)
def test_faults_of_fetch_xml(text: str, words: str) -> None:
    wire = Wire()
    with pytest.raises(ToolError, match=words):
        wire.api.fetchXmlQuery(text)
    assert wire.requests == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        "https://evil.example/x",
        "//evil.example",
        "../../x",
        "%2e%2e/x",
        "$filter=a eq 1",
        "?$top=1",
        None,
        "a\\b",
    ],
)
def test_queries_that_lead_elsewhere(query: Any) -> None:
    wire = Wire()
    with pytest.raises(ToolError):
        wire.api.queryData(query)
    assert wire.requests == []


@pytest.mark.parametrize("size", [0, 5001, True, "5", 1.5])
def test_page_sizes(size: Any) -> None:
    with pytest.raises(ToolError, match="pageSize"):
        Wire().api.iterateQuery("accounts", size)


@pytest.mark.parametrize("cursor", ["x", "0:", ":", "-1:x", 5])
def test_cursors(cursor: Any) -> None:
    with pytest.raises(ToolError, match="cursor"):
        list(Wire().api.iterateFetchXml(FETCH, None, cursor))


def test_a_query_too_long_for_an_address_travels_in_a_batch() -> None:
    wire = Wire(batch_answer([part("200 OK", {"value": rows(1)}, Content_Type="application/json")]))
    xml = FETCH.replace("<attribute name='n'/>", "<attribute name='n'/>" * 1500)
    assert wire.api.fetchXmlQuery(xml).value[0].n == 0
    assert (wire.request.method, target_of(wire.request)) == ("POST", "$batch")
    text = wire.request.content.decode()
    assert "GET /api/data/v9.2/accounts?fetchXml=%3Cfetch" in text
    assert 'prefer: return=representation,odata.include-annotations="*"' in text
    with pytest.raises(DataverseError, match="1: bad"):
        Wire(
            batch_answer([part("400 Bad Request", {"error": {"code": "1", "message": "bad"}})])
        ).api.fetchXmlQuery(xml)


def test_body_helper_reads_nothing_from_a_get() -> None:
    wire = Wire(answer({"value": []}))
    wire.api.queryData("/accounts")
    assert body_of(wire.request) is None
    assert target_of(wire.request) == "accounts"
