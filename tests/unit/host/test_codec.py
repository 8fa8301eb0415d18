"""Values on their way out of the worker: what the library's own protobuf conversion makes of them."""

from __future__ import annotations

import json
from http.cookies import SimpleCookie
from typing import Any

import pytest
from azure_functions_runtime.bindings import datumdef

from infra.local.host import protos
from infra.local.host.codec import from_datum, from_typed_data, to_datum, to_typed_data
from infra.local.host.values import Cookie, HttpCall, HttpReply, Kind, Value

datum: Any = datumdef.Datum
as_proto: Any = datumdef.datum_as_proto
TEXT = "string"


def http(**cookie_fields: str) -> Any:
    """An HTTP answer as the converter makes it."""
    cookie: SimpleCookie = SimpleCookie()
    cookie["a"] = "b"
    for name, value in cookie_fields.items():
        cookie["a"][name.replace("_", "-")] = value
    fields = {
        "status_code": datum("201", TEXT),
        "headers": {"X-A": datum("1", TEXT)},
        "cookies": [cookie],
        "body": datum(b"x", "bytes"),
    }
    return datum(fields, "http")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (datum("s", "string"), Value(Kind.STRING, "s")),
        (datum(b"b", "bytes"), Value(Kind.BYTES, b"b")),
        (datum("{}", "json"), Value(Kind.JSON, "{}")),
        (datum({"a": [1]}, "dict"), Value(Kind.JSON, '{"a": [1]}')),
        (datum([1, None], "list"), Value(Kind.JSON, "[1, null]")),
        (datum(5, "int"), Value(Kind.INT, 5)),
        (datum(1.5, "double"), Value(Kind.DOUBLE, 1.5)),
        (datum(True, "bool"), Value(Kind.INT, 1)),
        (datum(None, None), None),
    ],
)
def test_values(given: Any, value: Value | None) -> None:
    assert from_datum(given) == from_typed_data(as_proto(given, protos)) == value


def test_http_answers() -> None:
    given = http(path="/p", secure="1", samesite="Strict", max_age="5", expires="Thu, 01 Jan 2026 00:00:00 GMT")
    value = from_datum(given)
    assert value == from_typed_data(as_proto(given, protos))
    assert value is not None
    reply: HttpReply = value.data
    assert (reply.status, reply.headers, reply.body) == (201, (("X-A", "1"),), b"x")
    [cookie] = reply.cookies
    assert cookie == Cookie("a", "b", None, "/p", cookie.expires, 5.0, True, False, "strict")
    assert cookie.expires is not None


def test_a_kind_that_has_no_wire_form_fails() -> None:
    with pytest.raises(ValueError, match="set"):
        from_datum(datum({1}, "set"))


def test_inputs_read_the_same_in_both_forms() -> None:
    call = HttpCall("GET", "http://h/x", {"a": "1"}, {"q": "2"}, {"id": "3"}, b"body")
    read = datumdef.Datum.from_typed_data(to_typed_data(call))  # type: ignore[no-untyped-call]
    assert {key: str(item) for key, item in read.value.items()} == {
        key: str(item) for key, item in to_datum(call).value.items()
    }
    text = Value(Kind.JSON, json.dumps([1]))
    assert datumdef.Datum.from_typed_data(to_typed_data(text)) == to_datum(text)  # type: ignore[no-untyped-call]
