from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import PayloadError, SettingsError
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
