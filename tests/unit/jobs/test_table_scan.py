"""A scan in the table service's language, and where it goes on."""

from __future__ import annotations

import json

import pytest

from shared.errors import InputError
from shared.jobs import table_scan
from shared.jobs.model import Status
from shared.jobs.store import Query
from shared.storage import continuation


@pytest.mark.parametrize("row_key", ["1!8!am9i", None])
def test_a_scan_goes_on_where_the_service_said(row_key: str | None) -> None:
    """The service may name a partition alone."""
    token = {"PartitionKey": "1!32!ZmE-", "RowKey": row_key}
    assert continuation(json.dumps(token)) == token
    assert continuation(None) is None


@pytest.mark.parametrize(
    "token",
    ["", "x", "null", "[]", "5", "{}", '{"PartitionKey": "x"}', '{"PartitionKey": null, "RowKey": "x"}'],
)
def test_what_the_service_never_said_is_refused(token: str) -> None:
    with pytest.raises(InputError):
        continuation(token)


def test_what_a_caller_names_is_a_value_and_never_a_part_of_the_condition() -> None:
    hostile = "x' or owner ne 'y"
    text, values = table_scan.condition(
        Query(start="a", before="b", owner=hostile, tool_name=hostile, statuses=(Status.PENDING, Status.FAILED))
    )
    assert hostile not in text
    assert values["owner"] == values["tool"] == hostile
    assert {word for word in text.split() if word.startswith("@")} == {f"@{name}" for name in values}
    text, values = table_scan.condition(Query())
    assert values == {"row": "job", "before": "g"}
