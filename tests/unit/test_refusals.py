"""What is refused is told with its field, its kind and what is legal; the value itself is not repeated."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable
from typing import Any

import pytest

from shared import settings as app_settings
from shared.apis.connections import auth, fields, reading
from shared.apis.connections.environments import slot_of
from shared.apis.dataverse import fetchxml, names, queries, solutions
from shared.apis.headers import checked
from shared.apis.toolbox import files, settings, utils
from shared.apis.toolbox.events import EventsApi
from shared.apis.toolbox.invocation import InvocationApi
from shared.apis.urls import relative_url
from shared.contract.envelope import parse
from shared.errors import ToolboxError
from shared.text import kind_of, shape_of
from shared.tool import McpResourceLinkContent, McpTextContent, McpToolResponse, tool
from shared.tool.context import Context, NullSink, running
from shared.tool.resources import contents
from shared.tool.spec import ExecutionMode, Mode, check_name
from shared.tool.validation import SchemaCheck
from shared.tool.wire import wire_block
from shared.web import window_calls
from shared.web.params import Params

#: Stands in what is refused, and in no text about it.
SECRET = "sentinel-7c"
LONG = SECRET * 100
REAL = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a2V5;EndpointSuffix=core.windows.net"


def odd(value: object) -> Any:
    """A value of a kind that the types forbid."""
    return value


def said_of(refuse: Callable[[], Any]) -> str:
    """What is told, by an error or in a list of faults."""
    try:
        found = refuse()
    except (ToolboxError, TypeError) as error:
        found = [str(error)]
    (text,) = found
    assert SECRET not in text
    return str(text)


@pytest.mark.parametrize(
    ("value", "kind", "shape"),
    [
        (None, "null", "null"),
        (True, "boolean", "boolean"),
        (5, "integer", "integer"),
        (-5, "integer", "negative integer"),
        (-0.5, "number", "negative number"),
        ("abc", "string", "string of 3 characters"),
        ([1, 2], "array", "array of 2 items"),
        ({"a": 1}, "object", "object"),
        ((1,), "tuple", "tuple of 1 item"),
        (object(), "object", "object"),
        (b"abc", "bytes", "bytes"),
    ],
)
def test_words_for_values(value: Any, kind: str, shape: str) -> None:
    assert (kind_of(value), shape_of(value)) == (kind, shape)


def faults(check: Callable[..., Any], *given: Any, **options: Any) -> list[str]:
    found: list[str] = []
    check(*given, found, **options)
    return found


def in_a_call[T](work: Callable[[], T]) -> T:
    context = Context(
        tool_id="t",
        tool_name="t",
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.INLINE,
        correlation_id="c",
        timeout_ms=1_000,
        owner="default",
        sink=NullSink(),
    )

    def call() -> T:
        running(lambda: context)
        return work()

    return contextvars.copy_context().run(call)


URL = {"name": "a", "url": "https://a.example", "auth": {"type": "default"}}
APIS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: slot_of(SECRET),
        "connectionTarget must be 'primary', 'secondary' or a slot from 0 to 9, not string of 11",
    ),
    (lambda: slot_of(-1), "a slot from 0 to 9, not negative integer"),
    (
        lambda: checked(odd([SECRET]), "create"),
        "create: additionalHeaders must be a mapping of header names to texts, not array",
    ),
    (
        lambda: checked({f"{SECRET} x": "y"}, "create"),
        "a header's name must be 1 to 128 letters, digits and marks such as '-', not string of 13",
    ),
    (
        lambda: checked(odd({"x-a": 5}), "create"),
        "the header 'x-a' must be a text of at most 4096 printable ASCII characters, not integer",
    ),
    (
        lambda: checked({"x-a": f"{SECRET}\n"}, "create"),
        "printable ASCII characters, not string of 12 characters",
    ),
    (
        lambda: settings.SettingsApi().set_all(odd([SECRET])),
        "toolboxAPI.settings.setAll: expected an object of names and values, got array",
    ),
    (lambda: files._inside({SECRET: 1}), "a path must be a text with / between its parts, not object"),
    (
        lambda: EventsApi().on(odd(SECRET)),
        "events.on: the listener must be a function of (event, payload), not string",
    ),
    (lambda: utils._on_threads((5,)), "executeParallel: in synchronous code, pass functions, not integer"),
    (
        lambda: in_a_call(lambda: InvocationApi().return_data(odd([SECRET]))),
        "returnData: expected an object, got array",
    ),
    (
        lambda: in_a_call(lambda: InvocationApi().launch_tool(odd(5))),
        "launchTool: tool must be a tool's name, not integer",
    ),
    (
        lambda: in_a_call(lambda: InvocationApi().launch_tool("a", odd(SECRET))),
        "launchTool: prefill must be an object, not string",
    ),
    (
        lambda: in_a_call(lambda: InvocationApi().launch_tool("a", {}, odd([1]))),
        "launchTool: options must be an object, not array",
    ),
    (
        lambda: faults(lambda found: fields.text({"name": LONG}, "name", "$", found)),
        "$.name: must be a text of 1 to 500 characters on one line, not string of 1100",
    ),
    (
        lambda: faults(lambda found: fields.texts({"tools": SECRET}, "tools", "$", found)),
        "$.tools: must be a list of one or more texts, not string of 11",
    ),
    (
        lambda: faults(lambda found: fields.texts({"tools": ["a", 5]}, "tools", "$", found)),
        "$.tools: must be a list of one or more texts, not one with integer",
    ),
    (
        lambda: faults(lambda found: fields.address(SECRET, "$.url", found)),
        "$.url: must be like https://org.crm.dynamics.com, with nothing behind the host, not another text",
    ),
    (
        lambda: faults(lambda found: fields.base(SECRET, "$.p", found)),
        "$.p: must be like https://api.powerplatform.com, without a query, not another text",
    ),
    (
        lambda: faults(lambda found: auth.read({"type": SECRET}, "$.auth", found)),
        "$.auth.type: must be one of clientSecret, ",
    ),
    (lambda: faults(lambda found: auth.read({"type": 5}, "$.auth", found)), ", not integer"),
    (
        lambda: faults(lambda found: reading.read({**URL, "environment": SECRET}, "$", found)),
        "$.environment: must be one of Dev, Test, UAT, Production, not string of 11",
    ),
    (
        lambda: faults(lambda found: reading.read({**URL, "environment": []}, "$", found)),
        "Production, not array of 0 items",
    ),
    (
        lambda: faults(lambda found: reading.read({**URL, "id": f"{SECRET} x"}, "$", found)),
        "$.id: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -, not another text",
    ),
    (lambda: relative_url(5, "path"), "path must be a text such as accounts?$select=name, not integer"),
    (
        lambda: fetchxml.parse({SECRET: 1}),
        "FetchXML must be a text such as <fetch><entity name='account' /></fetch>, not object",
    ),
    (
        lambda: solutions._base64([SECRET]),
        "solutionContent must be the zip file's bytes, or their Base64 text, not array of 1 item",
    ),
    (
        lambda: queries.relative(odd(None), None),
        "The query must be a text such as accounts?$select=name, not null",
    ),
    (
        lambda: queries._fetch_cursor(SECRET),
        "cursor must be one that a page of the same query gave, not string of 11",
    ),
    (lambda: names.select(odd([5])), "columns: 5 cannot be the name of a column"),
]


@pytest.mark.parametrize(("refuse", "said"), APIS)
def test_what_the_apis_refuse(refuse: Callable[[], Any], said: str) -> None:
    assert said in said_of(refuse)


CONTRACT: list[tuple[Any, str]] = [
    ({"authToken": [SECRET]}, "__pptb.authToken: expected string, got array"),
    ({"authToken": f"{SECRET}{'x' * 17_000}"}, "__pptb.authToken: must have 1 to 16384 characters, has 17011"),
    ({"idempotencyKey": " "}, "__pptb.idempotencyKey: must have 1 to 200 characters, has 0"),
    (
        {"project": f"{SECRET} x"},
        "__pptb.project: must be 1 to 64 of the characters A-Z a-z 0-9 _ - with a letter or digit first, got ",
    ),
    (
        {"connectionNames": SECRET},
        "names. It may hold 10 at most, and is string of 11",
    ),
    ({"connectionNames": [SECRET] * 11}, "It may hold 10 at most, and is array of 11 items."),
    ({"connectionNames": [SECRET, 5]}, "It may hold 10 at most, and is one with integer."),
    ({"timeoutMs": SECRET}, "__pptb.timeoutMs: must be a positive number of milliseconds, got string"),
    ({"mode": [SECRET]}, "__pptb.mode: must be one of one-way, two-way, got array"),
    ([SECRET], "__pptb: expected object, got array"),
]


@pytest.mark.parametrize(("options", "said"), CONTRACT)
def test_what_the_options_of_a_call_refuse(options: Any, said: str) -> None:
    assert said in said_of(lambda: parse(options))


SCHEMAS: list[tuple[Any, Any, str]] = [
    ({"minimum": 3}, 2, "must be at least 3, got a smaller integer"),
    ({"maximum": 3}, 3.5, "must be at most 3, got a larger number"),
    ({"exclusiveMinimum": 3}, 3, "must be greater than 3, got another integer"),
    ({"exclusiveMaximum": 3}, 3, "must be less than 3, got another integer"),
    ({"multipleOf": 2}, 3, "must be a multiple of 2, got another integer"),
    ({"pattern": "^a"}, SECRET, "must match the pattern ^a, got another string"),
    ({"maxLength": 2}, SECRET, "must have at most 2 characters, has 11"),
    (
        {"uniqueItems": True},
        [SECRET, SECRET],
        "items must differ from each other, got an array that repeats one",
    ),
    ({"enum": ["a"]}, SECRET, "value must be one of [a], got string"),
    ({"const": "a"}, 5, "value must be a, got integer"),
    ({"type": "object"}, [SECRET], "expected object, got array"),
    (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"c": SECRET},
        "fits none of the allowed forms, got object (nearest: ",
    ),
]


@pytest.mark.parametrize(("rule", "value", "said"), SCHEMAS)
def test_what_schemas_refuse(rule: Any, value: Any, said: str) -> None:
    text = said_of(lambda: SchemaCheck({"properties": {"v": rule}}).faults({"v": value}))
    assert text.startswith(f"$.v: {said}")


def link(**given: Any) -> Any:
    return McpResourceLinkContent("https://a.example/b", **given)


def resource(value: Any) -> Any:
    return wire_block(Block({"type": "resource", "resource": value}))


class Block(McpTextContent):
    """One whose wire form the test chooses."""

    def __init__(self, wire: Any) -> None:
        super().__init__("")
        object.__setattr__(self, "_wire", wire)

    def to_wire(self) -> Any:
        return getattr(self, "_wire", {"type": "text", "text": ""})


def declare(**options: Any) -> Any:
    def work(a: str) -> str:
        """Works."""
        return a

    return tool(**options)(work)


TOOLS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: McpToolResponse(content=odd(5), is_error=odd(SECRET)),
        "McpToolResponse: content must be a list of blocks, is_error True or False, not integer and string.",
    ),
    (lambda: link(size=-1), "size must be a whole number of bytes, got negative integer"),
    (lambda: link(size=SECRET), "size must be a whole number of bytes, got string of 11"),
    (
        lambda: link(annotations={"audience": [SECRET]}),
        "annotations.audience must be a list of 'user' and 'assistant', got array of 1 item",
    ),
    (
        lambda: link(annotations={"priority": SECRET}),
        "annotations.priority must be a number from 0 to 1, got string of 11",
    ),
    (
        lambda: McpResourceLinkContent(SECRET),
        "uri must be absolute, like 'https://…' or 'file:///…', not string of 11",
    ),
    (
        lambda: wire_block(Block({"type": ""})),
        "its type must be a text that names a kind of content, not string of 0",
    ),
    (
        lambda: wire_block(Block({"type": "text", "text": 5})),
        "a 'text' block needs 'text' as a text, and has integer",
    ),
    (
        lambda: wire_block(Block({"type": "image", "data": "AA=="})),
        "a 'image' block needs 'mimeType' as a text, and has no mimeType",
    ),
    (lambda: resource([SECRET]), "its resource must be an object with a uri, not array"),
    (lambda: resource({"uri": 5}), "its resource must be an object with a uri, not one with integer"),
    (
        lambda: resource({"uri": "u:1"}),
        "its resource needs exactly one of text and blob, not no text and no blob",
    ),
    (
        lambda: resource({"uri": "u:1", "text": SECRET, "blob": SECRET}),
        "exactly one of text and blob, not string and string",
    ),
    (
        lambda: contents(odd(None), "u:1", McpToolResponse()),
        "return a text, bytes, one resource block, or plain data, not McpToolResponse",
    ),
    (
        lambda: check_name(f"{SECRET} x"),
        "a name must be 1 to 64 of the characters A-Z a-z 0-9 _ . -, not string of 13",
    ),
    (
        lambda: declare(tool_properties=[{"propertyName": 5, "propertyType": "string"}]),
        "tool_properties[0]: propertyName must be a non-empty text, not integer",
    ),
    (
        lambda: declare(tool_properties=[{"propertyName": "a", "propertyType": "string", "description": 5}]),
        "description must be a text, not integer",
    ),
    (
        lambda: declare(tool_properties=[{"propertyName": "a", "propertyType": "string", "isArray": SECRET}]),
        "isArray must be True or False, not string",
    ),
    (
        lambda: declare(
            tool_properties=[{"propertyName": "a", "propertyType": "string", "enumValues": SECRET}]
        ),
        "enumValues must be a list, not string",
    ),
    (
        lambda: declare(icons=[{"src": SECRET}]),
        "https: or data:, not one with string of 11 characters as its src",
    ),
    (lambda: declare(icons=[5]), "begins with https: or data:, not integer"),
]


@pytest.mark.parametrize(("refuse", "said"), TOOLS)
def test_what_tools_and_their_results_are_refused_for(refuse: Callable[[], Any], said: str) -> None:
    assert said in said_of(refuse)


def asked(read: Callable[[Params], Any], **given: str) -> Params:
    params = Params(given)
    read(params)
    params.check()
    return params


WEB: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: asked(lambda p: p.whole("limit", 5, 1, 100), limit=SECRET),
        "limit: must be a whole number from 1 to 100, not string of 11",
    ),
    (
        lambda: asked(lambda p: p.seconds("wait", 0, 25), wait=SECRET),
        "wait: must be a number of seconds from 0 to 25, not string of 11",
    ),
    (
        lambda: asked(lambda p: p.choice("status", ("a", "b")), status=SECRET),
        "status: must be one of a, b, not string of 11",
    ),
    (lambda: asked(lambda p: p.text("tool"), tool=LONG), "tool: must have 1 to 200 characters, has 1100"),
    (
        lambda: window_calls.parse({"api": SECRET, "method": "a"}),
        "api: must be one of dataverseAPI, powerplatformAPI, got another string",
    ),
    (
        lambda: window_calls.parse({"api": [SECRET], "method": "a"}),
        "api: must be a text of 1 to 100 characters, got array of 1 item",
    ),
    (
        lambda: window_calls.parse({"api": "dataverseAPI", "method": LONG}),
        "method: must be a text of 1 to 100 characters, got string of 1100",
    ),
    (
        lambda: window_calls.parse({"api": "dataverseAPI", "method": "a", "args": SECRET}),
        "args: must be a list of at most 16 values, got string of 11",
    ),
]


@pytest.mark.parametrize(("refuse", "said"), WEB)
def test_what_http_functions_refuse(refuse: Callable[[], Any], said: str) -> None:
    assert said in said_of(refuse)


SETTINGS: list[tuple[str, str, str]] = [
    ("MCP_AUTH_TOKENS", json.dumps([SECRET]), 'like {"ana": "…"}; it is JSON of the kind array of 1 item.'),
    (
        "MCP_AUTH_TOKENS",
        json.dumps({"ana": {SECRET: 1}}),
        "owner 'ana' must have a token or a list of tokens, not object.",
    ),
    (
        "MCP_AUTH_TOKENS",
        json.dumps({"ana": [SECRET, 5]}),
        "owner 'ana' must have a token or a list of tokens, not integer.",
    ),
    (
        "MCP_AUTH_TOKENS",
        json.dumps({"ana": []}),
        "owner 'ana' must have a token or a list of tokens, not an empty list.",
    ),
    (
        "TOOLBOX_MAX_WAIT_MS",
        SECRET,
        "TOOLBOX_MAX_WAIT_MS must be a whole number from 0 to 210000, not string of 11 characters.",
    ),
    (
        "TOOLBOX_MAX_WAIT_MS",
        "210001",
        "TOOLBOX_MAX_WAIT_MS must be a whole number from 0 to 210000, not 210001.",
    ),
    ("TOOLBOX_REAPER_SCHEDULE", SECRET, "like '0 */5 * * * *', not string of 11 characters in 1 fields."),
    (
        "TOOLBOX_BASE_URL",
        SECRET,
        "like https://tools.example.com, not another string of 11 characters; http is for localhost only.",
    ),
    (
        "TOOLBOX_REQUIRE_TOKEN",
        SECRET,
        "TOOLBOX_REQUIRE_TOKEN must be 1 or 0, not another string of 11 characters.",
    ),
]


@pytest.mark.parametrize(("name", "value", "said"), SETTINGS)
def test_what_settings_refuse(name: str, value: str, said: str) -> None:
    assert said in said_of(lambda: app_settings.load({"AzureWebJobsStorage": REAL, name: value}))
