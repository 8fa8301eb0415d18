"""`dataverseAPI`'s operations, batches and transactions, on the wire to the stand-in."""

from __future__ import annotations

import asyncio
import datetime
import json
import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pytest

from infra.local.dataverse.environment import VERSION
from shared.apis import dataverseAPI
from shared.errors import DataverseError
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import APPS, Case, Cases, Place, Plan, Sent

if TYPE_CHECKING:
    from collections.abc import Callable

CASES: Final = Cases()
CRM: Final = "Microsoft.Dynamics.CRM."
MIXED: Final = "multipart/mixed"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("execute")
def a_function(place: Place) -> Plan:
    user = place.environment.user_of(APPS[place.name].client_id)

    def answered(found: Any) -> None:
        assert (found.UserId, found.OrganizationId) == (user, place.environment.organization_id)

    request = {"operationName": "WhoAmI", "operationType": "function"}
    return Plan((request,), (Sent("GET", "WhoAmI()"),), answered)


@CASES.of("execute")
def a_function_with_every_kind_of_parameter(place: Place) -> Plan:
    identifier = uuid.UUID("8c1f0c6e-2f4b-4d0e-9a0b-0c3c5a7d1e2f")
    when = datetime.datetime(2026, 11, 30, 8, tzinfo=datetime.UTC)
    values = {
        "Text": "O'Neil & Sön", "Kind": f"{CRM}EndpointAccessType'Default'", "Whole": 5, "Part": 1.5,
        "Yes": True, "Nothing": None, "Id": identifier, "When": when,
        "Row": {"entityLogicalName": "sample_project", "id": str(identifier)}, "Names": ["account", "a&b"],
    }  # fmt: skip
    literals = [
        "'O''Neil & Sön'", f"{CRM}EndpointAccessType'Default'", "5", "1.5", "true", "null", str(identifier),
        "2026-11-30T08:00:00Z", f'{{"@odata.id":"sample_portfolio({identifier})"}}', '["account","a&b"]',
    ]  # fmt: skip
    names = ",".join(f"{name}=@p{number}" for number, name in enumerate(values))
    query = "&".join(f"@p{number}={quote(text, safe='')}" for number, text in enumerate(literals))
    reference = {"@odata.id": f"sample_portfolio({identifier})"}
    arrived = {**values, "Kind": "Default", "Id": str(identifier), "When": "2026-11-30T08:00:00Z"}

    def answered(found: Any) -> None:
        assert found.Parameters == {**arrived, "Row": reference}

    request = {"operationName": "sample_Echo", "operationType": "function", "parameters": values}
    return Plan((request,), (Sent("GET", f"sample_Echo({names})?{query}"),), answered)


@CASES.of("execute")
def a_function_of_one_row(place: Place) -> Plan:
    def answered(found: Any) -> None:
        subject = (found.EntityLogicalName, found.Id, found.Parameters)
        assert subject == ("account", place.account(), {"Deep": True})

    request = {
        "operationName": "sample_Describe", "operationType": "function", "entityName": "account",
        "entityId": place.account(), "parameters": {"Deep": True},
    }  # fmt: skip
    target = f"accounts({place.account()})/{CRM}sample_Describe(Deep=@p0)?@p0=true"
    return Plan((request,), (Sent("GET", target),), answered)


@CASES.of("execute")
def an_action(place: Place) -> Plan:
    def answered(found: Any) -> None:
        assert found.Parameters == {"Text": "a", "List": [1, 2]}

    parameters = {"Text": "a", "List": [1, 2]}
    request = {"operationName": "sample_EchoAction", "operationType": "action", "parameters": parameters}
    return Plan((request,), (Sent("POST", "sample_EchoAction", parameters),), answered)


@CASES.of("execute")
def an_action_of_one_row(place: Place) -> Plan:
    def answered(found: Any) -> None:
        assert (found.Id, found.Parameters) == (place.account(), {})

    request = {
        "operationName": "sample_EchoAction", "operationType": "action", "entityName": "account",
        "entityId": {"accountnumber": "A-00001"},
    }  # fmt: skip
    target = f"accounts(accountnumber='A-00001')/{CRM}sample_EchoAction"
    return Plan((request,), (Sent("POST", target),), answered)


@CASES.of("execute")
def an_action_of_a_table(place: Place) -> Plan:
    rows = [place.new_account(), place.new_account()]
    targets = [{"@odata.type": f"{CRM}account", "accountid": row} for row in rows]

    def gone(found: Any) -> None:
        assert found == {}
        assert [place.environment.record("account", row) for row in rows] == [None, None]

    request = {
        "operationName": "DeleteMultiple", "operationType": "action", "entityName": "account",
        "parameters": {"Targets": targets},
    }  # fmt: skip
    sent = Sent("POST", f"accounts/{CRM}DeleteMultiple", {"Targets": targets})
    return Plan((request,), (sent,), gone)


@CASES.of("executeBatch")
def requests_of_which_one_fails(place: Place) -> Plan:
    row = place.new_account()
    requests = [
        {"method": "GET", "url": f"accounts({row})?$select=name", "contentId": "read"},
        {"method": "GET", "url": "nothing", "headers": {"Prefer": "odata.maxpagesize=1"}},
        {"method": "PATCH", "url": f"/accounts({row})", "body": {"telephone1": "ä"}, "contentId": "write"},
        {"method": "GET", "url": "RetrieveVersion()"},
    ]

    def answered(found: Any) -> None:
        assert [one.get("contentId") for one in found] == ["read", None, "write", None]
        assert [(one.status, one.statusText) for one in found] == [
            (200, "OK"), (404, "Not Found"), (204, "No Content"), (200, "OK"),
        ]  # fmt: skip
        assert (found[0].body.name, found[3].body.Version) == ("Of one case", VERSION)
        assert found[1].body.error.code == "0x8006088a"
        assert found[0].headers["odata-version"] == "4.0"
        assert "body" not in found[2]
        assert (place.environment.record("account", row) or {})["telephone1"] == "ä"

    def carried(text: str) -> None:
        lines = text.split("\r\n")
        assert [line for line in lines if line.endswith(" HTTP/1.1")] == [
            f"GET /api/data/v9.2/accounts({row})?$select=name HTTP/1.1",
            "GET /api/data/v9.2/nothing HTTP/1.1",
            f"PATCH /api/data/v9.2/accounts({row}) HTTP/1.1",
            "GET /api/data/v9.2/RetrieveVersion() HTTP/1.1",
        ]
        assert [line for line in lines if line.startswith("Content-ID")] == [
            "Content-ID: read", "Content-ID: write",
        ]  # fmt: skip
        assert "prefer: odata.maxpagesize=1" in lines
        assert lines.count("Content-Type: application/http") == 4
        assert [line for line in lines if line.startswith("{")] == [r'{"telephone1":"\u00e4"}']

    sent = Sent("POST", "$batch", carried, {"prefer": "odata.continue-on-error"}, MIXED)
    return Plan((requests,), (sent,), answered)


@CASES.of("executeTransaction")
def writes_that_name_each_other(place: Place) -> Plan:
    requests = [
        {"method": "POST", "url": "contacts", "body": {"lastname": "Of one case"}, "contentId": "1"},
        {"method": "POST", "url": "accounts", "contentId": "a",
         "body": {"name": "Of one case", "primarycontactid@odata.bind": "$1"}},
        {"method": "PATCH", "url": "$a", "body": {"telephone1": "2"}},
    ]  # fmt: skip

    def carried(text: str) -> None:
        lines = text.split("\r\n")
        assert [line for line in lines if line.endswith(" HTTP/1.1")] == [
            "POST /api/data/v9.2/contacts HTTP/1.1", "POST /api/data/v9.2/accounts HTTP/1.1",
            "PATCH $a HTTP/1.1",
        ]  # fmt: skip
        ids = [line.removeprefix("Content-ID: ") for line in lines if line.startswith("Content-ID")]
        assert ids[:2] == ["1", "a"]
        assert len(set(ids)) == 3  # every request of a change set needs one
        (_, change_set) = [line for line in lines if "multipart/mixed" in line or "changeset_" in line][:2]
        assert change_set.startswith("--changeset_")

    def answered(found: Any) -> None:
        assert [(one.get("contentId"), one.status) for one in found] == [("1", 204), ("a", 204), (None, 204)]
        made = found[1].headers["odata-entityid"].rpartition("(")[2].rstrip(")")
        stored = place.environment.record("account", made) or {}
        assert stored["telephone1"] == "2"
        assert found[0].headers["odata-entityid"] == f"{place.root}contacts({stored['primarycontactid'].id})"

    sent = Sent("POST", "$batch", carried, {"prefer": None}, MIXED)
    return Plan((requests,), (sent,), answered)


def test_a_transaction_that_fails_has_written_nothing(invocation: Bench) -> None:
    place = invocation.place("dev")
    before = place.environment.ids("account")
    requests = [
        {"method": "POST", "url": "accounts", "body": {"name": "Taken back"}, "contentId": "first"},
        {"method": "DELETE", "url": "accounts(00000000-0000-0000-0000-00000000dead)", "contentId": "second"},
    ]
    with pytest.raises(DataverseError, match=r"'second'.*nothing was written: .*Does Not Exist") as caught:
        invocation.run(lambda: dataverseAPI.executeTransaction(requests))
    assert (caught.value.status, caught.value.service_code) == (404, "0x80040217")
    assert place.environment.ids("account") == before


def test_a_refusal_has_code_message_and_request_id(invocation: Bench) -> None:
    request = {"operationName": "sample_Fail", "operationType": "action", "parameters": {"Message": "Not now"}}
    for run in (
        lambda: dataverseAPI.execute(request),
        lambda: _on_a_thread(lambda: dataverseAPI.execute(request)),
    ):
        with pytest.raises(DataverseError) as caught:
            invocation.run(run)
        error = caught.value
        assert (error.service_code, error.service_message, error.status) == ("0x80040265", "Not now", 400)
        assert error.message == f"0x80040265: Not now (HTTP 400, request id {error.request_id})"
        assert uuid.UUID(error.request_id or "")
        assert json.dumps(error.message)


async def _on_a_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)
