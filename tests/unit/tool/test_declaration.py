"""Explicit properties, injected facts, names from settings, and what a tool cannot be stacked with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional

import azure.functions as func
import pytest
from pydantic import BaseModel, Field

from shared.errors import DeclarationError, InputError
from shared.tool import Context, ToolAnnotations, ToolCall, tool
from shared.tool.binding import trigger_fields
from shared.tool.call import call_of
from shared.tool.context import NullSink
from shared.tool.decorator import DecoratedTool, declared
from shared.tool.discovery import find_tools
from shared.tool.spec import ExecutionMode, Mode


def found(function: Any) -> DecoratedTool:
    entry = declared(function)
    assert entry is not None
    return entry


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Plain:
    """Nothing that JSON knows."""


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


def a_context(call: ToolCall) -> Context:
    return Context(
        tool_id="t",
        tool_name="t",
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.INLINE,
        correlation_id="mcp-1",
        timeout_ms=1000,
        owner="default",
        call=call,
        sink=NullSink(),
    )


class TestToolProperties:
    def test_they_add_to_what_the_annotations_say(self) -> None:
        @tool(
            tool_properties={
                "city": {"propertyType": "string", "description": "Where.", "enumValues": ["oslo", "rome"]},
                "days": {"propertyType": "integer", "isArray": True},
            }
        )
        def weather(city: str, days: list[int] | None = None) -> str:
            """Weather."""
            return city

        schema = found(weather).spec.input_schema
        assert schema["properties"]["city"] == {
            "type": "string",
            "description": "Where.",
            "enum": ["oslo", "rome"],
        }
        assert schema["properties"]["days"] == {"type": "array", "items": {"type": "integer"}}
        assert schema["required"] == ["city"]

    def test_every_disagreement_is_a_fault(self) -> None:
        with pytest.raises(DeclarationError) as caught:

            @tool(
                tool_properties=[
                    {"propertyName": "a", "propertyType": "integer"},
                    {"propertyName": "b", "propertyType": "integer", "isArray": False, "isRequired": True},
                    {"propertyName": "c", "propertyType": "string", "enumValues": ["y"]},
                    {"propertyName": "z", "propertyType": "string", "requred": True},
                ]
            )
            def sample(a: str, b: list[int] | None = None, c: Literal["x", "w"] = "x") -> str:
                """Sample."""
                return a

        for said in (
            "tool 'sample'",
            "'a' says propertyType integer, its annotation string",
            "'b' says isArray False, its annotation True",
            "'b' says isRequired True, its annotation False",
            "'c' lists other enumValues",
            "unknown key 'requred'",
        ):
            assert said in caught.value.message

    def test_a_property_without_a_parameter_is_a_fault(self) -> None:
        with pytest.raises(DeclarationError, match="'z' is no parameter; those are a"):

            @tool(tool_properties=[{"propertyName": "z", "propertyType": "string"}])
            def sample(a: str) -> str:
                """Sample."""
                return a

    def test_values_must_fit_the_type_and_the_default(self) -> None:
        with pytest.raises(DeclarationError) as caught:

            @tool(
                tool_properties=[
                    {"propertyName": "a", "propertyType": "integer", "enumValues": [1, "2", True]},
                    {"propertyName": "b", "propertyType": "string", "enumValues": ["x", "y"]},
                    {"propertyName": "c", "propertyType": "integer", "isArray": True, "enumValues": [1, 2]},
                ]
            )
            def sample(a: int = 1, b: str = "z", c: list[int] = [1, 3]) -> str:  # noqa: B006 - published
                """Sample."""
                return b

        for said in (
            "tool 'sample'",
            "enumValues[1] of 'a' must be integer, as its propertyType says, not string",
            "enumValues[2] of 'a' must be integer, as its propertyType says, not boolean",
            "'b' has a default that is none of its enumValues",
            "'c' has a default that is none of its enumValues",
        ):
            assert said in caught.value.message

    def test_a_number_that_json_has_not_is_refused_without_annotations_too(self) -> None:
        @tool(tool_properties={"n": {"propertyType": "number"}})
        def handler(arguments: dict[str, Any]) -> str:
            """Handler."""
            return ""

        with pytest.raises(InputError, match=r"\$\.n: must be a finite number"):
            found(handler).load().check_input({"n": float("inf")})

    def test_a_handler_may_take_all_arguments_as_one_dict(self) -> None:
        @tool(tool_properties=[{"propertyName": "any name", "propertyType": "number", "isRequired": True}])
        def handler(arguments: dict[str, Any], context: Context) -> str:
            """Handler."""
            return f"{arguments['any name']} {context.tool_name}"

        entry = found(handler)
        assert entry.spec.input_schema == {
            "type": "object",
            "properties": {"any name": {"type": "number"}},
            "required": ["any name"],
            "additionalProperties": False,
        }
        loaded = entry.load()
        assert loaded.run(loaded.check_input({"any name": 1.5}), a_context(ToolCall())) == "1.5 t"


def test_a_union_of_models_is_an_object_and_arrives_as_the_right_one() -> None:
    @tool
    def adopt(animal: Cat | Dog) -> Cat | Dog:
        """Adopts."""
        return animal

    entry = found(adopt)
    schema = entry.spec.result_schema
    assert schema is not None
    assert (schema["type"], len(schema["anyOf"])) == ("object", 2)
    loaded = entry.load()
    value = loaded.run(loaded.check_input({"animal": {"kind": "dog", "tricks": ["sit"]}}), None)
    assert isinstance(value, Dog)
    assert loaded.finish(value).structured == {"kind": "dog", "tricks": ["sit"]}


class TestToolCall:
    PAYLOAD: ClassVar[Any] = {
        "name": "Greet",
        "sessionid": "s|1",
        "clientinfo": {"name": "agent", "version": "2"},
        "transport": {"name": "http-streamable"},
    }
    HEADERS: ClassVar[Any] = {
        "User-Agent": "agent/2",
        "X-Functions-Key": "sentinel-key",
        "Authorization": "Bearer sentinel-token",
        "X-MCP-Auth-Token": "sentinel-owner",
        "X-Tenant": "acme",
        "X-MS-Client-Principal": "sentinel-principal",
        "Traceparent": "00-1-2-01",
    }

    def test_it_carries_the_callers_facts_and_no_secret(self) -> None:
        allowed = frozenset({"x-tenant", "authorization", "x-functions-key", "x-ms-client-principal"})
        call = call_of(self.PAYLOAD, self.HEADERS, "ana", None, allowed)
        assert (call.tool_name, call.owner, call.session_id, call.transport) == (
            "Greet",
            "ana",
            "s|1",
            "http-streamable",
        )
        assert call.client_info == {"name": "agent", "version": "2"}
        assert call.headers == {"user-agent": "agent/2", "x-tenant": "acme", "traceparent": "00-1-2-01"}
        assert "sentinel" not in repr(call)
        assert ToolCall.from_json(call.to_json()) == call

    @pytest.mark.parametrize("name", ["X-Api-Key", "X-Zumo-Auth", "X-Refresh-Token", "X-Client-Secret"])
    def test_no_header_that_names_a_secret_is_let_through(self, name: str) -> None:
        call = call_of(
            {}, {name: "sentinel", "X-Tenant": "acme"}, "o", None, frozenset({name.lower(), "x-tenant"})
        )
        assert call.headers == {"x-tenant": "acme"}

    def test_absent_and_odd_facts_are_absent(self) -> None:
        call = call_of(
            {"transport": 5, "clientinfo": "x", "sessionid": ""}, {"User-Agent": ["x"]}, "o", None, frozenset()
        )
        assert (call.session_id, call.client_info, call.headers, call.invocation_id) == (None, None, {}, "")

    def test_it_reaches_the_tool_and_its_logger_names_the_invocation(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        @tool
        def who(*, call: ToolCall, context: Context) -> str:
            """Who."""
            call.logger.warning("looked")
            return f"{call.owner} {context.call.owner}"

        loaded = found(who).load()
        assert loaded.run({}, a_context(ToolCall(owner="ana", invocation_id="inv-1"))) == "ana ana"
        assert "[inv-1] looked" in caplog.text
        assert found(who).spec.input_schema["properties"] == {}


type Maybe = int | None
type Either = Maybe | str
type Or[T] = T | None
type Lost = Nowhere | None  # type: ignore[name-defined]  # noqa: F821


class TestOptional:
    @pytest.mark.parametrize("annotation", [Context | None, Annotated[Context, "note"], Optional[Context]])  # noqa: UP045
    def test_a_context_is_known_in_any_dress(self, annotation: Any) -> None:
        def sample(text, context):  # type: ignore[no-untyped-def]
            """Sample."""
            return f"{text} {context.tool_name}"

        sample.__annotations__ = {"text": str, "context": annotation, "return": str}
        entry = found(tool(sample))
        assert list(entry.spec.input_schema["properties"]) == ["text"]
        assert entry.load().run({"text": "a"}, a_context(ToolCall())) == "a t"

    def test_so_is_a_call_and_beside_one_dict(self) -> None:
        @tool(tool_properties={"a": {"propertyType": "string"}})
        def sample(arguments: dict[str, Any], call: Optional[ToolCall]) -> str:  # noqa: UP045
            """Sample."""
            return "" if call is None else call.owner

        assert found(sample).load().run({}, a_context(ToolCall(owner="ana"))) == "ana"

    @pytest.mark.parametrize("annotation", [Maybe, Either, Or[int], Annotated[Maybe, "x"], Literal[1, None]])
    def test_an_alias_of_none_is_none(self, annotation: Any) -> None:
        def sample(v):  # type: ignore[no-untyped-def]
            """Sample."""
            return v

        sample.__annotations__ = {"v": annotation, "return": Any}
        entry = found(tool(sample))
        assert "required" not in entry.spec.input_schema
        assert "null" not in str(entry.spec.input_schema)
        handler = entry.load()
        assert handler.run(handler.check_input({"v": None}), None) is None
        assert handler.run(handler.check_input({"v": 1}), None) == 1

    def test_an_alias_that_cannot_be_resolved_is_a_fault(self) -> None:
        with pytest.raises(DeclarationError, match=r"tool 'sample': the annotation of 'a' cannot .*'Nowhere'"):

            @tool
            def sample(a: Lost) -> str:
                """Sample."""
                return ""

    def test_a_default_may_stand_in_a_field(self) -> None:
        @tool
        def sample(
            a: Annotated[int, Field(default=5)],
            b: Annotated[int | None, Field(default=6)],
            c: Annotated[list[int], Field(default_factory=list)],
            d: int = Field(7, ge=1),
            e: int | None = Field(description="e"),
            f: Annotated[int, Field(default=5)] = 8,
        ) -> list[Any]:
            """Sample."""
            return [a, b, c, d, e, f]

        entry = found(sample)
        assert "required" not in entry.spec.input_schema
        assert entry.spec.input_schema["properties"]["a"] == {"type": "integer", "default": 5}
        assert entry.load().run({}, None) == [5, 6, [], 7, None, 8]


class TestNames:
    def test_a_setting_stands_for_the_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GREETER", "hello")

        @tool(name="%GREETER%_v2")
        def greet() -> str:
            """Greets."""
            return ""

        assert found(greet).spec.name == "hello_v2"

    def test_a_missing_or_bad_setting_is_a_fault_naming_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def greet() -> str:
            """Greets."""
            return ""

        monkeypatch.delenv("GREETER", raising=False)
        with pytest.raises(DeclarationError, match="app setting GREETER, which is not set"):
            tool(name="%GREETER%")(greet)
        monkeypatch.setenv("GREETER", "not a name")
        with pytest.raises(DeclarationError, match="1 to 64"):
            tool(name="%GREETER%")(greet)


def test_all_faults_of_a_declaration_come_at_once() -> None:
    options: Any = {
        "title": 5,
        "colour": "red",
        "modes": (),
        "default_execution_mode": "headless",
        "metadata": "[1]",
        "icons": [{"src": "http://x"}],
        "result_schema": "{",
        "timeout_ms": 0,
        "isolation": "container",
    }

    def sample(a, b: Cat, c: Plain, d: Callable[[], int], *args: int):  # type: ignore[no-untyped-def]
        pass

    with pytest.raises(DeclarationError) as caught:
        tool(**options)(sample)
    for said in (
        "title must be a text, not int",
        "unknown option 'colour'",
        "modes must not be empty",
        "default_execution_mode 'headless' is not among",
        "timeout_ms must be a whole number",
        "isolation must be one of",
        "parameter 'c' has an annotation that no JSON Schema can be made of",
        "parameter 'd' has an annotation that no JSON Schema can be made of",
        "metadata must be",
        "icons:",
        "result_schema is no JSON",
        "docstring",
        "'a' has no annotation",
        "'args' must be a named one",
    ):
        assert said in caught.value.message
    assert "parameter 'b'" not in caught.value.message


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth > 1 else {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"icons": ["https://a"]}, "icons: each must be an object with a src"),
        ({"capabilities": ["csv", 5]}, "capabilities must be texts, not int"),
        ({"annotations": ToolAnnotations(read_only="yes")}, "annotations: read_only must be True or False"),  # type: ignore[arg-type]
        ({"metadata": nested(33)}, "metadata is nested more than 32 levels deep"),
        ({"metadata": "["}, "metadata is no JSON"),
        ({"tool_properties": {"__pptb": {"propertyType": "object"}}}, "the name of the call's own options"),
        (
            {"tool_properties": {"n": {"propertyType": "integer", "description": 5}}},
            "description must be a text",
        ),
    ],
)
def test_what_would_hurt_the_app_or_its_callers_is_a_fault_of_one_tool(options: Any, said: str) -> None:
    def sample(arguments: dict[str, Any]) -> str:
        """Sample."""
        return ""

    with pytest.raises(DeclarationError) as caught:
        tool(**options)(sample)
    assert caught.value.message.startswith("tool 'sample': ")
    assert said in caught.value.message


def test_what_is_none_is_left_out() -> None:
    options: Any = dict.fromkeys(["description", "title", "icons", "metadata", "annotations", "modes"])

    @tool(**options)
    def sample() -> str:
        """Sample."""
        return ""

    assert (found(sample).spec.description, found(sample).spec.title) == ("Sample.", "Sample")


def test_a_name_that_is_none_is_shown() -> None:
    with pytest.raises(DeclarationError, match="tool 'größe': a name must be"):

        @tool
        def größe() -> str:
            """Sample."""
            return ""


@pytest.mark.parametrize("form", [int | None, Optional[int], Maybe])  # noqa: UP045
def test_a_result_schema_may_be_any_type(form: Any) -> None:
    @tool(result_schema=form)
    def sample() -> Any:
        """Sample."""

    published: Any = found(sample).spec.result_schema
    assert published["properties"]["result"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_icons_and_metadata_are_published() -> None:
    icon = {"src": "https://example.com/i.png", "mimeType": "image/png"}

    @tool(icons=[icon], metadata='{"ui": {"resourceUri": "ui://x"}}')
    def sample() -> str:
        """Sample."""
        return ""

    published = trigger_fields(found(sample).spec)["metadata"]
    assert '"toolbox/icons":[{"src":"https://example.com/i.png"' in published
    assert '"ui":{"resourceUri":"ui://x"}' in published


class TestBindings:
    def test_a_binding_below_the_tool_is_refused(self) -> None:
        app = func.FunctionApp()
        with pytest.raises(DeclarationError, match="@tool must stand on a function") as caught:

            @tool
            @app.queue_output(arg_name="out", queue_name="q", connection="AzureWebJobsStorage")
            def sample(a: str, out: Any) -> str:
                """Sample."""
                return a

        assert "mcp_tool_trigger in function_app.py" in caught.value.message

    def test_a_binding_above_the_tool_is_a_fault_at_discovery(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / f"stacked_{tmp_path.name.replace('-', '_')}"
        (folder / "one").mkdir(parents=True)
        (folder / "one" / "__init__.py").write_text(
            "import azure.functions as func\nfrom shared.tool import tool\n"
            "app = func.FunctionApp()\n"
            "@app.queue_output(arg_name='out', queue_name='q', connection='S')\n"
            "@tool\ndef sample(a: str) -> str:\n    'Sample.'\n    return a\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        result = find_tools(folder)
        assert result.tools == {}
        (fault,) = result.faults
        assert "'sample' stands below another Functions decorator" in fault.reason


class Greeter:
    """Greets."""

    def __call__(self, name: str) -> str:
        return name

    def greet(self, name: str) -> str:
        """Greets."""
        return name


@pytest.mark.parametrize(
    "target", [Greeter(), Greeter, Greeter().greet, functools.partial(print, "a"), len, staticmethod(len)]
)
def test_what_can_be_called_but_is_no_function_is_to_be_wrapped(target: Any) -> None:
    with pytest.raises(DeclarationError, match=r"@tool must stand on a function, .*put @tool on a def"):
        tool(target)


def test_a_pattern_that_cannot_be_used_is_told_in_one_line() -> None:
    with pytest.raises(DeclarationError) as caught:

        @tool
        def sample(a: Annotated[str, Field(pattern="(?=a)b")], b: str) -> str:
            """Sample."""
            return a

    assert "tool 'sample': parameter 'a' has an annotation" in caught.value.message
    assert "its pattern cannot be used: look-around" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("target", [5, "text", object()])
def test_only_functions_are_tools(target: Any) -> None:
    with pytest.raises(DeclarationError, match="must stand on a function"):
        tool(target)
