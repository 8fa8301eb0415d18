"""Tools over HTTP: what there is, and calling them. The page does this: it has a token and no MCP key.

    GET  /mcp/tools             {"tools": [...], "faults": [{"folder", "reasons"}]}, with an ETag and 304
    POST /mcp/tools/{name}      the JSON body is the arguments, `__pptb` among them; runs the tool as the
                                token's owner, and is checked and recorded like a call over MCP

A call needs the token's header and `application/json`, which no other site's page can send with a visitor's
cookies alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

import azure.functions as func

from shared.errors import InputError, ResultError
from shared.invoke import Invoker
from shared.settings import Settings
from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.discovery import Fault
from shared.tool.handler import Catalogue, ToolEntry
from shared.tool.json_form import dumps
from shared.tool.resolving import Resolver
from shared.tool.result import ToolResult, call_tool_result, failure
from shared.tool.spec import JsonObject, ToolSpec, returns_data
from shared.tool.validation import kind_of
from shared.web import answers
from shared.web.params import Params

#: Of a body: far more than a person puts into the page's form. The MCP endpoint takes what the host does. While
#: Python reads JSON nothing else runs in the process, on no thread: half a second for this much of brackets.
MOST_BYTES: Final = 4 * 1024 * 1024
JSON_TYPE: Final = "application/json"
_WANTED: Final = "send the arguments as an object, {} for none"


class ToolsApi:
    """The HTTP functions about tools."""

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        faults: Iterable[Fault],
        homes: Mapping[str, str],
        invoker: Invoker,
        find: Resolver,
        may_call: Callable[[ToolEntry, str], Awaitable[bool]] | None = None,
    ) -> None:
        """`homes`: tool name -> its folder. `may_call`: whether an owner's call would be let through."""
        self._settings = settings
        self._catalogue = catalogue
        self._faults = tuple(faults)
        self._homes = homes
        self._invoker = invoker
        self._find = find
        self._may_call = may_call

    async def list(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the owner's tools, by name; 304 when they still are what If-None-Match names."""

        async def answer(owner: str) -> func.HttpResponse:
            Params(request.params).check()
            known = sorted(self._catalogue.values(), key=lambda entry: entry.spec.name.lower())
            may = self._may_call
            entries = [entry for entry in known if may is None or await may(entry, owner)]
            body = {
                "tools": [shown(entry.spec, self._homes.get(entry.spec.name, "")) for entry in entries],
                "faults": told(self._faults),
            }
            tag = hashlib.sha256(dumps(body).encode()).hexdigest()[:32]
            headers = {"ETag": f'"{tag}"'}
            if answers.is_known(request, tag):
                return answers.not_modified(headers)
            return answers.json_answer(200, body, headers)

        return await answers.for_owner(request, self._settings, answer, "GET")

    async def call(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with `{"content", "structuredContent"?, "isError", "meta"?}`, also where the tool has failed.

        404: no such tool; 400: the body is no JSON object; 413, 415: it is too large, or said to be no JSON.
        """

        async def answer(owner: str) -> func.HttpResponse:
            Params(request.params).check()
            name = request.route_params.get("name", "")
            entry = self._find(name)
            if entry is None:
                return answers.error(404, f"There is no tool '{name[:80]}'")
            if not _says_json(request.headers.get("Content-Type", "")):
                return answers.error(415, f"Content-Type: must be {JSON_TYPE}, in UTF-8", {"Accept": JSON_TYPE})
            body = request.get_body()
            if len(body) > MOST_BYTES:
                text = (
                    f"The body has {len(body)} bytes; at most {MOST_BYTES} are taken; MCP clients may send more"
                )
                return answers.error(413, text)
            payload, parsed = payload_of(entry.spec.name, arguments_in(body), request)
            result = await self._invoker.launched(
                entry, payload, owner=owner, depth=0, wait_ms=None, parsed_payload=parsed
            )
            return _answer(result)

        return await answers.for_owner(request, self._settings, answer, "POST")


def shown(spec: ToolSpec, home: str) -> JsonObject:
    """One tool. Its schemas are those that MCP clients get."""
    rules = spec.rules
    body: JsonObject = {
        "name": spec.name,
        "toolId": spec.tool_id,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": published_input_schema(spec),
        "outputSchema": published_result_schema(spec),
        "modes": [str(mode) for mode in rules.modes],
        "defaultMode": str(rules.resolve_mode(returns_data=returns_data(spec))),
        "executionModes": [str(mode) for mode in rules.execution_modes],
        "defaultExecutionMode": str(rules.default_execution_mode),
        "annotations": spec.annotations.to_wire(),
        "capabilities": list(spec.capabilities),
        "icons": list(spec.icons),
        "timeoutMs": spec.timeout_ms,
        "maxAttempts": rules.max_attempts,
        "folder": home,
    }
    return {name: value for name, value in body.items() if value is not None}


def told(faults: Iterable[Fault]) -> list[JsonObject]:
    """Each folder with all reasons why it, or something in it, is left out."""
    reasons: dict[str, list[str]] = {}
    for fault in faults:
        reasons.setdefault(fault.folder, []).append(fault.reason)
    return [{"folder": folder, "reasons": reasons[folder]} for folder in sorted(reasons)]


def arguments_in(body: bytes) -> tuple[str, JsonObject]:
    """The body as the text of a JSON object, and the object. Raises `InputError`."""
    try:
        text = body.decode()
        found = json.loads(text, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise InputError("body: is not UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"body: is not JSON ({where}); {_WANTED}") from None
    except (RecursionError, ValueError):
        raise InputError("body: nested too deeply, or a number that is too long or not JSON's") from None
    if not isinstance(found, dict):
        raise InputError(f"body: expected object, got {kind_of(found)}; {_WANTED}")
    return text, found


def payload_of(
    name: str, arguments: tuple[str, JsonObject], request: func.HttpRequest
) -> tuple[str, JsonObject]:
    """The call as the MCP trigger would give it, as text and parsed. The headers are there for what a tool may
    see of them, and so that the keys among them are kept out of what is told of the call.
    """
    text, found = arguments
    transport = {"name": "http", "properties": {"headers": dict(request.headers)}}
    payload = f'{{"name":{json.dumps(name)},"arguments":{text},"transport":{json.dumps(transport)}}}'
    return payload, {"name": name, "arguments": found, "transport": transport}


def _says_json(content_type: str) -> bool:
    kind, *parameters = [part.strip().lower() for part in content_type.split(";")]
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    return kind == JSON_TYPE and all(charset in ("utf-8", "utf8") for charset in charsets)


def _answer(result: ToolResult) -> func.HttpResponse:
    try:
        return answers.json_answer(200, _wire(result))
    except ResultError as error:
        return answers.json_answer(200, _wire(failure(error.message, errorCode=error.code)))


def _wire(result: ToolResult) -> JsonObject:
    """The answer as MCP clients get it: results leave through one place."""
    answer = call_tool_result(result)
    meta: Any = answer.pop("_meta", None)
    body = {**answer, "isError": answer.get("isError", False)}
    return body if meta is None else {**body, "meta": meta}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
