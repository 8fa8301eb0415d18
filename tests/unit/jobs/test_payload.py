from __future__ import annotations

import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InputError, PayloadError, SettingsError
from shared.jobs import payload
from shared.jobs.payload import Input, Sealer
from shared.tool.result import ToolResult

ONE, TWO = bytes(range(32)), bytes(range(1, 33))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.none() | st.text())
def test_an_input_survives_sealing(arguments: dict[str, Any], token: str | None) -> None:
    given_input = Input(arguments, token)
    sealed = Sealer((ONE,)).seal("job", payload.pack_input(given_input))
    assert payload.unpack_input(Sealer((ONE,)).open("job", sealed)) == given_input


def test_nothing_of_it_can_be_read() -> None:
    data = payload.pack_input(Input({"text": "sentinel-input"}, "sentinel-token"))
    first, second = (Sealer((ONE,)).seal("job", data) for _ in range(2))
    assert b"sentinel" not in first
    assert first != second
    assert "sentinel" not in repr(Input({}, "sentinel"))


def test_an_older_key_still_opens() -> None:
    sealed = Sealer((ONE,)).seal("job", b"data")
    rotated = Sealer((TWO, ONE))
    assert rotated.open("job", sealed) == b"data"
    with pytest.raises(PayloadError, match="TOOLBOX_SEAL_KEY"):
        Sealer((ONE,)).open("job", rotated.seal("job", b"data"))


def test_a_body_cannot_be_swapped_into_another_job() -> None:
    with pytest.raises(PayloadError, match="changed or belongs to another job"):
        Sealer((ONE,)).open("job-2", Sealer((ONE,)).seal("job-1", b"data"))


@given(st.data())
def test_any_change_is_found(data: st.DataObject) -> None:
    sealed = bytearray(Sealer((ONE,)).seal("job", os.urandom(40)))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(PayloadError):
        Sealer((ONE,)).open("job", bytes(sealed))


@pytest.mark.parametrize("junk", [b"", b"\x01", b"\x02" + bytes(60), b"plain text"])
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(PayloadError, match="damaged"):
        Sealer((ONE,)).open("job", junk)


def test_without_a_key_nothing_is_sealed() -> None:
    with pytest.raises(SettingsError, match="TOOLBOX_SEAL_KEY"):
        Sealer(()).seal("job", b"data")


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not payload.stored_body(bytes(payload.ROW_BYTES)).in_blob
    large = payload.stored_body(bytes(payload.ROW_BYTES + 1))
    assert large.in_blob
    assert payload.check_body(large, bytes(payload.ROW_BYTES + 1))
    for data in (None, b"", bytes(payload.ROW_BYTES), b"x" * (payload.ROW_BYTES + 1)):
        with pytest.raises(PayloadError):
            payload.check_body(large, data)
    monkeypatch.setattr(payload, "MAX_BODY_BYTES", 100)
    with pytest.raises(PayloadError, match="at most 100"):
        payload.pack_input(Input({"x": "y" * 100}))


def test_a_result_survives_with_its_blocks() -> None:
    image = {"type": "image", "data": "AQ==", "mimeType": "image/png"}
    result = ToolResult((image,), {"a": 1})
    assert payload.unpack_result(payload.pack_result(result)) == result


def test_a_key_that_is_gone_or_a_changed_body_is_told_by_name() -> None:
    sealed = Sealer((ONE,)).seal("job", b"data")
    for sealer, damaged, said in (
        (Sealer((TWO,)), sealed, "TOOLBOX_SEAL_KEY and TOOLBOX_SEAL_KEYS"),
        (Sealer(()), sealed, "TOOLBOX_SEAL_KEY and TOOLBOX_SEAL_KEYS"),
        (Sealer((ONE,)), sealed[:-1], "stored input was changed"),
        (Sealer((ONE,)), sealed + b"x", "stored input was changed"),
        (Sealer((ONE,)), sealed[:10], "stored input is damaged"),
    ):
        with pytest.raises(PayloadError, match=said):
            sealer.open("job", damaged)


class TestCursor:
    def test_it_comes_back_for_its_owner_alone(self) -> None:
        sealer = Sealer((ONE,))
        for token in ("", "x", '{"PartitionKey": "1!32!ZmE-", "RowKey": "1!8!am9i"}', "漢" * 500):
            cursor = sealer.cursor("ana", token)
            assert re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
            assert sealer.token("ana", cursor) == token
            for other in ("bob", "", "ana "):
                with pytest.raises(InputError, match=r"^cursor: must be one that an earlier page gave$"):
                    sealer.token(other, cursor)

    def test_it_outlives_the_exchange_of_the_key(self) -> None:
        cursor = Sealer((ONE,)).cursor("ana", "token")
        assert Sealer((TWO, ONE)).token("ana", cursor) == "token"
        with pytest.raises(InputError):
            Sealer((TWO,)).token("ana", cursor)

    @given(st.text(max_size=80))
    def test_nothing_made_up_is_one(self, text: str) -> None:
        with pytest.raises(InputError):
            Sealer((ONE,)).token("ana", text)


class TestDigests:
    def test_they_depend_on_key_purpose_and_data(self) -> None:
        def one(key: bytes, purpose: str, data: bytes) -> str:
            (digest,) = Sealer((key,)).digests(purpose, data)
            return digest

        found = {
            one(key, purpose, data)
            for key in (ONE, TWO)
            for purpose in ("a", "b")
            for data in (b"x", b"y", b"")
        }
        assert len(found) == 12
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in found)

    def test_the_current_key_comes_first_and_each_key_once(self) -> None:
        (one,) = Sealer((ONE,)).digests("p", b"x")
        (two,) = Sealer((TWO,)).digests("p", b"x")
        assert Sealer((TWO, ONE)).digests("p", b"x") == (two, one)
        assert Sealer((ONE, TWO, ONE)).digests("p", b"x") == (one, two)

    def test_without_a_key_there_are_none(self) -> None:
        with pytest.raises(SettingsError, match="TOOLBOX_SEAL_KEY"):
            Sealer(()).digests("p", b"x")
