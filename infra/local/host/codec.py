"""Between the host's values and the two forms the worker library takes: its Datum and protobuf's TypedData."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from azure_functions_runtime.bindings import datumdef

from infra.local.host import protos
from infra.local.host.values import Cookie, HttpCall, HttpReply, Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

# The library has no annotations worth checking against.
datum_of: Any = datumdef.Datum
parse_cookies: Any = datumdef.parse_to_rpc_http_cookie_list


def to_datum(value: Value | HttpCall | None) -> Any:
    """For the native entry."""
    if value is None:
        return datum_of(None, None)
    if isinstance(value, Value):
        return datum_of(value.data, value.kind.value)
    text = datum_of
    return text(
        {
            "method": text(value.method, "string"),
            "url": text(value.url, "string"),
            "headers": {name: text(item, "string") for name, item in value.headers.items()},
            "query": {name: text(item, "string") for name, item in value.query.items()},
            "params": {name: text(item, "string") for name, item in value.route.items()},
            "body": text(value.body, "bytes"),
        },
        "http",
    )


def to_typed_data(value: Value | HttpCall | None) -> protos.TypedData:
    """For the protobuf-shaped entry."""
    if value is None:
        return protos.TypedData()
    if isinstance(value, Value):
        return protos.TypedData(**{value.kind.value: value.data})
    return protos.TypedData(
        http=protos.RpcHttp(
            method=value.method,
            url=value.url,
            headers=value.headers,
            query=value.query,
            params=value.route,
            body=protos.TypedData(bytes=value.body),
        )
    )


def from_datum(datum: Any) -> Value | None:
    """A Datum in TypedData's terms: what the protobuf entry makes of it on its way out."""
    if datum is None or datum.type is None:
        return None
    match datum.type:
        case "dict" | "list":
            return Value(Kind.JSON, json.dumps(datum.value))
        case "bool":
            return Value(Kind.INT, int(datum.value))
        case "http":
            cookies = parse_cookies(datum.value.get("cookies"), protos)
            headers = {name: item.value for name, item in datum.value["headers"].items()}
            body = from_datum(datum.value["body"])
            return Value(Kind.HTTP, _reply(datum.value["status_code"].value, headers, cookies, body))
        case kind:
            return Value(Kind(kind), datum.value)


def from_typed_data(data: protos.TypedData | None) -> Value | None:
    """From the protobuf-shaped entry."""
    kind = None if data is None else data.WhichOneof("data")
    if data is None or kind is None:
        return None
    content = getattr(data, kind)
    if kind == "http":
        body = from_typed_data(content.body)
        return Value(Kind.HTTP, _reply(content.status_code, content.headers, content.cookies, body))
    return Value(Kind(kind), content)


def _reply(status: Any, headers: Mapping[str, str], cookies: Any, body: Value | None) -> HttpReply:
    content = b"" if body is None else body.data
    return HttpReply(
        status=int(status),
        headers=tuple(headers.items()),
        cookies=tuple(_cookie(item) for item in cookies or ()),
        body=content.encode() if isinstance(content, str) else bytes(content),
    )


def _cookie(item: Any) -> Cookie:
    def plain(wrapped: Any) -> Any:
        return None if wrapped is None else wrapped.value

    expires = plain(item.expires)
    return Cookie(
        name=item.name,
        value=item.value,
        domain=plain(item.domain) or None,
        path=plain(item.path) or None,
        expires=None if expires is None else int(expires.seconds),
        max_age=plain(item.max_age),
        secure=bool(plain(item.secure)),
        http_only=bool(plain(item.http_only)),
        same_site=item.same_site,
    )
