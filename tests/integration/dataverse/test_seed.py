"""The sample data that looks real: the same in every run, consistent, and of nobody."""

from __future__ import annotations

import re
from typing import Any

from infra.local.dataverse.environment import Environment
from infra.local.dataverse.schema import Ref
from infra.local.dataverse.seed import add_companies

COMPANIES = 260


def _records(environment: Environment, table: str) -> dict[str, dict[str, Any]]:
    found = {identifier: environment.record(table, identifier) for identifier in environment.ids(table)}
    return {identifier: record for identifier, record in found.items() if record is not None}


def _made(companies: int = COMPANIES) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    environment = Environment("dev")
    add_companies(environment, companies)
    return _records(environment, "account"), _records(environment, "contact")


def test_every_run_has_the_same_records() -> None:
    def lasting(records: dict[str, dict[str, Any]]) -> list[Any]:
        times = ("createdon", "modifiedon")
        return [{key: value for key, value in one.items() if key not in times} for one in records.values()]

    first, second = _made(), _made()
    assert [lasting(records) for records in first] == [lasting(records) for records in second]


def test_companies_and_their_people() -> None:
    accounts, contacts = _made()
    assert len(accounts) == COMPANIES
    assert len(contacts) > 2 * COMPANIES
    assert len({account["name"] for account in accounts.values()}) == COMPANIES
    for identifier, account in accounts.items():
        primary = contacts[account["primarycontactid"].id]
        assert primary["parentcustomerid"] == Ref("account", identifier)
        if parent := account.get("parentaccountid"):
            assert parent.id in accounts
            assert parent.id != identifier
    assert any("parentaccountid" in account for account in accounts.values())
    # As in real tables, not every column of every row is filled: a client has to do with that.
    assert 0 < sum("emailaddress1" not in account for account in accounts.values()) < COMPANIES / 2


def test_addresses_and_numbers_are_nobodys() -> None:
    accounts, contacts = _made()
    mails = [one["emailaddress1"] for one in (*accounts.values(), *contacts.values()) if "emailaddress1" in one]
    assert all(re.fullmatch(r"[a-z0-9.-]+@[a-z0-9-]+\.example", mail) for mail in mails)
    assert all(re.fullmatch(r"\(\d{3}\) 555-01\d\d", one["telephone1"]) for one in accounts.values())


def test_none_are_made_unless_asked_for() -> None:
    assert _made(0) == ({}, {})
