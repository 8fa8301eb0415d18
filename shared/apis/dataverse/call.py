"""One call to the Dataverse Web API: its environment, its additional headers, and how it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from shared.apis.dataverse.names import key_segment, logical_name, quoted
from shared.apis.environment import Environment
from shared.apis.headers import merged
from shared.apis.http import READ_TIMEOUT, Answer, Host, Hosts, Request, Service, encode, origin_of, send
from shared.apis.values import jsonable
from shared.errors import DataverseError

API_PATH: Final = "/api/data/v9.2/"
ODATA: Final = {"accept": "application/json", "odata-maxversion": "4.0", "odata-version": "4.0"}
REPRESENTATION: Final = "return=representation"
ANNOTATIONS: Final = 'odata.include-annotations="*"'
SERVICE: Final = Service(name="Dataverse", error=DataverseError)


@dataclass(frozen=True, slots=True)
class Table:
    """What an environment's metadata says of a table."""

    logical_name: str
    entity_set: str
    primary_id: str


@dataclass(frozen=True, slots=True)
class Call:
    """Made in the calling code's context; used on the APIs' event loop."""

    environment: Environment
    hosts: Hosts
    additional: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """`https://host/api/data/v9.2/`."""
        return origin_of(self.environment.url) + API_PATH

    @property
    def host(self) -> Host:
        return self.hosts.of(self.environment.url)

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        content: bytes | None = None,
        read_timeout: float | None = READ_TIMEOUT,
        accept: Callable[[Answer], bool] | None = None,
    ) -> Answer:
        """`path`: encoded, below the root. `body`: JSON. Raises `DataverseError` for a refusal.

        `accept`: answers that are no refusals in spite of their status.
        """
        if body is not None:
            content = encode(body, jsonable)
        defaults = {**ODATA, **(headers or {})}
        if body is not None:
            defaults["content-type"] = "application/json"
        request = Request(
            method=method,
            root=self.root,
            path=path,
            headers=merged(defaults, self.additional),
            body=content,
            read_timeout=read_timeout,
        )
        scope = f"{origin_of(self.environment.url)}/.default"
        return await send(self.host, self.environment, scope, SERVICE, request, accept)

    async def json(self, method: str, path: str, **options: Any) -> Any:
        """The answer's value, with a `Record` for every object; an empty `Record` for an empty answer."""
        answer = await self.send(method, path, **options)
        try:
            return answer.json()
        except ValueError:
            raise DataverseError(
                f"Dataverse answered {method} with something that is not JSON", status=answer.status
            ) from None

    async def table(self, name: str) -> Table:
        """The table with this logical name, from the environment's metadata; asked once per environment."""
        name = logical_name(name)
        kept = self.host.kept
        if name not in kept:
            lock = kept.setdefault(("lock", name), asyncio.Lock())
            async with lock:
                if name not in kept:
                    kept[name] = await self._ask_for_table(name)
        table: Table = kept[name]
        return table

    def forget_tables(self) -> None:
        """After their definitions have changed."""
        kept = self.host.kept
        for name in [name for name in kept if isinstance(name, str)]:
            del kept[name]

    async def _ask_for_table(self, name: str) -> Table:
        columns = "LogicalName,EntitySetName,PrimaryIdAttribute"
        path = f"EntityDefinitions(LogicalName={quoted(name)})?$select={columns}"
        try:
            found = await replace(self, additional={}).json("GET", path)
        except DataverseError as error:
            if error.status == 404:
                error.args = (f"There is no table with the logical name '{name}' here: {error.message}",)
            raise
        entity_set, primary_id = found.get("EntitySetName"), found.get("PrimaryIdAttribute")
        if not entity_set:
            raise DataverseError(f"The table '{name}' has no entity set: the Web API does not serve it")
        return Table(name, str(entity_set), str(primary_id or f"{name}id"))

    async def row(self, entity: str, key: object) -> str:
        """The path of one row: `accounts(<guid>)` or `accounts(accountnumber='A-1')`."""
        segment = key_segment(key)
        table = await self.table(entity)
        return f"{table.entity_set}({segment})"
