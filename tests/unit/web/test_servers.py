"""`/mcp/servers`: who sees what, and who may have the configuration read anew."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import azure.functions as func
import pytest

from shared.errors import EnvelopeError, SettingsError
from shared.web.servers import ServersApi
from tests.unit.web.support import OTHER, SETTINGS, TOKEN, body


class Servers:
    """Answers from memory, or fails. `asked`: what came."""

    def __init__(self, failure: Exception | None = None, names: tuple[str, ...] = ("docs",)) -> None:
        self.failure = failure
        self.names = names
        self.asked: list[Any] = []

    async def all(self, owner: str, project: str | None) -> list[Any]:
        self.asked.append((owner, project))
        if self.failure is not None:
            raise self.failure
        return [{"name": name} for name in self.names]

    async def one(self, name: str, owner: str, project: str | None) -> Any:
        return next((one for one in await self.all(owner, project) if one["name"] == name), None)

    async def refresh(self) -> Any:
        self.asked.append("refresh")
        if self.failure is not None:
            raise self.failure
        return {"servers": 1, "faults": [], "warnings": []}


def project_of(owner: str, asked: str | None) -> str | None:
    if asked not in (None, "sales"):
        raise EnvelopeError("__pptb.project: there is no such project for you; you have none, leave it out")
    return asked


def send(
    servers: Servers,
    name: str | None = None,
    *,
    method: str = "GET",
    token: str | None = TOKEN,
    headers: dict[str, str] | None = None,
    **params: str,
) -> func.HttpResponse:
    api = ServersApi(SETTINGS, servers, project_of)  # type: ignore[arg-type]
    given = dict(headers or {})
    if token is not None:
        given["X-MCP-Auth-Token"] = token
    request = func.HttpRequest(
        method=method,
        url="http://localhost/mcp/servers",
        headers=given,
        params=params,
        route_params={} if name is None else {"name": name},
        body=b"",
    )
    return asyncio.run(api.list(request) if name is None else api.one(request))


def test_the_caller_is_the_tokens_owner_in_the_project_that_is_asked_for() -> None:
    servers = Servers()
    assert body(send(servers)) == {"servers": [{"name": "docs"}]}
    assert body(send(servers, "docs", token=OTHER, project="sales")) == {"name": "docs"}
    assert servers.asked == [("default", None), ("ana", "sales")]


@pytest.mark.parametrize("name", ["", "nothing", "..", "\x00"])
def test_a_server_that_is_not_there_is_404(name: str) -> None:
    answer = send(Servers(), name)
    assert (answer.status_code, body(answer)) == (404, {"error": "Server not found"})


@pytest.mark.parametrize(("name", "method"), [(None, "GET"), ("docs", "GET"), ("refresh", "POST")])
def test_what_nobody_foresaw_is_500_without_its_words(
    name: str | None, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = send(Servers(RuntimeError("hunter2")), name, method=method)
    assert answer.status_code == 500
    assert body(answer) == {"error": "The servers could not be shown; the app's log has the reason."}
    assert "hunter2" in caplog.text


@pytest.mark.parametrize(("name", "method"), [(None, "GET"), ("docs", "GET"), ("refresh", "POST")])
def test_without_a_token_nothing_is_asked(name: str | None, method: str) -> None:
    servers = Servers()
    for token in (None, "", "wrong"):
        answer = send(servers, name, method=method, token=token)
        assert (answer.status_code, servers.asked) == (401, [])


def test_a_wrong_setting_or_project_is_told() -> None:
    assert send(Servers(SettingsError("X must be set."))).status_code == 503
    refused = send(Servers(), project="lab")
    assert (refused.status_code, body(refused)["error"].partition(":")[0]) == (400, "__pptb.project")
    assert send(Servers(), other="x").status_code == 400


def test_the_operator_has_the_configuration_read_anew() -> None:
    servers = Servers()
    answer = send(servers, "refresh", method="POST")
    assert (answer.status_code, body(answer)["servers"]) == (200, 1)
    assert servers.asked == ["refresh"]


def test_nobody_else_does() -> None:
    servers = Servers()
    refused = send(servers, "refresh", method="POST", token=OTHER)
    assert (refused.status_code, body(refused)) == (
        403, {"error": "Only the operator, owner 'default', may ask for this"},
    )  # fmt: skip
    foreign = send(servers, "refresh", method="POST", headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert servers.asked == []


@pytest.mark.parametrize(
    ("name", "method", "allow"),
    [
        (None, "POST", "GET"),
        ("docs", "POST", "GET"),
        ("docs", "DELETE", "GET"),
        ("refresh", "PUT", "GET, POST"),
    ],
)
def test_other_verbs_are_405(name: str | None, method: str, allow: str) -> None:
    servers = Servers()
    answer = send(servers, name, method=method)
    assert (answer.status_code, answer.headers["Allow"], servers.asked) == (405, allow, [])


def test_a_server_that_is_called_refresh_can_be_looked_at() -> None:
    servers = Servers(names=("refresh",))
    assert body(send(servers, "refresh")) == {"name": "refresh"}
    assert send(Servers(), "refresh").status_code == 404
