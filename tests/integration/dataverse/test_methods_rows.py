"""`dataverseAPI`'s methods for rows, on the wire to the stand-in."""

from __future__ import annotations

import uuid
from typing import Any, Final

import pytest

from infra.local.dataverse.schema import Ref
from shared.apis import dataverseAPI
from shared.errors import DataverseError
from tests.integration.dataverse.definitions_support import new_table
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import Case, Cases, Place, Plan, Sent

CASES: Final = Cases()
CRM: Final = "Microsoft.Dynamics.CRM."
WRITTEN: Final = {"prefer": "return=representation"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("create")
def a_row_with_a_lookup(place: Place) -> Plan:
    row = {"name": "Søn & Co", "revenue": 12.5, "primarycontactid@odata.bind": f"/contacts({place.contact()})"}

    def made(found: Any) -> None:
        stored = place.environment.record("account", found.id)
        assert stored is not None
        assert (stored["name"], stored["primarycontactid"]) == ("Søn & Co", Ref("contact", place.contact()))
        assert (found.accountid, found.name, found.revenue) == (found.id, "Søn & Co", 12.5)
        assert found["_primarycontactid_value"] == place.contact()

    return Plan(("account", row), (Sent("POST", "accounts", row, WRITTEN),), made)


@CASES.of("create")
def a_row_of_a_table_with_an_odd_plural(place: Place) -> Plan:
    row = {"sample_name": "P", "sample_year": 1999}

    def made(found: Any) -> None:
        assert found.sample_projectid == found.id
        assert place.environment.record("sample_project", found.id) is not None

    return Plan(("sample_project", row), (Sent("POST", "sample_portfolio", row, WRITTEN),), made)


@CASES.of("retrieve")
def by_id_with_columns(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert found.name == "Account 00002"
        assert {name for name in found if "@" not in name} == {"name", "revenue", "accountid"}

    target = f"accounts({place.account(2)})?$select=name,revenue"
    return Plan(("account", place.account(2), ["name", "revenue"]), (Sent("GET", target),), read)


@CASES.of("retrieve")
def by_an_id_in_braces(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert (found.accountid, found.accountnumber) == (place.account(), "A-00001")

    identifier = f"{{{place.account().upper()}}}"
    return Plan(("Account", identifier), (Sent("GET", f"accounts({place.account()})"),), read)


@CASES.of("retrieve")
def by_a_key_that_must_be_encoded(place: Place) -> Plan:
    row = place.new_account(accountnumber="O'Neil/ä&1 #?%41")

    def read(found: Any) -> None:
        assert found.accountid == row

    key = {"accountnumber": "O'Neil/ä&1 #?%41"}
    target = "accounts(accountnumber='O''Neil%2F%C3%A4%261%20%23%3F%2541')"
    return Plan(("account", key), (Sent("GET", target),), read)


@CASES.of("retrieve")
def by_a_key_of_two_columns(place: Place) -> Plan:
    values = {"sample_name": "K", "sample_code": "k k", "sample_year": 2031}
    row = place.environment.insert("sample_project", values)

    def read(found: Any) -> None:
        assert found.sample_projectid == row

    target = "sample_portfolio(sample_code='k%20k',sample_year=2031)?$select=sample_name"
    arguments = ("sample_project", "sample_code='k k',sample_year=2031", ["sample_name"])
    return Plan(arguments, (Sent("GET", target),), read)


@CASES.of("update")
def a_row(place: Place) -> Plan:
    row = place.new_account()

    def changed(found: Any) -> None:
        assert found is None
        stored = place.environment.record("account", row)
        assert stored is not None
        assert (stored["name"], stored["telephone1"]) == ("Of one case", "1")

    sent = Sent("PATCH", f"accounts({row})", {"telephone1": "1"}, {"if-match": "*"})
    return Plan(("account", row, {"telephone1": "1"}), (sent,), changed)


@CASES.of("delete")
def one_row(place: Place) -> Plan:
    row = place.new_account()

    def gone(found: Any) -> None:
        assert found is None
        assert place.environment.record("account", row) is None

    return Plan(("account", uuid.UUID(row)), (Sent("DELETE", f"accounts({row})"),), gone)


@CASES.of("createMultiple")
def several_rows(place: Place) -> Plan:
    def made(found: Any) -> None:
        stored = [place.environment.record("account", row) or {} for row in found]
        assert [row["name"] for row in stored] == ["Bulk 1", "Bulk 2"]

    rows = [{"name": "Bulk 1"}, {"@odata.type": f"{CRM}account", "name": "Bulk 2"}]
    targets = [{"@odata.type": f"{CRM}account", **row} for row in rows]
    sent = Sent("POST", f"accounts/{CRM}CreateMultiple", {"Targets": targets})
    return Plan(("account", rows), (sent,), made)


@CASES.of("updateMultiple")
def several_changes(place: Place) -> Plan:
    rows = [place.new_account(), place.new_account()]

    def changed(found: Any) -> None:
        assert found is None
        assert [(place.environment.record("account", row) or {})["name"] for row in rows] == ["One", "Two"]

    changes = [{"accountid": row, "name": name} for row, name in zip(rows, ("One", "Two"), strict=True)]
    targets = [{"@odata.type": f"{CRM}account", **change} for change in changes]
    sent = Sent("POST", f"accounts/{CRM}UpdateMultiple", {"Targets": targets})
    return Plan(("account", changes), (sent,), changed)


@CASES.of("associate")
def a_contact_to_a_project(place: Place) -> Plan:
    project = place.environment.insert("sample_project", {"sample_name": "Of one case"})

    def linked(found: Any) -> None:
        assert found is None
        assert _people(place, project) == [place.contact(4)]

    reference = {"@odata.id": f"{place.root}contacts({place.contact(4)})"}
    sent = Sent("POST", f"sample_portfolio({project})/sample_project_contact/$ref", reference)
    arguments = ("sample_project", project, "sample_project_contact", "contact", place.contact(4))
    return Plan(arguments, (sent,), linked)


@CASES.of("disassociate")
def a_contact_from_a_project(place: Place) -> Plan:
    project = place.environment.insert("sample_project", {"sample_name": "Of one case"})
    for number in (1, 2):
        reference = {"@odata.id": f"{place.root}contacts({place.contact(number)})"}
        place.post(f"sample_portfolio({project})/sample_project_contact/$ref", reference)

    def parted(found: Any) -> None:
        assert found is None
        assert _people(place, project) == [place.contact(2)]

    target = f"sample_portfolio({project})/sample_project_contact({place.contact()})/$ref"
    arguments = ("sample_project", project, "sample_project_contact", place.contact())
    return Plan(arguments, (Sent("DELETE", target),), parted)


@CASES.of("getEntitySetName")
def of_an_odd_plural(place: Place) -> Plan:
    return Plan(("sample_project",), (), "sample_portfolio")


def _people(place: Place, project: str) -> list[str]:
    found = place.get(f"sample_portfolio({project})/sample_project_contact?$select=contactid")
    return [row["contactid"] for row in found["value"]]


def test_a_row_that_has_changed_since_is_not_changed(invocation: Bench) -> None:
    place = invocation.place("dev")
    row = place.new_account()

    async def work() -> None:
        etag = (await dataverseAPI.retrieve("account", row, ["name"]))["@odata.etag"]
        await dataverseAPI.update("account", row, {"name": "First"}, None, {"If-Match": etag})
        await dataverseAPI.update("account", row, {"name": "Second"}, None, {"If-Match": etag})

    invocation.dataverse.clear_requests()
    with pytest.raises(DataverseError, match="The version of the existing record") as caught:
        invocation.run(work)
    read, first, second = invocation.asked()
    assert first.headers["if-match"] == second.headers["if-match"] != "*"
    assert (read.status, first.status, second.status) == (200, 204, 412)
    assert (caught.value.status, caught.value.service_code) == (412, "0x80060882")
    assert caught.value.request_id
    assert (place.environment.record("account", row) or {})["name"] == "First"


def test_what_is_not_there_is_neither_changed_nor_made(invocation: Bench) -> None:
    missing = "00000000-0000-0000-0000-00000000dead"
    with pytest.raises(DataverseError, match=r"0x80040217: .*Does Not Exist.*HTTP 404, request id") as caught:
        invocation.run(lambda: dataverseAPI.update("account", missing, {"name": "x"}))
    assert (caught.value.status, caught.value.service_code) == (404, "0x80040217")
    assert invocation.place("dev").environment.record("account", missing) is None


def test_one_without_a_condition_is_made(invocation: Bench) -> None:
    row = str(uuid.uuid4())
    invocation.run(lambda: dataverseAPI.update("account", row, {"name": "New"}, None, {"If-Match": None}))
    assert (invocation.place("dev").environment.record("account", row) or {})["name"] == "New"


def test_a_table_is_looked_up_once_for_each_environment(invocation: Bench) -> None:
    name = f"sample_t{uuid.uuid4().hex[:8]}"  # one that nobody has asked for
    for place in map(invocation.place, ("dev", "uat")):
        new_table(place, name)

    async def work() -> None:
        query = f"<fetch top='1'><entity name='{name}'/></fetch>"
        for target in ("primary", "secondary", 0, 1):
            await dataverseAPI.retrieveMultiple(query, target)

    invocation.dataverse.clear_requests()
    invocation.run(work)
    asked = [(one.environment, one.resource) for one in invocation.dataverse.requests("EntityDefinitions")]
    table = f"EntityDefinitions(LogicalName='{name}')"
    assert asked == [("dev", table), ("uat", table)]
