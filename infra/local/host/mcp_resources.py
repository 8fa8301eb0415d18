"""``mcpResourceTrigger``: resources/list, resources/templates/list and resources/read."""

from __future__ import annotations

import base64
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from infra.local.host import wire
from infra.local.host.errors import HostError
from infra.local.host.mcp_call import GENERIC_ERROR, RpcError
from infra.local.host.mcp_result import ResultError, resource_contents
from infra.local.host.mcp_schema import parse_metadata
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from infra.local.host.invoker import Invoker
    from infra.local.host.mcp_call import Call, Handler
    from infra.local.host.values import Binding, Function

logger = logging.getLogger("host.mcp")

_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Resource:
    """A registered resource; ``pattern`` matches the uris of a template and is None for a static one."""

    uri: str
    function: Function
    entry: dict[str, Any]
    mime_type: str | None
    pattern: re.Pattern[str] | None


def build_resources(triggers: list[tuple[Function, Binding]]) -> list[Resource]:
    """All resources by function name, ignoring case. Raises HostError for one that cannot be registered."""
    resources: list[Resource] = []
    shapes: set[str] = set()
    for function, binding in sorted(triggers, key=lambda item: item[0].name.upper()):
        resource = _build(function, binding)
        shape = _PARAMETER.sub("{}", resource.uri)  # templates that differ in names only are the same
        if shape in shapes:
            raise HostError(f"Resource with URI '{resource.uri}' is already registered.")
        shapes.add(shape)
        resources.append(resource)
    return resources


def _build(function: Function, binding: Binding) -> Resource:
    where = f"mcpResourceTrigger of function '{function.name}'"
    uri = binding.text("uri")
    if not urlsplit(uri).scheme:
        raise HostError(f"The {where} needs an absolute uri, not {uri!r}.")
    if "}{" in uri:
        raise HostError(f"The {where} has two expressions without anything between them: {uri!r}.")
    template = _PARAMETER.search(uri) is not None
    entry: dict[str, Any] = {"uriTemplate" if template else "uri": uri, "name": binding.text("resourceName")}
    for key in ("title", "description", "mimeType", *(() if template else ("size",))):
        if binding.fields.get(key) is not None:
            entry[key] = binding.fields[key]
    if metadata := parse_metadata(binding, where):
        entry["_meta"] = metadata
    parts = _PARAMETER.split(uri)  # literal, name, literal, name, …, literal
    pattern = "".join("([^/?#]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return Resource(
        uri=uri,
        function=function,
        entry=entry,
        mime_type=binding.fields.get("mimeType"),
        pattern=re.compile(pattern) if template else None,
    )


class Resources:
    """The app's resources."""

    def __init__(self, resources: list[Resource], invoker: Invoker) -> None:
        self._static = {item.uri: item for item in resources if item.pattern is None}
        self._templates = [item for item in resources if item.pattern is not None]
        self._invoker = invoker

    def handlers(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "resources/list": self._list,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
        }

    async def _list(self, call: Call) -> dict[str, Any]:
        return {"resources": [item.entry for item in self._static.values()]}

    async def _list_templates(self, call: Call) -> dict[str, Any]:
        return {"resourceTemplates": [item.entry for item in self._templates]}

    async def _read(self, call: Call) -> dict[str, Any]:
        uri = call.text("uri")
        if not urlsplit(uri).scheme:
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        resource = self._static.get(uri) or next(
            (item for item in self._templates if item.pattern is not None and item.pattern.fullmatch(uri)), None
        )
        if resource is None:
            raise RpcError(INVALID_PARAMS, f"Unknown resource: '{uri}'")
        outcome = await self._invoker.run(
            resource.function, call.payload({"uri": uri}), data={"mcpresourceuri": uri}
        )
        if not outcome.ok:
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        try:
            return {"contents": resource_result(outcome.returned, uri, resource.mime_type)}
        except ResultError as error:
            logger.error("The contents of resource '%s' cannot be sent: %s", resource.uri, error)
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR) from None


def resource_result(value: Value | None, uri: str, mime_type: str | None) -> list[dict[str, Any]]:
    """The ``contents`` of resources/read. Raises ResultError for a value that is neither text nor bytes."""
    if value is None:
        return []
    if value.kind is Kind.BYTES:
        return [{"uri": uri, "mimeType": mime_type, "blob": base64.b64encode(value.data).decode("ascii")}]
    if value.kind is not Kind.STRING:
        raise ResultError(f"a {value.kind} value is not the contents of a resource")
    envelope = _envelope(value.data)
    if envelope is None:
        return [{"uri": uri, "mimeType": mime_type, "text": value.data}]
    try:
        contents = wire.loads(envelope, finite=True)
    except ValueError as error:
        raise ResultError(f"content of the envelope is not JSON: {error}") from None
    if isinstance(contents, dict):
        contents["uri"] = contents.get("uri") or uri
        contents["mimeType"] = contents.get("mimeType") or mime_type
    return [resource_contents(contents)]


def _envelope(text: str) -> str | None:
    """``content`` of ``{"content": "…"}``, None when the text is anything else."""
    try:
        data = wire.loads(text)
    except ValueError:
        return None
    content = data.get("content") if isinstance(data, dict) else None
    return content if isinstance(content, str) else None
