"""`powerplatformAPI`: 15 categories, five methods each."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import httpx
import pytest

from shared.apis.naming import to_snake
from shared.apis.powerplatform import CATEGORIES, PowerPlatformApi
from shared.errors import PowerPlatformError, ToolError
from tests.support.dataverse import Wire, answer, body_of

WITH_BODY = ("Post", "Put", "Patch")


def bench(*answers: httpx.Response) -> tuple[Wire, PowerPlatformApi]:
    wire = Wire(*answers)
    return wire, PowerPlatformApi(wire._resolve, wire.hosts)


def test_there_are_fifteen_categories() -> None:
    assert len(CATEGORIES) == 15


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("method", ["Get", "Post", "Put", "Patch", "Delete"])
def test_every_method_on_the_wire(category: str, method: str) -> None:
    wire, api = bench(answer({"value": [{"id": 1}]}), answer({}))
    path = "environments/a b?api-version=2024-10-01"
    arguments: list[Any] = [path, {"x": 1}] if method in WITH_BODY else [path]
    result = getattr(getattr(api, category), method)(*arguments, 1, {"x-ms-test": "yes"})
    assert result.value[0].id == 1
    assert wire.targets == [1]
    request = wire.request
    assert request.method == method.upper()
    assert str(request.url) == (
        f"https://api.powerplatform.com/{category.lower()}/environments/a%20b?api-version=2024-10-01"
    )
    assert body_of(request) == ({"x": 1} if method in WITH_BODY else None)
    expected = {"authorization": "Bearer token-0", "accept": "application/json", "x-ms-test": "yes"}
    assert {name: request.headers.get(name) for name in expected} == expected
    assert ("content-type" in request.headers) is (method in WITH_BODY)
    assert wire.environment.asked == [("https://api.powerplatform.com/.default", False)]

    async def main() -> Any:
        return await getattr(getattr(api, to_snake(category)), to_snake(method))(*arguments)

    assert asyncio.run(main()) == {}


def test_the_order_of_arguments() -> None:
    _, api = bench()
    orders = {
        name: list(inspect.signature(getattr(api.Analytics, name)).parameters)
        for name in ("Get", "Post", "Delete")
    }
    assert orders == {
        "Get": ["path", "connection_target", "headers"],
        "Post": ["path", "body", "connection_target", "headers"],
        "Delete": ["path", "connection_target", "headers", "body"],
    }
    wire, api = bench()
    api.Governance.Delete("rules/1", None, None, {"force": True})
    assert body_of(wire.request) == {"force": True}


@pytest.mark.parametrize(
    ("path", "end"),
    [
        (None, "licensing"),
        ("", "licensing"),
        ("?a=1", "licensing?a=1"),
        ("/x", "licensing/x"),
        (" x ", "licensing/x"),
    ],
)
def test_paths(path: Any, end: str) -> None:
    wire, api = bench()
    api.Licensing.Get(path)
    assert str(wire.request.url) == f"https://api.powerplatform.com/{end}"


@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "../x", "a/%2e%2e/b", "a\nb", 5, "/../x"]
)
def test_paths_that_lead_elsewhere(path: Any) -> None:
    wire, api = bench()
    with pytest.raises(ToolError):
        api.Licensing.Get(path)
    assert wire.requests == []


def test_answers() -> None:
    _, api = bench(httpx.Response(202), httpx.Response(200, text="plain"), answer([1]))
    assert [api.Licensing.Get(), api.Licensing.Get(), api.Licensing.Get()] == [{}, "plain", [1]]


def test_refusals_and_headers() -> None:
    refusal = {"error": {"code": "Forbidden", "message": "no token-0"}}
    wire, api = bench(answer(refusal, 403, x_ms_request_id="r"))
    with pytest.raises(PowerPlatformError) as caught:
        api.Licensing.Get("x")
    assert caught.value.message == "Forbidden: no [redacted] (HTTP 403, request id r)"
    with pytest.raises(ToolError, match="cannot be set"):
        api.Licensing.Get("x", headers={"authorization": "Bearer x"})
    with pytest.raises(AttributeError, match=r"did you mean '[Ll]icensing'"):
        _ = api.Licencing
    assert len(wire.requests) == 1
