"""A bench for the APIs: an environment without credentials, and a host that answers as it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx

from shared.apis.dataverse import DataverseApi
from shared.apis.environment import PowerPlatform, Target
from shared.apis.http import Hosts

URL = "https://contoso.crm.dynamics.com"
ROOT = f"{URL}/api/data/v9.2/"
ID = "8c1f0c6e-2f4b-4d0e-9a0b-0c3c5a7d1e2f"
OTHER = "0d7e6f1a-93a5-4a53-8f0c-52f3f3a9b001"

#: Logical name -> entity set, primary id. One plural that no rule would guess.
TABLES = {
    "account": ("accounts", "accountid"),
    "contact": ("contacts", "contactid"),
    "systemuser": ("systemusers", "systemuserid"),
    "role": ("roles", "roleid"),
    "task": ("tasks", "activityid"),
    "new_staff": ("new_staffset", "new_staffid"),
}

type Handler = Callable[[httpx.Request], httpx.Response]


@dataclass
class FakeEnvironment:
    url: str = URL
    id: str = "connection-1"
    name: str = "Dev"
    ends: float | None = None
    power_platform: PowerPlatform = field(default_factory=PowerPlatform)
    #: What `token` was asked for: (scope, renew).
    asked: list[tuple[str, bool]] = field(default_factory=list)

    async def token(self, scope: str, *, renew: bool = False) -> str:
        self.asked.append((scope, renew))
        return f"token-{sum(renewed for _, renewed in self.asked)}"

    def deadline(self) -> float | None:
        return self.ends


class Wire:
    """Answers metadata questions for `TABLES`, and everything else from a queue; keeps what was asked."""

    def __init__(self, *answers: httpx.Response | Exception | Handler, environment: Any = None) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.metadata: list[httpx.Request] = []
        self.environment = environment if environment is not None else FakeEnvironment()
        self.targets: list[Target] = []
        self.hosts = Hosts(httpx.MockTransport(self._answer))
        self.api = DataverseApi(self._resolve, self.hosts)

    def _resolve(self, target: Target) -> Any:
        self.targets.append(target)
        return self.environment

    def _answer(self, request: httpx.Request) -> httpx.Response:
        query = request.url.query.decode()
        if "EntitySetName,PrimaryIdAttribute" in query:
            self.metadata.append(request)
            name = request.url.path.partition("'")[2].partition("'")[0]
            if name not in TABLES:
                return refused(404, "0x80060888", "not found")
            entity_set, primary = TABLES[name]
            return answer({"LogicalName": name, "EntitySetName": entity_set, "PrimaryIdAttribute": primary})
        self.requests.append(request)
        found = self.answers.pop(0) if self.answers else httpx.Response(204)
        if isinstance(found, Exception):
            raise found
        return found(request) if callable(found) else found

    @property
    def request(self) -> httpx.Request:
        (only,) = self.requests
        return only


def answer(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def refused(status: int, code: str, message: str, **headers: str) -> httpx.Response:
    return answer({"error": {"code": code, "message": message}}, status, **headers)


def target_of(request: httpx.Request) -> str:
    """Path and query as they were sent, below the Web API's root."""
    raw = request.url.raw_path.decode()
    assert raw.startswith("/api/data/v9.2/"), raw
    return raw.removeprefix("/api/data/v9.2/")


def body_of(request: httpx.Request) -> Any:
    return json.loads(request.content) if request.content else None


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"accountid": f"{start + n:08x}-0000-0000-0000-000000000000", "n": start + n} for n in range(count)]


def batch_answer(parts: Iterable[str], status: int = 200) -> httpx.Response:
    boundary = "batchresponse_1"
    text = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    return httpx.Response(
        status, content=text.encode(), headers={"content-type": f"multipart/mixed; boundary={boundary}"}
    )


def part(status: str, body: Any = None, content_id: str | None = None, **headers: str) -> str:
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    if content_id is not None:
        lines.append(f"Content-ID: {content_id}")
    lines += ["", f"HTTP/1.1 {status}", "OData-Version: 4.0"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", "" if body is None else json.dumps(body)])
