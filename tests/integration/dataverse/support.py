"""Calls to a stand-in environment without a server in between, and a client for one with a server."""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx

from infra.local.dataverse.api import handle
from infra.local.dataverse.call import Answer, Call, parse_query
from infra.local.dataverse.environment import Environment
from infra.local.dataverse.tables import add_records

if TYPE_CHECKING:
    from infra.local.dataverse.stand_in import StandIn

ROOT = "https://org.invalid/api/data/v9.2/"
NOBODY = "00000000-0000-0000-0000-00000000dead"


@dataclass
class Api:
    """An environment with the sample records, called directly."""

    environment: Environment = field(default_factory=lambda: Environment("dev"))

    def __post_init__(self) -> None:
        add_records(self.environment)
        self.user = self.environment.user_of("00000000-0000-0000-0000-0000000000aa")

    def send(self, method: str, url: str, body: Any = None, **headers: str) -> Answer:
        """Header names are given with underscores; a body that is no bytes is sent as JSON."""
        path, _, query = url.removeprefix(ROOT).partition("?")
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("mscrm_", "mscrm.").replace("_", "-"): value for name, value in headers.items()}
        return handle(self.environment, Call(method, path, ROOT, parse_query(query), named, data), self.user)

    def get(self, url: str, **headers: str) -> Any:
        """The JSON of a GET that succeeds."""
        answer = self.send("GET", url, **headers)
        assert answer.status == 200, answer.body
        return json.loads(answer.content)

    def error(self, method: str, url: str, body: Any = None, **headers: str) -> tuple[int, str, str]:
        """Status, code and message of a request that fails."""
        answer = self.send(method, url, body, **headers)
        assert answer.status >= 400, answer
        error = json.loads(answer.content)["error"]
        return answer.status, error["code"], error["message"]

    def create(self, url: str, body: Any, **headers: str) -> str:
        """The id of what a POST makes."""
        answer = self.send("POST", url, body, **headers)
        assert answer.status == 204, answer.body
        return answer.headers["OData-EntityId"].rpartition("(")[2].rstrip(")")

    def names(self, url: str) -> list[Any]:
        """The account names of a list, by their numbers."""
        return [int(one["name"].removeprefix("Account ")) for one in self.get(url)["value"]]

    def account(self, number: int = 1) -> str:
        """The id of a sample account."""
        return self.environment.ids("account")[number - 1]

    def contact(self, number: int = 1) -> str:
        """The id of a sample contact."""
        return self.environment.ids("contact")[number - 1]

    def project(self, number: int = 1) -> str:
        """The id of a sample project."""
        return self.environment.ids("sample_project")[number - 1]


def client_of(stand_in: StandIn) -> httpx.Client:
    """A client that trusts the stand-in's certificate."""
    return httpx.Client(verify=ssl.create_default_context(cafile=str(stand_in.ca_file)), timeout=10)


def token(stand_in: StandIn, client: httpx.Client, scope: str | None = None, **changed: str) -> httpx.Response:
    """A token request for the first environment."""
    connection = stand_in.connection()
    form = {
        "grant_type": "client_credentials", "client_id": connection["clientId"],
        "client_secret": connection["clientSecret"], "scope": scope or f"{connection['url']}/.default",
    } | changed  # fmt: skip
    return client.post(f"{stand_in.authority_url}/{connection['tenantId']}/oauth2/v2.0/token", data=form)


def bearer(stand_in: StandIn, client: httpx.Client, scope: str | None = None) -> dict[str, str]:
    """The header with a fresh token."""
    return {"authorization": f"Bearer {token(stand_in, client, scope).json()['access_token']}"}


def inner_cookie(outer: str) -> str:
    """What of an outer paging cookie goes into a fetch's `paging-cookie`."""
    return unquote(unquote(outer.partition('pagingcookie="')[2].partition('"')[0]))
