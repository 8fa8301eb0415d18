"""HTTP triggers, over the network, with the real worker library."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.integration.host.conftest import StartHost
    from tests.integration.host.support import Host

pytestmark = pytest.mark.integration


def test_function_sees_the_whole_request(host: Host) -> None:
    response = host.client.post(
        "/api/Echo/a%20b%2Fc?q=1&empty=&q=2", content=b"body", headers={"X-Mixed-Case": "Value", "X-Empty": ""}
    )
    seen = response.json()
    assert response.status_code == 201
    assert seen["method"] == "POST"
    assert seen["url"] == f"{host.url}/api/Echo/a%20b%2Fc?q=1&empty=&q=2"
    assert seen["params"] == {"q": "1,2"}
    assert seen["route"] == {"id": "a b%2Fc"}
    assert seen["body"] == "body"
    assert seen["headers"]["x-mixed-case"] == "Value"
    assert "x-empty" not in seen["headers"]


def test_answer_keeps_status_headers_and_cookies(host: Host) -> None:
    response = host.client.get("/api/echo/1")
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-fixture"] == "yes"
    assert response.headers["set-cookie"] == "a=b; max-age=5; path=/x; secure; samesite=lax; httponly"


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/api/any_method", 200, "GET"),
        ("DELETE", "/api/ANY_METHOD/", 200, "DELETE"),
        ("DELETE", "/api/echo/1", 404, ""),  # wrong method
        ("GET", "/any_method", 404, ""),  # without the prefix
        ("GET", "/api/number/12", 200, "int 12"),
        ("GET", "/api/number/12x", 200, "any 12x"),
        ("GET", "/api/files", 200, "rest="),
        ("GET", "/api/files/a/b%20c", 200, "rest=a/b c"),
        ("GET", "/api", 200, "root"),
        ("GET", "/api/", 200, "root"),
        ("GET", "/api/nothing", 404, ""),
        ("GET", "/api/boom", 500, ""),
        ("GET", "/api/disabled_one", 404, ""),
        ("POST", "/", 404, ""),
    ],
)
def test_routing(host: Host, method: str, path: str, status: int, body: str) -> None:
    response = host.client.request(method, path)
    assert (response.status_code, response.text) == (status, body)


def test_homepage_shows_only_where_no_function_answers(host: Host, start_host: StartHost) -> None:
    assert host.client.get("/").headers["content-type"] == "text/html; charset=utf-8"
    own = start_host(
        "--no-triggers", "queue,timer", env={"AzureFunctionsJobHost__extensions__http__routePrefix": ""}
    )
    assert own.client.get("/").text == "root"
    assert own.client.get("/any_method").text == "GET"


def test_an_app_may_have_the_root_to_itself(start_host: StartHost) -> None:
    """With the host's own page switched off, as an app with a page of its own is deployed."""
    settings = {"AzureWebJobsDisableHomepage": "true"}
    without = start_host("--no-triggers", "queue,timer", env=settings)
    answer = without.client.get("/")
    assert (answer.status_code, answer.content) == (204, b"")
    settings["AzureFunctionsJobHost__extensions__http__routePrefix"] = ""
    own = start_host("--no-triggers", "queue,timer", env=settings)
    for path in ("/", "", "/?a=b"):
        assert own.client.get(path).text == "root"
    assert own.client.post("/").text == "root"
    head = own.client.head("/")
    assert (head.status_code, head.content) == (200, b"")
    # A parameter that must be empty takes no other path.
    for path in ("/x", "/x/", "/%20", "//x"):
        assert own.client.get(f"{own.url}{path}").status_code == 404, path


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "localhost:1", 200),
        ("Host", "[::1]:7071", 200),
        ("Host", "evil.example", 421),
        ("Host", "127.0.0.1.evil.example", 421),
        ("Host", "user@127.0.0.1", 421),
        ("Origin", "http://localhost:3000", 200),
        ("Origin", "https://127.0.0.1", 200),
        ("Origin", "http://evil.example", 403),
        ("Origin", "http://localhost.evil.example", 403),
        ("Origin", "file://localhost", 403),
    ],
)
@pytest.mark.parametrize("path", ["/api/any_method", "/admin/host/status", "/runtime/webhooks/mcp"])
def test_foreign_hosts_and_origins_are_refused(
    host: Host, path: str, header: str, value: str, status: int
) -> None:
    response = host.client.get(path, headers={header: value})
    assert response.status_code == (405 if status == 200 and path.endswith("mcp") else status)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        # A sandboxed page asks for its scripts so.
        ("GET", "/api/any_method", 200),
        ("POST", "/api/any_method", 403),
        ("GET", "/admin/host/status", 403),
        ("GET", "/runtime/webhooks/mcp", 403),
    ],
)
def test_a_page_without_an_origin_may_only_read_functions(
    host: Host, method: str, path: str, status: int
) -> None:
    assert host.client.request(method, path, headers={"Origin": "null"}).status_code == status


def test_missing_host_header_is_refused(host: Host) -> None:
    with socket.create_connection(("127.0.0.1", host.port or 0)) as connection:
        connection.sendall(b"GET /api/any_method HTTP/1.0\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("path", ["/api/any_method", "/runtime/webhooks/mcp"])
def test_body_over_the_limit_is_413(host: Host, path: str) -> None:
    headers = {"accept": "*/*", "content-type": "application/json"}
    declared = host.client.post(path, content=b" " * 200_001, headers=headers)
    assert declared.status_code == 413

    def pieces() -> object:
        for _ in range(3):
            yield b" " * 100_000

    streamed = host.client.post(path, content=pieces(), headers=headers)  # type: ignore[arg-type]
    assert streamed.status_code == 413
    assert host.client.post("/api/echo/1", content=b" " * 200_000).status_code == 201


def test_admin_routes(host: Host) -> None:
    status = host.client.get("/admin/host/status").json()
    assert status["state"] == "Running"
    assert host.client.get("/admin/host/ping").status_code == 200
    functions = {item["name"]: item for item in host.client.get("/admin/functions").json()}
    assert functions["disabled_one"]["isDisabled"] is True
    assert functions["echo"]["config"]["bindings"][0]["route"] == "echo/{id}"
    assert host.client.get("/admin/nothing").status_code == 404
    assert host.client.post("/admin/functions/nothing").status_code == 404


def test_app_sees_its_folder_and_nothing_of_the_host(host: Host) -> None:
    from tests.integration.host.support import FIXTURE

    seen = json.loads(host.client.get("/api/surroundings").text)
    assert seen["cwd"] == seen["first_path"] == str(FIXTURE)
    assert seen["host_visible"] is False
    assert seen["host_modules"] == []
    assert seen["main"] == []
    assert seen["hostname"] == f"127.0.0.1:{host.port}"


def test_concurrent_requests_run_side_by_side(host: Host) -> None:
    import asyncio
    import time

    async def calls() -> float:
        async with httpx.AsyncClient(base_url=host.url, timeout=30, trust_env=False) as client:
            start = time.monotonic()
            paths = ["/api/slow?seconds=0.4"] * 8 + ["/api/block?seconds=0.4"] * 4
            answers = await asyncio.gather(*(client.get(path) for path in paths))
            assert {answer.text for answer in answers} == {"done"}
            return time.monotonic() - start

    assert asyncio.run(calls()) < 1.2  # one after another they take 4.8 s
