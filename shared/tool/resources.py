"""`@resource`: makes a plain function a resource that clients read by its uri."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack

from shared.errors import ResultError
from shared.text import kind_of
from shared.tool.collecting import Faults, collected
from shared.tool.content import McpToolResponse, is_block
from shared.tool.declaration import (
    bypassed,
    description_of,
    function_name,
    json_text,
    signature_of,
    subject_of,
    usable_options,
)
from shared.tool.json_form import dumps, to_json
from shared.tool.media import media_type_of
from shared.tool.spec import JsonObject
from shared.tool.uri import UriTemplate
from shared.tool.wire import wire_block

#: Where a decorated function keeps what `@resource` made of it.
ATTRIBUTE: Final = "__toolbox_resource__"
TEXT_TYPE: Final = "text/plain"
JSON_TYPE: Final = "application/json"
BINARY_TYPE: Final = "application/octet-stream"

_MIME_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(\s*;.*)?")


class ResourceOptions(TypedDict, total=False):
    """The options of `@resource`; all but `uri` may be left out."""

    #: Absolute; with `{parameter}` it is a template: `docs://tools/{name}`.
    uri: str
    #: The function's name.
    name: str
    title: str
    #: What agents choose the resource by; the docstring.
    description: str
    #: Of what is returned; text/plain, application/json or application/octet-stream by the value.
    mime_type: str
    #: Bytes. Not for a template: it stands for many.
    size: int
    #: Published as `_meta`: a dict, or its JSON text.
    metadata: JsonObject | str


class ResourceFields(TypedDict, total=False):
    """Keyword arguments of `FunctionApp.mcp_resource_trigger`."""

    uri: str
    resource_name: str
    title: str
    description: str
    mime_type: str
    size: int
    metadata: str


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """One resource, or one template of many."""

    uri: UriTemplate
    name: str
    title: str | None
    description: str
    mime_type: str | None
    size: int | None
    #: JSON text of an object.
    metadata: str | None

    @property
    def function_name(self) -> str:
        return function_name("resource", self.name)

    def trigger_fields(self) -> ResourceFields:
        fields = ResourceFields(uri=self.uri.text, resource_name=self.name, description=self.description)
        if self.title is not None:
            fields["title"] = self.title
        if self.mime_type is not None:
            fields["mime_type"] = self.mime_type
        if self.size is not None:
            fields["size"] = self.size
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        return fields


@dataclass(frozen=True, slots=True)
class DecoratedResource:
    """A decorated function with its spec."""

    spec: ResourceSpec
    function: Callable[..., Any]


def resource[F: Callable[..., Any]](**options: Unpack[ResourceOptions]) -> Callable[[F], F]:
    """Declares a sync or async function as a resource: `@resource(uri="docs://tools/{name}")`.

    The function's parameters are those of the template, each annotated `str`. It returns a text, bytes, a
    `resource` content block, or a value that is sent as JSON.

    Raises `DeclarationError` that names the resource and every parameter or option that is wrong.
    """
    return lambda function: _declare(function, options)


@collected
def _declare[F: Callable[..., Any]](function: F, options: ResourceOptions) -> F:
    subject = subject_of("resource", function, options)
    faults = Faults(subject.fault("").message)
    given = usable_options(subject, function, options, tuple(ResourceOptions.__annotations__), faults)
    description = faults.tried(lambda: description_of(subject, function, given.get("description")))
    metadata = faults.tried(lambda: json_text(subject, "metadata", given.get("metadata")))
    signature = faults.tried(lambda: signature_of(subject, function))
    uri: UriTemplate | None = None
    try:
        uri = UriTemplate.parse(given.get("uri", ""))
    except ValueError as error:
        faults.add(str(error))
    if uri is not None and signature is not None:
        _check_parameters(uri, [parameter.name for parameter in signature.parameters], faults)
    mime_type, size = given.get("mime_type"), given.get("size")
    if mime_type is not None and not _MIME_TYPE.fullmatch(mime_type):
        faults.add(f"mime_type must be like 'text/markdown', not {mime_type!r}")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        faults.add(f"size must be a number of bytes, not {size!r}")
    if size is not None and uri is not None and uri.names:
        faults.add("a template has no size: it stands for many resources")
    faults.check()
    # Else there are faults.
    assert uri is not None
    assert description is not None
    spec = ResourceSpec(
        uri=uri,
        name=subject.name,
        title=given.get("title"),
        description=description,
        mime_type=mime_type,
        size=size,
        metadata=metadata,
    )
    setattr(function, ATTRIBUTE, DecoratedResource(spec, function))
    return function


def _check_parameters(uri: UriTemplate, taken: list[str], faults: Faults) -> None:
    for name in taken:
        if name not in uri.names:
            faults.add(f"parameter '{name}' is not in its uri {uri.text}")
    for name in uri.names:
        if name not in taken:
            faults.add(f"its uri has '{{{name}}}' but the function takes no parameter '{name}'")


def declared(value: object) -> DecoratedResource | None:
    """What `@resource` made of a function; None for anything else. Raises `DeclarationError`."""
    found = getattr(value, ATTRIBUTE, None)
    if not isinstance(found, DecoratedResource):
        return None
    if found.function is not value:
        raise bypassed("resource", found.spec.name)
    return found


def contents(spec: ResourceSpec, uri: str, value: Any) -> str:
    """The string for the host: `{"content": "<ResourceContents JSON>"}` around what a function returned.

    Always that form: a plain text would be taken for it when it happens to look like it, and would go out
    without a type of its own. Raises `ResultError`.
    """
    return dumps({"content": dumps(_contents(spec, uri, value))})


def _contents(spec: ResourceSpec, uri: str, value: Any) -> JsonObject:
    if isinstance(value, str):
        return {"uri": uri, "mimeType": spec.mime_type or TEXT_TYPE, "text": value}
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        mime_type = spec.mime_type or media_type_of(data) or BINARY_TYPE
        return {"uri": uri, "mimeType": mime_type, "blob": base64.b64encode(data).decode("ascii")}
    if is_block(value):
        return _embedded(spec, uri, value)
    if value is None:
        raise ResultError("it returned nothing; return '' for an empty text")
    if isinstance(value, McpToolResponse) or (
        isinstance(value, list | tuple) and any(is_block(item) for item in value)
    ):
        raise ResultError(
            f"it has one content: return a text, bytes, one resource block, or plain data, not {kind_of(value)}"
        )
    return {"uri": uri, "mimeType": spec.mime_type or JSON_TYPE, "text": dumps(to_json(value))}


def _embedded(spec: ResourceSpec, uri: str, block: Any) -> JsonObject:
    """What a `resource` block holds, with the fields that it may leave out."""
    kind = getattr(block, "type", None)
    if kind != "resource":
        raise ResultError(f"a content block of type '{kind}' is no resource; use McpResourceContent")
    inner: JsonObject = wire_block(block)["resource"]
    fallback = TEXT_TYPE if isinstance(inner.get("text"), str) else BINARY_TYPE
    return {
        **inner,
        "uri": inner["uri"] or uri,
        "mimeType": inner.get("mimeType") or spec.mime_type or fallback,
    }
