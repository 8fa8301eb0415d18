"""Queue messages and outputs without a queue."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.host.outputs import expand, message_bodies
from infra.local.host.queue_messages import Backoff, binding_data, decode_body, poison_name, trigger_metadata
from infra.local.host.values import Kind, Value

MOMENT = datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC)
MESSAGE = SimpleNamespace(
    id="m", pop_receipt="r", dequeue_count=2, inserted_on=MOMENT, expires_on=MOMENT, next_visible_on=None
)


@given(st.binary())
def test_base64_bodies(body: bytes) -> None:
    text = base64.b64encode(body).decode()
    assert decode_body(text, base64_encoded=True) == body
    assert decode_body(f" {text[:3]}\r\n{text[3:]} ", base64_encoded=True) == body
    assert decode_body(text, base64_encoded=False) == text.encode()


@pytest.mark.parametrize("content", ['{"a": 1}', "abc", "ab=c", "YQ", "ü", "a-_b"])
def test_what_is_not_base64(content: str) -> None:
    assert decode_body(content, base64_encoded=True) is None


@pytest.mark.parametrize(
    ("queue", "poison"),
    [("jobs", "jobs-poison"), ("jobs-poison", None), ("q" * 56, "q" * 56 + "-poison"), ("q" * 57, None)],
)
def test_poison_name(queue: str, poison: str | None) -> None:
    assert poison_name(queue) == poison


def test_metadata_and_binding_data() -> None:
    text = '{"id": "i", "n": 5, "yes": true, "none": null, "list": [1], "object": {"x": 1.5}, "Id": "over"}'
    metadata = trigger_metadata(cast("Any", MESSAGE), text)
    assert metadata["DequeueCount"] == Value(Kind.STRING, "2")
    assert metadata["InsertionTime"] == Value(Kind.JSON, '"2026-11-29T01:02:03+00:00"')
    data = binding_data(metadata, text)
    assert data["PopReceipt"] == "r"
    assert data["NextVisibleTime"] is None
    assert (data["n"], data["yes"], data["object"]) == ("5", "True", {"x": 1.5})
    assert "none" not in data
    assert "list" not in data
    for other in ("no json", "[1]", "5"):
        assert binding_data(metadata, other).keys() == metadata.keys()


@pytest.mark.parametrize(
    ("value", "bodies"),
    [
        (Value(Kind.STRING, "[1]"), [b"[1]"]),
        (Value(Kind.BYTES, b"\xff"), [b"\xff"]),
        (Value(Kind.JSON, '["a", {"b": "\\u00fc"}, 5]'), [b"a", '{"b":"ü"}'.encode(), b"5"]),
        (Value(Kind.JSON, '{"id": null}'), [b'{"id":null}']),
        (Value(Kind.JSON, "[]"), []),
    ],
)
def test_message_bodies(value: Value, bodies: list[bytes]) -> None:
    assert message_bodies(value) == bodies


def test_expand() -> None:
    data = {"id": "7", "mcptoolargs": {"Queue": "q"}, "flag": True}
    assert expand("x-{ID}-{mcptoolargs.queue}-{flag}", data) == "x-7-q-True"
    assert len(expand("{rand-guid}", {})) == 36
    for name in ("gone", "id.x", "mcptoolargs.gone"):
        with pytest.raises(KeyError, match="No value for named parameter"):
            expand(f"{{{name}}}", data)


def test_backoff_doubles_up_to_its_maximum_and_starts_again() -> None:
    backoff = Backoff(2.0)
    waits = [backoff.next() for _ in range(10)]
    assert waits[0] == 0.1
    assert waits[-1] == 2.0
    assert waits == sorted(waits)
    assert waits[1] == pytest.approx(0.3, rel=0.2)
    backoff.reset()
    assert backoff.next() == 0.1
    assert [Backoff(0.1).next() for _ in range(3)] == [0.1] * 3
