"""Records: dictionaries whose items are attributes."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from shared.apis.record import Record, load, wrap

TEXT = (
    '{"name": "A", "@odata.etag": "W/1", "parent": {"name": "B"}, "rows": [{"n": 1}, [{"n": 2}]], "items": 5}'
)


def test_items_are_attributes_at_every_depth() -> None:
    record = load(TEXT)
    assert record.name == record["name"] == "A"
    assert record.parent.name == "B"
    assert record.rows[0].n == 1
    assert record.rows[1][0].n == 2
    assert record["@odata.etag"] == "W/1"
    assert isinstance(record, dict)


def test_methods_win_over_items_of_their_name() -> None:
    record = load(TEXT)
    assert record["items"] == 5
    assert ("name", "A") in record.items()
    with pytest.raises(AttributeError, match=r"record\['items'\]"):
        record.items = 6


def test_a_missing_item_is_an_attribute_error_that_names_near_ones() -> None:
    record = Record(accountnumber=1)
    with pytest.raises(AttributeError, match=r"no 'accountnumbr'; did you mean 'accountnumber'"):
        _ = record.accountnumbr
    with pytest.raises(AttributeError, match=r"no 'zzz'$"):
        _ = record.zzz
    with pytest.raises(AttributeError):
        del record.zzz
    assert getattr(record, "zzz", None) is None
    assert not hasattr(record, "zzz")


def test_attributes_can_be_set_and_deleted() -> None:
    record = Record()
    record.DisplayName = "x"
    assert record == {"DisplayName": "x"}
    assert "DisplayName" in dir(record)
    del record.DisplayName
    assert record == {}


def test_it_is_a_plain_object_to_json_and_can_be_copied() -> None:
    record = load(TEXT)
    assert json.loads(json.dumps(record)) == json.loads(TEXT)
    assert copy.deepcopy(record).parent.name == "B"
    assert record.copy().parent is record.parent
    assert isinstance(pickle.loads(pickle.dumps(record)), Record)
    assert wrap({"a": [{"b": 1}], "c": 2}).a[0].b == 1
