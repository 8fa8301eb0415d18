"""`dataverseAPI`'s queries, one page and all of them, on the wire to the stand-in."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import pytest

from shared.apis import dataverseAPI
from shared.errors import ToolError
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import ANNOTATED, Case, Cases, Place, Plan, Sent

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: Final = Cases()
PREFER: Final = {"prefer": ANNOTATED}
PAGED: Final = {"prefer": f"{ANNOTATED},odata.maxpagesize=5"}
FETCH: Final = (
    "<fetch><entity name='account'><attribute name='name'/><order attribute='name'/>"
    "<filter><condition attribute='accountnumber' operator='like' value='A-%'/></filter></entity></fetch>"
)
SAMPLES: Final = [f"Account {number:05}" for number in range(1, 13)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("fetchXmlQuery")
def a_page_of_fetch_xml(place: Place) -> Plan:
    fetch = (
        "<fetch count='2'><entity name='account'><attribute name='name'/><attribute name='primarycontactid'/>"
        "<order attribute='name'/></entity></fetch>"
    )

    def read(found: Any) -> None:
        assert [row.name for row in found.value] == SAMPLES[:2]
        contact = "_primarycontactid_value@OData.Community.Display.V1.FormattedValue"
        assert found.value[0][contact] == "Contact 00001"
        assert "pagingcookie=" in found["@Microsoft.Dynamics.CRM.fetchxmlpagingcookie"]

    return Plan((fetch,), (Sent("GET", f"accounts?fetchXml={quote(fetch, safe='')}", None, PREFER),), read)


@CASES.of("retrieveMultiple")
def of_a_table_with_an_odd_plural(place: Place) -> Plan:
    fetch = (
        "<fetch><entity name='sample_project'><attribute name='sample_name'/><order attribute='sample_name'/>"
        "</entity></fetch>"
    )

    def read(found: Any) -> None:
        assert [row["sample_name"] for row in found["value"]] == ["Project 1", "Project 2", "Project 3"]

    target = f"sample_portfolio?fetchXml={quote(fetch, safe='')}"
    return Plan((fetch,), (Sent("GET", target, None, PREFER),), read)


@CASES.of("queryData")
def with_what_must_be_encoded(place: Place) -> Plan:
    row = place.new_account(accountnumber="B&#+ö")
    query = "accounts?$select=name,accountnumber&$filter=accountnumber eq 'B%26#%2Bö'&$top=5"

    def read(found: Any) -> None:
        assert [(one.accountid, one.accountnumber) for one in found.value] == [(row, "B&#+ö")]

    target = "accounts?$select=name,accountnumber&$filter=accountnumber%20eq%20'B%26%23%2B%C3%B6'&$top=5"
    return Plan((query,), (Sent("GET", target, None, PREFER),), read)


@CASES.of("queryData")
def whose_address_is_too_long(place: Place) -> Plan:
    """It travels in a batch; the answer is the same."""
    padding = "x" * 100
    names = " or ".join(["startswith(name,'Account 000')", *(f"name eq '{padding}{n}'" for n in range(300))])

    def carried(text: str) -> None:
        assert text.count("HTTP/1.1") == 1
        start = "accounts?$select=name&$filter=startswith(name,'Account%20000')%20or%20name%20eq%20'xxx"
        assert f"GET /api/data/v9.2/{start}" in text
        assert f"prefer: {ANNOTATED}" in text

    def read(found: Any) -> None:
        assert [row.name for row in found.value] == SAMPLES

    sent = Sent("POST", "$batch", carried, media="multipart/mixed")
    return Plan((f"accounts?$select=name&$filter={names}&$orderby=name",), (sent,), read)


@CASES.of("iterateFetchXml")
def page_by_page(place: Place) -> Plan:
    def page(number: int, behind: int | None) -> Callable[[str], None]:
        def look(target: str) -> None:
            query = target.removeprefix("accounts?fetchXml=")
            assert quote(unquote(query), safe="") == query
            fetch = ET.fromstring(unquote(query))
            assert (fetch.get("count"), fetch.get("page")) == ("5", str(number))
            cookie = ET.fromstring(fetch.get("paging-cookie") or "<cookie/>")
            last = cookie.find("accountid")
            assert (last is None) is (behind is None)
            if last is not None and behind is not None:
                assert last.get("last", "").strip("{}").lower() == place.account(behind)

        return look

    def rows(found: Any) -> None:
        assert [row.name for row in found] == SAMPLES

    sent = [Sent("GET", page(number, behind), None, PREFER) for number, behind in ((1, None), (2, 5), (3, 10))]
    return Plan((FETCH, 5), tuple(sent), rows)


@CASES.of("iterateQuery")
def along_the_next_links(place: Place) -> Plan:
    first = "accounts?$select=name&$filter=startswith(accountnumber,'A-')&$orderby=name"

    def follows(target: str) -> None:
        assert target.startswith("accounts?$select=name&")
        assert "$skiptoken=" in target

    def rows(found: Any) -> None:
        assert [row.name for row in found] == SAMPLES

    sent = [Sent("GET", target, None, PAGED) for target in (first, follows, follows)]
    return Plan((first, 5), tuple(sent), rows)


@pytest.mark.parametrize(("method", "query"), [("iterateFetchXml", FETCH), ("iterateQuery", None)])
def test_the_pages_and_where_to_go_on(invocation: Bench, method: str, query: str | None) -> None:
    iterate = getattr(dataverseAPI, method)
    query = query or "accounts?$select=name&$filter=startswith(accountnumber,'A-')&$orderby=name"

    async def work() -> tuple[list[Any], list[Any]]:
        pages = [page async for page in iterate(query, 5).pages()]
        rest = [page async for page in iterate(query, 5, pages[0].cursor).pages()]
        return pages, rest

    pages, rest = invocation.run(work)
    assert [(page.number, page.last, len(page.records)) for page in pages] == [
        (1, False, 5), (2, False, 5), (3, True, 2),
    ]  # fmt: skip
    assert [row.name for page in pages for row in page.records] == SAMPLES
    assert [row.name for page in rest for row in page.records] == SAMPLES[5:]
    assert [page.number for page in rest] == [1, 2]


def test_a_next_link_of_another_environment_is_not_followed(invocation: Bench) -> None:
    async def work() -> str:
        first = await dataverseAPI.queryData(
            "accounts?$select=name", "secondary", {"Prefer": "odata.maxpagesize=5"}
        )
        return str(first["@odata.nextLink"])

    link = invocation.run(work)
    assert link.startswith(invocation.place("uat").root)
    invocation.dataverse.clear_requests()
    with pytest.raises(ToolError, match="relative to the API"):
        invocation.run(lambda: dataverseAPI.queryData(link))
    assert invocation.asked() == []
    page = invocation.run(lambda: dataverseAPI.queryData(link, "secondary"))
    assert [row.name for row in page.value][:1] == ["Account 00006"]
