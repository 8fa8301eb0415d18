"""`powerplatformAPI`: 15 categories of the Power Platform API, each with Get, Post, Put, Patch and Delete.

    await powerplatformAPI.EnvironmentManagement.Get("environments?api-version=2024-10-01")

Snake case as well: `powerplatformAPI.environment_management.get(…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.apis.environment import Environment, Resolver, Target, environment
from shared.apis.headers import checked, merged
from shared.apis.http import Hosts, Request, Service, encode, send
from shared.apis.methods import CATEGORIES as CATEGORIES
from shared.apis.naming import to_snake
from shared.apis.operation import Api, Headers, Named, operation
from shared.apis.record import Record
from shared.apis.urls import relative_url
from shared.apis.values import jsonable
from shared.errors import PowerPlatformError

_SERVICE: Final = Service(
    name="The Power Platform API",
    error=PowerPlatformError,
    request_id_header="x-ms-request-id",
    span="powerplatform.request",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call to one category."""

    environment: Environment
    hosts: Hosts
    root: str
    additional: Mapping[str, str | None] = field(default_factory=dict)

    async def send(self, method: str, path: str | None, body: Any = None) -> Any:
        """An empty record for an empty answer, a text for one that is not JSON."""
        headers = {"accept": "application/json"}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = encode(body, jsonable)
        request = Request(
            method=method,
            root=self.root,
            path=_below(path),
            headers=merged(headers, self.additional),
            body=content,
        )
        scope = self.environment.power_platform.scope
        answer = await send(self.hosts.of(self.root), self.environment, scope, _SERVICE, request)
        if not answer.content.strip():
            return Record()
        try:
            return answer.json()
        except ValueError:
            return answer.text


def _below(path: str | None) -> str:
    """`/environments?…`; a path that begins with `?` follows the category directly."""
    if path is None or path == "":
        return ""
    if isinstance(path, str) and path.strip().startswith("?"):
        return relative_url(f"x{path.strip()}", "path")[1:]
    return "/" + relative_url(path, "path")


async def get(call: Call, path: str | None = None) -> Any:
    """GET `<category>/<path>`."""
    return await call.send("GET", path)


async def post(call: Call, path: str | None = None, body: Any = None) -> Any:
    """POST `<category>/<path>` with `body` as JSON."""
    return await call.send("POST", path, body)


async def put(call: Call, path: str | None = None, body: Any = None) -> Any:
    """PUT `<category>/<path>` with `body` as JSON."""
    return await call.send("PUT", path, body)


async def patch(call: Call, path: str | None = None, body: Any = None) -> Any:
    """PATCH `<category>/<path>` with `body` as JSON."""
    return await call.send("PATCH", path, body)


async def delete(call: Call, path: str | None = None, body: Any = None) -> Any:
    """DELETE `<category>/<path>`; `body` comes last."""
    return await call.send("DELETE", path, body)


class Category(Api[Call]):
    """One category: `(path?, connectionTarget?, headers?)`, and `body` second where there is one."""

    def __init__(self, name: str, resolver: Resolver, hosts: Hosts) -> None:
        self._resolver = resolver
        self._hosts = hosts
        self._path = name.lower()

    def scope(self, target: Target, headers: Headers | None) -> Call:
        additional = checked(headers, "powerplatformAPI")
        place = self._resolver(target)
        return Call(place, self._hosts, f"{place.power_platform.url}/{self._path}", additional)

    Get = operation(get, headers="headers")
    Post = operation(post, headers="headers")
    Put = operation(put, headers="headers")
    Patch = operation(patch, headers="headers")
    Delete = operation(delete, "path", "connection_target", "headers", "body", headers="headers")


class PowerPlatformApi(Named):
    """The categories, as attributes in both spellings. Each call goes to the API of its connection's cloud."""

    def __init__(self, resolver: Resolver = environment, hosts: Hosts | None = None) -> None:
        hosts = hosts if hosts is not None else Hosts()
        for name in CATEGORIES:
            category = Category(name, resolver, hosts)
            setattr(self, name, category)
            setattr(self, to_snake(name), category)
