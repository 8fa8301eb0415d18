"""`@resource`: what can be declared, what is sent for each return value, and what a failed read gives away."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import mcp_types
import pytest

from shared.errors import DeclarationError, ResultError
from shared.settings import Settings, load
from shared.tool import (
    McpImageContent,
    McpResourceContent,
    McpTextContent,
    McpToolResponse,
    ToolError,
    resource,
    serving,
)
from shared.tool.discovery import find_tools
from shared.tool.resources import DecoratedResource, contents, declared
from tests.unit.tool.documented import write_examples

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def entry_of(function: Any) -> DecoratedResource:
    found = declared(function)
    assert found is not None
    return found


def named(name: str) -> str:
    """Docs."""
    return name


def nothing() -> str:
    """Docs."""
    return ""


class TestDeclaration:
    def test_a_template_with_everything(self) -> None:
        @resource(
            uri="docs://{area}/{name}",
            name="any.page",
            title="A page",
            description="One page.",
            mime_type="text/markdown; charset=utf-8",
            metadata={"a": {"b": ["é"]}},
        )
        async def page(name: str, *, area: Annotated[str, "noted"]) -> str:
            return area + name

        spec = entry_of(page).spec
        assert spec.function_name == "resource_any_page"
        assert spec.trigger_fields() == {
            "uri": "docs://{area}/{name}",
            "resource_name": "any.page",
            "title": "A page",
            "description": "One page.",
            "mime_type": "text/markdown; charset=utf-8",
            "metadata": '{"a":{"b":["é"]}}',
        }

    def test_the_least(self) -> None:
        @resource(uri="docs://readme", size=12)
        def readme() -> str:
            """What
            to know.
            """
            return "text"

        assert entry_of(readme).spec.trigger_fields() == {
            "uri": "docs://readme",
            "resource_name": "readme",
            "description": "What\nto know.",
            "size": 12,
        }
        assert readme() == "text"

    @pytest.mark.parametrize(
        ("options", "function", "said"),
        [
            ({}, nothing, "resource 'nothing': uri must be absolute"),
            ({"uri": "readme"}, nothing, "resource 'nothing': uri must be absolute"),
            ({"uri": "a://{x}{y}"}, nothing, "resource 'nothing': uri has two expressions"),
            ({"uri": "a://{other}"}, named, "resource 'named': parameter 'name' is not in its uri a://{other}"),
            ({"uri": "a://x"}, named, "resource 'named': parameter 'name' is not in its uri"),
            ({"uri": "a://{x}"}, nothing, "resource 'nothing': its uri has '{x}' but the function takes no"),
            ({"uri": "a://x", "name": "a b"}, nothing, "resource 'a b': a name must be 1 to 64"),
            ({"uri": "a://x", "colour": "red"}, nothing, "resource 'nothing': unknown option 'colour'"),
            ({"uri": "a://x", "description": " "}, nothing, "resource 'nothing': write a docstring"),
            ({"uri": "a://x", "mime_type": "markdown"}, nothing, "mime_type must be like 'text/markdown'"),
            ({"uri": "a://x", "size": -1}, nothing, "size must be a number of bytes, not -1"),
            ({"uri": "a://x", "size": True}, nothing, "size must be a number of bytes, not True"),
            ({"uri": "a://{name}", "size": 1}, named, "a template has no size"),
            ({"uri": "a://x", "metadata": "{"}, nothing, "metadata is no JSON"),
            ({"uri": "a://x", "metadata": "[1]"}, nothing, "metadata must be a JSON object"),
            ({"uri": "a://x", "metadata": [1]}, nothing, "metadata must be a JSON object"),
            ({"uri": "a://x", "metadata": {"a": object()}}, nothing, "metadata cannot be written as JSON"),
            ({"uri": "a://x", "metadata": {"a": float("nan")}}, nothing, "metadata cannot be written as JSON"),
            (
                {"uri": "a://x", "metadata": '{"a":' * 33 + "1" + "}" * 33},
                nothing,
                "metadata is nested more than 32",
            ),
        ],
    )
    def test_faults_name_the_resource_and_the_option(
        self, options: Any, function: Callable[..., Any], said: str
    ) -> None:
        with pytest.raises(DeclarationError) as caught:
            resource(**options)(function)
        assert said in caught.value.message

    def test_all_faults_come_at_once(self) -> None:
        options: Any = {"uri": "nowhere", "mime_type": 5, "size": -1, "colour": "red"}

        def chapter(name: int, other) -> str:  # type: ignore[no-untyped-def]
            return ""

        with pytest.raises(DeclarationError) as caught:
            resource(**options)(chapter)
        for said in (
            "resource 'chapter': ",
            "uri must be absolute",
            "mime_type must be a text",
            "size must be",
            "unknown option 'colour'",
            "docstring",
            "'name' must be annotated str",
            "'other' has no annotation",
        ):
            assert said in caught.value.message

    def test_faults_of_parameters(self) -> None:
        def bare(name):  # type: ignore[no-untyped-def]
            """Docs."""

        def number(name: int) -> str:
            """Docs."""
            return str(name)

        def maybe(name: str | int) -> str:
            """Docs."""
            return str(name)

        def spread(**name: str) -> str:
            """Docs."""
            return str(name)

        def several(*name: str) -> str:
            """Docs."""
            return str(name)

        def positional(name: str, /) -> str:
            """Docs."""
            return name

        def unresolved(name: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
            """Docs."""
            return str(name)

        def generator(name: str) -> Any:
            """Docs."""
            yield name

        expected: dict[Callable[..., Any], str] = {
            bare: "parameter 'name' has no annotation",
            number: "parameter 'name' must be annotated str",
            maybe: "parameter 'name' must be annotated str",
            spread: "parameter 'name' must be an ordinary named one",
            several: "parameter 'name' must be an ordinary named one",
            positional: "parameter 'name' must be an ordinary named one",
            unresolved: "an annotation cannot be resolved",
            generator: "a generator has no single result",
        }
        for function, said in expected.items():
            with pytest.raises(DeclarationError) as caught:
                resource(uri="a://{name}")(function)
            assert caught.value.message.startswith(f"resource '{function.__name__}': {said}")


@dataclass
class Row:
    x: int


def sent(value: Any, **options: Any) -> Any:
    """What the host makes of the string: the contents of resources/read."""

    def made() -> None:
        """Docs."""

    spec = entry_of(resource(uri="a://x", **options)(made)).spec
    outer = json.loads(contents(spec, "a://x", value).encode("utf-8"))
    assert list(outer) == ["content"]
    return json.loads(outer["content"])


class TestContents:
    @pytest.mark.parametrize(
        ("value", "mime_type", "held"),
        [
            ("hi", "text/plain", {"text": "hi"}),
            ("", "text/plain", {"text": ""}),
            ("lone \ud800", "text/plain", {"text": "lone \ufffd"}),
            # Sent as it is, this would be taken for the host's envelope.
            ('{"content": "{}"}', "text/plain", {"text": '{"content": "{}"}'}),
            (b"\x00\xff", "application/octet-stream", {"blob": "AP8="}),
            (bytearray(b"\x00\xff"), "application/octet-stream", {"blob": "AP8="}),
            (memoryview(PNG), "image/png", {"blob": base64.b64encode(PNG).decode()}),
            ({"a": [1, None]}, "application/json", {"text": '{"a":[1,null]}'}),
            ([Row(1)], "application/json", {"text": '[{"x":1}]'}),
            (2**70, "application/json", {"text": str(2**70)}),
            (False, "application/json", {"text": "false"}),
        ],
    )
    def test_values(self, value: Any, mime_type: str, held: dict[str, str]) -> None:
        assert sent(value) == {"uri": "a://x", "mimeType": mime_type, **held}
        assert sent(value, mime_type="a/b") == {"uri": "a://x", "mimeType": "a/b", **held}

    def test_blocks(self) -> None:
        block = McpResourceContent("b://y", blob=PNG)
        encoded = base64.b64encode(PNG).decode()
        assert sent(block) == {"uri": "b://y", "mimeType": "image/png", "blob": encoded}
        of_sdk = mcp_types.EmbeddedResource(
            type="resource", resource=mcp_types.TextResourceContents(uri="b://z", text="t")
        )
        assert sent(of_sdk) == {"uri": "b://z", "mimeType": "text/plain", "text": "t"}

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (None, "returned nothing"),
            (McpTextContent("t"), "of type 'text' is no resource"),
            (McpImageContent(PNG), "of type 'image' is no resource"),
            ([McpResourceContent("b://y", text="t")], "it has one content"),
            (McpToolResponse(), "it has one content"),
            (object(), "cannot be written as JSON"),
        ],
    )
    def test_what_has_no_contents(self, value: Any, said: str) -> None:
        with pytest.raises(ResultError, match=said):
            sent(value)


@pytest.fixture
def settings() -> Settings:
    return load(
        {
            "AzureWebJobsStorage": "UseDevelopmentStorage=true",
            "MCP_AUTH_TOKEN": "the-right-token",
            "TOOLBOX_SEAL_KEY": base64.b64encode(bytes(32)).decode(),
        }
    )


def payload(uri: str, **headers: str) -> str:
    transport = {"name": "http-streamable", "properties": {"headers": headers}}
    return json.dumps({"uri": uri, "transport": transport})


def read(function: Any, settings: Settings, given: str) -> Any:
    trigger = serving.resource_trigger(entry_of(function), settings)
    return json.loads(json.loads(asyncio.run(trigger(given)))["content"])  # type: ignore[arg-type]


class TestReading:
    def test_parameters_come_from_the_uri(self, settings: Settings) -> None:
        @resource(uri="docs://{area}/{name}")
        async def page(name: str, area: str) -> dict[str, str]:
            """Docs."""
            return {"area": area, "name": name}

        answer = read(page, settings, payload("docs://a%20b/c", **{"X-MCP-Auth-Token": "the-right-token"}))
        assert answer["uri"] == "docs://a%20b/c"
        assert json.loads(answer["text"]) == {"area": "a b", "name": "c"}

    def test_sync_functions_run_on_a_thread_and_async_ones_do_not(self, settings: Settings) -> None:
        @resource(uri="docs://sync")
        def sync() -> str:
            """Docs."""
            return threading.current_thread().name

        @resource(uri="docs://async")
        async def on_loop() -> str:
            """Docs."""
            return threading.current_thread().name

        assert read(sync, settings, payload("docs://sync"))["text"] == "resource-or-prompt"
        assert read(on_loop, settings, payload("docs://async"))["text"] == threading.current_thread().name

    @pytest.mark.parametrize(
        ("raised", "logged"),
        [
            (ValueError("sig=0123456789abcdef0123 of ana"), "ValueError: sig=[redacted] of ana"),
            (ToolError("no such thing: key-of-this-caller"), "no such thing: [redacted]"),
            (KeyboardInterrupt("stop"), "KeyboardInterrupt: stop"),
        ],
    )
    def test_a_failure_is_logged_redacted_and_the_host_learns_nothing(
        self, settings: Settings, caplog: pytest.LogCaptureFixture, raised: BaseException, logged: str
    ) -> None:
        @resource(uri="docs://x")
        def broken() -> str:
            """Docs."""
            raise raised

        with caplog.at_level(logging.WARNING), pytest.raises(Exception) as caught:
            read(broken, settings, payload("docs://x", **{"X-Functions-Key": "key-of-this-caller"}))
        assert str(caught.value) == "The resource 'broken' could not be read; the app's log has the reason."
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert "resource 'broken'" in caplog.text
        assert logged in caplog.text
        assert "key-of-this-caller" not in caplog.text
        assert "0123456789abcdef0123" not in caplog.text

    @pytest.mark.parametrize(
        ("given", "logged"),
        [
            (payload("docs://a/b"), "the uri does not fit docs://{name}"),
            (payload("docs://a%2Fb"), "the uri's 'name' must be one path segment"),
            (payload("docs://a", **{"x-mcp-auth-token": "wrong"}), "Unauthorized"),
            ("no JSON", "JSONDecodeError"),
            ("{}", "KeyError"),
            ("[]", "AttributeError"),
        ],
    )
    def test_what_cannot_be_read_does_not_reach_the_function(
        self, settings: Settings, caplog: pytest.LogCaptureFixture, given: str, logged: str
    ) -> None:
        called = []

        @resource(uri="docs://{name}")
        async def page(name: str) -> str:
            """Docs."""
            called.append(name)
            return name

        with pytest.raises(Exception, match="could not be read"):
            read(page, settings, given)
        assert logged in caplog.text
        assert called == []

    def test_a_function_that_does_not_come_back(
        self, settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(serving, "TIMEOUT_S", 0.05)
        release = threading.Event()

        @resource(uri="docs://x")
        def slow() -> str:
            """Docs."""
            release.wait(20)
            return ""

        with pytest.raises(Exception, match="could not be read"):
            read(slow, settings, payload("docs://x"))
        release.set()
        assert "it took longer than 0.05 s" in caplog.text

    def test_a_function_of_its_own_timeout_is_no_deadline(
        self, settings: Settings, caplog: pytest.LogCaptureFixture
    ) -> None:
        @resource(uri="docs://x")
        async def failing() -> str:
            """Docs."""
            raise TimeoutError("of the author")

        with pytest.raises(Exception, match="could not be read"):
            read(failing, settings, payload("docs://x"))
        assert "TimeoutError: of the author" in caplog.text
        assert "longer than" not in caplog.text


HEAD = "from shared.tool import resource\n"
ONE = '@resource(uri="{uri}")\ndef {name}({parameter}) -> str:\n    """Docs."""\n    return ""\n'


class TestDiscovery:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        found = tmp_path / f"resources_{tmp_path.name.replace('-', '_')}"
        found.mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        return found

    def write(self, folder: Path, name: str, *codes: str) -> None:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("".join([HEAD, *codes]))

    def test_a_folder_of_resources_alone_is_no_fault(self, folder: Path) -> None:
        static = ONE.format(uri="a://x", name="one", parameter="")
        template = ONE.format(uri="a://x/{y}", name="two", parameter="y: str")
        self.write(folder, "only", static, template, "again = two\n")
        found = find_tools(folder)
        assert (list(found.resources), found.tools, found.faults) == (["one", "two"], {}, ())

    def test_one_uri_or_one_name_twice_is_a_fault_that_names_both(self, folder: Path) -> None:
        first = ONE.format(uri="a://x/{y}", name="one", parameter="y: str")
        self.write(folder, "first", first)
        self.write(folder, "same_uri", ONE.format(uri="A://X/{z}", name="two", parameter="z: str"))
        self.write(folder, "same_name", ONE.format(uri="b://x", name="ONE", parameter=""))
        found = find_tools(folder)
        assert list(found.resources) == ["one"]
        reasons = {fault.folder: fault.reason for fault in found.faults}
        assert reasons == {
            "same_uri": "its resource 'two' has the uri of one in 'first'; change either",
            "same_name": "its resource 'ONE' has the name of one in 'first'; rename either",
        }

    def test_what_is_built_in_stays(self, folder: Path) -> None:
        self.write(folder, "own", ONE.format(uri="a://{x}", name="one", parameter="x: str"))

        @resource(uri="a://{y}")
        def mine(y: str) -> str:
            """Docs."""
            return y

        found = find_tools(folder, [mine])
        assert list(found.resources) == ["mine"]
        assert found.faults[0].reason == "its resource 'one' has the uri of one in 'the app itself'; change it"

    def test_a_bad_declaration_is_named(self, folder: Path) -> None:
        self.write(folder, "bad", ONE.format(uri="a://{x}", name="one", parameter="y: str"))
        (fault,) = find_tools(folder).faults
        assert fault.reason == (
            "resource 'one': parameter 'y' is not in its uri a://{x}; "
            "its uri has '{x}' but the function takes no parameter 'x'"
        )

    def test_the_documented_examples(self, folder: Path, settings: Settings) -> None:
        assert write_examples("resources-and-prompts.md", folder) == ["handbook", "reviewing"]
        found = find_tools(folder)
        assert found.faults == ()
        assert list(found.resources) == ["chapters", "chapter", "cover", "licence"]

        def text(name: str, uri: str) -> Any:
            trigger = serving.resource_trigger(found.resources[name], settings)
            return json.loads(json.loads(asyncio.run(trigger(payload(uri))))["content"])  # type: ignore[arg-type]

        assert text("chapters", "handbook://chapters")["text"] == '["jobs","tools"]'
        assert text("chapter", "handbook://chapters/jobs")["mimeType"] == "text/markdown"
        assert text("cover", "handbook://cover")["mimeType"] == "image/gif"
        assert text("licence", "handbook://en/licence")["mimeType"] == "text/html"
