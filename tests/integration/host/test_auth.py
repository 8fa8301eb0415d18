"""Keys with and without --auth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.host import support

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

KEYS = {
    "MCP_EXTENSION_KEY": "system-key",
    "HOST_MASTER_KEY": "master-key",
    "HOST_FUNCTION_KEY": "host-key",
    "HOST_FUNCTION_KEY__keyed": "own-key",
    "HOST_FUNCTION_KEY__other": "other-key",
}
PATHS = {
    "open": "/api/any_method",
    "function": "/api/keyed",
    "admin": "/api/owner",
    "host": "/admin/host/status",
}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[support.Host]:
    """A host with --auth and every kind of key."""
    host = support.start(tmp_path_factory.mktemp("locked"), "--auth", "--no-triggers", "queue,timer", env=KEYS)
    yield host
    support.close(host)


@pytest.mark.parametrize(
    ("key", "opened"),
    [
        (None, {"open"}),
        ("wrong", {"open"}),
        ("system-key", {"open"}),
        ("other-key", {"open"}),
        ("host-key", {"open", "function"}),
        ("own-key", {"open", "function"}),
        ("master-key", {"open", "function", "admin", "host"}),
    ],
)
@pytest.mark.parametrize("place", ["header", "query"])
def test_http_functions(locked: support.Host, key: str | None, opened: set[str], place: str) -> None:
    headers = {"x-functions-key": key} if key and place == "header" else {}
    params = {"code": key} if key and place == "query" else {}
    for name, path in PATHS.items():
        response = locked.client.get(path, headers=headers, params=params)
        assert response.status_code == (200 if name in opened else 401), name
        if name not in opened:
            assert response.content == b""


@pytest.mark.parametrize(
    ("key", "status"),
    [
        (None, 401),
        ("", 401),
        ("wrong", 401),
        ("system-ke", 401),
        ("host-key", 403),
        ("own-key", 403),
        ("other-key", 403),
        ("system-key", 405),  # let in; GET is not allowed
        ("master-key", 405),
    ],
)
@pytest.mark.parametrize("place", ["header", "query"])
def test_mcp_endpoint(locked: support.Host, key: str | None, status: int, place: str) -> None:
    headers = {"x-functions-key": key} if key is not None and place == "header" else {}
    params = {"CODE": key} if key is not None and place == "query" else {}
    response = locked.client.get(support.MCP_PATH, headers=headers, params=params)
    assert (response.status_code, response.content) == (status, b"")


def test_header_wins_over_query(locked: support.Host) -> None:
    response = locked.client.get(
        support.MCP_PATH, headers={"x-functions-key": "wrong"}, params={"code": "system-key"}
    )
    assert response.status_code == 401


def test_right_key_reaches_the_tools(locked: support.Host) -> None:
    assert locked.rpc("tools/list", x_functions_key="system-key")["result"]["tools"]


def test_keys_are_not_checked_without_auth(host: support.Host) -> None:
    for path in PATHS.values():
        assert host.client.get(path, headers={"x-functions-key": "wrong"}).status_code == 200
    assert host.rpc("ping", x_functions_key="wrong")["result"] == {}


def test_auth_without_a_system_key_does_not_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    process, output, _, _ = support.launch(tmp_path_factory.mktemp("keyless"), "--auth")
    assert process.wait(support.DEADLINE) == 1
    assert "--auth needs the setting MCP_EXTENSION_KEY" in output.read_text()


def test_anonymous_webhooks_need_no_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    level = {"AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel": "anonymous"}
    host = support.start(
        tmp_path_factory.mktemp("anonymous"), "--auth", "--no-triggers", "queue,timer", env=level
    )
    try:
        assert host.rpc("ping")["result"] == {}
        assert host.client.get("/api/keyed").status_code == 401
    finally:
        support.close(host)
