"""`@prompt`: what can be declared, what its arguments are, and what is sent for each return value."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import azure.functions as func
import pytest
from pydantic import Field

from shared.errors import DeclarationError, InputError, ResultError
from shared.settings import Settings, load
from shared.tool import McpImageContent, McpResourceContent, PromptMessage, ToolError, prompt, serving
from shared.tool.discovery import find_tools
from shared.tool.prompts import DecoratedPrompt, check_arguments, declared, messages
from tests.unit.tool.documented import write_examples

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
TOKEN = "the-right-token"


def entry_of(function: Any) -> DecoratedPrompt:
    found = declared(function)
    assert found is not None
    return found


@prompt
def review(
    code: Annotated[str, Field(description="The code.")],
    language: Annotated[str, "Its language."] = "Python",
    tone: Annotated[str | None, "How."] = None,
    focus: str | None = "all",
    *,
    extra: Annotated[str | None, "More."],
) -> list[str]:
    """Reviews code."""
    return [repr(value) for value in (code, language, tone, focus, extra)]


def plain() -> str:
    """Docs."""
    return ""


class TestDeclaration:
    def test_arguments_come_from_the_parameters(self) -> None:
        fields = entry_of(review).spec.trigger_fields()
        assert [argument.to_dict() for argument in fields.pop("prompt_arguments")] == [
            {"name": "code", "description": "The code.", "required": True},
            {"name": "language", "description": "Its language.", "required": False},
            {"name": "tone", "description": "How.", "required": False},
            {"name": "focus", "description": "", "required": False},
            {"name": "extra", "description": "More.", "required": False},
        ]
        assert fields == {"prompt_name": "review", "description": "Reviews code.", "use_result_schema": True}

    def test_everything(self) -> None:
        @prompt(
            name="any.thing",
            title="Any",
            description="Any thing.",
            icons=[{"src": "https://a/b.png", "sizes": ["48x48"]}],
            metadata='{"a": 1}',
        )
        async def anything() -> str:
            return ""

        spec = entry_of(anything).spec
        assert spec.function_name == "prompt_any_thing"
        assert spec.trigger_fields() == {
            "prompt_name": "any.thing",
            "title": "Any",
            "description": "Any thing.",
            "icons": '[{"src":"https://a/b.png","sizes":["48x48"]}]',
            "metadata": '{"a":1}',
            "prompt_arguments": [],
            # A text alone: hosts that know no result schemas of prompts can take it.
            "use_result_schema": False,
        }

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"name": "a/b"}, "prompt 'a/b': a name must be 1 to 64"),
            ({"uri": "a://b"}, "prompt 'plain': unknown option 'uri'; known are name, title"),
            ({"description": ""}, "prompt 'plain': write a docstring or a description"),
            ({"icons": "{}"}, "icons must be a JSON list of objects"),
            ({"icons": [{"src": ""}]}, "icons must be objects that each have a 'src'"),
            ({"icons": ["https://a"]}, "icons must be objects that each have a 'src'"),
            ({"icons": "["}, "icons is no JSON"),
            ({"metadata": "1"}, "metadata must be a JSON object"),
        ],
    )
    def test_faults_name_the_prompt_and_the_option(self, options: Any, said: str) -> None:
        with pytest.raises(DeclarationError) as caught:
            prompt(**options)(plain)
        assert said in caught.value.message

    def test_all_faults_come_at_once(self) -> None:
        options: Any = {"name": "a b", "title": 5, "colour": "red", "icons": [5], "metadata": "{"}

        def review(code: int, other) -> str:  # type: ignore[no-untyped-def]
            return ""

        with pytest.raises(DeclarationError) as caught:
            prompt(**options)(review)
        for said in (
            "prompt 'a b': ",
            "a name must be",
            "title must be a text",
            "unknown option 'colour'",
            "docstring",
            "'code' must be annotated str",
            "'other' has no annotation",
            "icons must be",
            "metadata is no JSON",
        ):
            assert said in caught.value.message

    def test_faults_of_parameters(self) -> None:
        def number(count: int) -> str:
            """Docs."""
            return str(count)

        def listed(names: list[str]) -> str:
            """Docs."""
            return str(names)

        def none_only(name: None) -> str:
            """Docs."""
            return str(name)

        def ruled(name: Annotated[str, Field(description="d", max_length=3)]) -> str:
            """Docs."""
            return name

        def spread(**names: str) -> str:
            """Docs."""
            return str(names)

        expected: dict[Callable[..., str], str] = {
            number: "parameter 'count' must be annotated str: only texts can be sent",
            listed: "parameter 'names' must be annotated str: only texts can be sent",
            none_only: "parameter 'name' must be annotated str: only texts can be sent",
            ruled: "parameter 'name': of Field(…) only the description can be carried out",
            spread: "parameter 'names' must be an ordinary named one",
        }
        for function, said in expected.items():
            with pytest.raises(DeclarationError) as caught:
                prompt(function)
            assert caught.value.message.startswith(f"prompt '{function.__name__}': {said}")


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "passed"),
        [
            ({"code": "x"}, {"code": "x", "extra": None}),
            ({"code": "", "tone": None, "extra": None}, {"code": "", "extra": None}),
            ({"code": "x", "extra": "y", "focus": "z"}, {"code": "x", "extra": "y", "focus": "z"}),
        ],
    )
    def test_what_the_function_is_given(self, given: Any, passed: Any) -> None:
        assert check_arguments(entry_of(review).spec, given) == passed

    @pytest.mark.parametrize(
        ("given", "faults"),
        [
            (None, ["$.code: required argument is missing"]),
            ({"code": None}, ["$.code: required argument is missing"]),
            ({"code": 5}, ["$.code: expected string, got integer"]),
            ({"code": ["x"]}, ["$.code: expected string, got array"]),
            ({"code": "x", "langauge": "C"}, ["unknown argument 'langauge'; did you mean 'language'?"]),
            ({"code": "x", "zzz": "C"}, ["unknown argument 'zzz'; known are code, language"]),
            (
                {"language": 1, "zzz": ""},
                ["$.code: required", "$.language: expected string", "unknown argument 'zzz'"],
            ),
            ([], ["arguments must be an object, not array"]),
        ],
    )
    def test_every_fault_is_named_at_once(self, given: Any, faults: list[str]) -> None:
        with pytest.raises(InputError) as caught:
            check_arguments(entry_of(review).spec, given)
        assert caught.value.message.startswith("Prompt 'review': ")
        for fault in faults:
            assert fault in caught.value.message


def sent(value: Any) -> Any:
    """What the host makes of the string: the messages of prompts/get."""
    outer = json.loads(messages(entry_of(review).spec, value).encode("utf-8"))
    assert outer["type"] == "get_prompt_result"
    inner = json.loads(outer["content"])
    assert inner["description"] == "Reviews code."
    return inner["messages"]


def text(role: str, said: str) -> Any:
    return {"role": role, "content": {"type": "text", "text": said}}


class TestMessages:
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, []),
            ([], []),
            ("hi \ud800", [text("user", "hi \ufffd")]),
            (PromptMessage("assistant", "hi"), [text("assistant", "hi")]),
            (["a", PromptMessage("assistant", "b")], [text("user", "a"), text("assistant", "b")]),
            (
                PromptMessage("user", McpImageContent(PNG)),
                [
                    {
                        "role": "user",
                        "content": {
                            "type": "image",
                            "data": base64.b64encode(PNG).decode(),
                            "mimeType": "image/png",
                        },
                    }
                ],
            ),
            (
                (PromptMessage("user", McpResourceContent("a://b", text="t")),),
                [
                    {
                        "role": "user",
                        "content": {
                            "type": "resource",
                            "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "t"},
                        },
                    }
                ],
            ),
        ],
    )
    def test_values(self, value: Any, expected: Any) -> None:
        assert sent(value) == expected

    def test_none_among_the_messages_is_an_error_that_says_what_to_do(self) -> None:
        with pytest.raises(ResultError, match="holds None; leave the item out, or return None for no messages"):
            sent(["a", None])

    @pytest.mark.parametrize("value", [5, {"role": "user"}, [5], [["a"]], McpImageContent(PNG)])
    def test_what_is_no_message(self, value: Any) -> None:
        with pytest.raises(ResultError, match="a prompt is made of texts and PromptMessage, not"):
            sent(value)

    @pytest.mark.parametrize(
        ("role", "content", "said"),
        [("system", "a", "role user or assistant"), ("user", 5, "a text or one content block, not int")],
    )
    def test_a_wrong_message_is_refused_when_made(self, role: Any, content: Any, said: str) -> None:
        with pytest.raises(ResultError, match=said):
            PromptMessage(role, content)

    def test_a_prompt_that_promises_a_text_is_sent_as_it_is(self) -> None:
        spec = entry_of(prompt(plain)).spec
        assert messages(spec, '{"type": "get_prompt_result"}') == '{"type": "get_prompt_result"}'
        with pytest.raises(ResultError, match="annotated '-> str' and returned list"):
            messages(spec, ["a"])


@pytest.fixture
def settings() -> Settings:
    return load(
        {
            "AzureWebJobsStorage": "UseDevelopmentStorage=true",
            "MCP_AUTH_TOKEN": TOKEN,
            "TOOLBOX_SEAL_KEY": base64.b64encode(bytes(32)).decode(),
        }
    )


def get(entry: DecoratedPrompt, settings: Settings, arguments: Any, **headers: str) -> str:
    data = {"name": entry.spec.name, "transport": {"properties": {"headers": headers}}}
    if arguments is not None:
        data["arguments"] = arguments
    trigger = serving.prompt_trigger(entry, settings)
    return asyncio.run(trigger(func.PromptInvocationContext(json.dumps(data))))  # type: ignore[arg-type]


class TestGetting:
    def test_the_function_is_given_the_arguments(self, settings: Settings) -> None:
        answer = get(entry_of(review), settings, {"code": "x"}, **{"X-MCP-Auth-Token": TOKEN})
        told = [message["content"]["text"] for message in json.loads(json.loads(answer)["content"])["messages"]]
        assert told == ["'x'", "'Python'", "None", "'all'", "None"]

    def test_sync_functions_run_on_a_thread(self, settings: Settings) -> None:
        @prompt
        def where() -> str:
            """Docs."""
            return threading.current_thread().name

        assert get(entry_of(where), settings, None) == "resource-or-prompt"

    def test_what_the_caller_can_put_right_is_answered_in_words(self, settings: Settings) -> None:
        @prompt
        def choosy(name: str) -> str:
            """Docs."""
            raise ToolError(f"There is no {name}: Bearer abcdefghijkl")

        entry = entry_of(choosy)
        assert get(entry, settings, {"name": "x"}) == "There is no x: Bearer [redacted]"
        assert "$.name: expected string, got integer" in get(entry, settings, {"name": 5})
        refused = get(entry, settings, {"name": "x"}, **{"X-MCP-Auth-Token": "wrong"})
        assert refused == "Unauthorized: valid MCP access token required"
        faults = json.loads(json.loads(get(entry_of(review), settings, {}))["content"])["messages"]
        assert faults == [text("user", "Prompt 'review': $.code: required argument is missing")]

    @pytest.mark.parametrize(
        ("raised", "logged"),
        [(ValueError(f"bad {TOKEN}"), "ValueError: bad [redacted]"), (ResultError("no form"), "no form")],
    )
    def test_anything_else_is_logged_redacted_and_the_host_learns_nothing(
        self, settings: Settings, caplog: pytest.LogCaptureFixture, raised: Exception, logged: str
    ) -> None:
        @prompt
        async def broken() -> str:
            """Docs."""
            raise raised

        with pytest.raises(Exception) as caught:
            get(entry_of(broken), settings, None, **{"X-MCP-Auth-Token": TOKEN})
        assert str(caught.value) == "The prompt 'broken' could not be made; the app's log has the reason."
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert logged in caplog.text
        assert TOKEN not in caplog.text


class TestDiscovery:
    CODE = 'from shared.tool import prompt\n@prompt\ndef {name}() -> str:\n    """Docs."""\n    return ""\n'

    def test_one_name_twice_is_a_fault_that_names_both(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / f"prompts_{tmp_path.name.replace('-', '_')}"
        for home, name in (("first", "one"), ("second", "One")):
            (folder / home).mkdir(parents=True)
            (folder / home / "__init__.py").write_text(self.CODE.format(name=name))
        monkeypatch.syspath_prepend(str(tmp_path))
        found = find_tools(folder)
        assert (list(found.prompts), found.tools, found.resources) == (["one"], {}, {})
        (fault,) = found.faults
        assert (fault.folder, fault.reason) == (
            "second",
            "its prompt 'One' has the name of one in 'first'; rename either",
        )

    def test_the_documented_examples(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        folder = tmp_path / f"documented_{tmp_path.name.replace('-', '_')}"
        write_examples("resources-and-prompts.md", folder)
        monkeypatch.syspath_prepend(str(tmp_path))
        found = find_tools(folder)
        assert found.faults == ()
        assert list(found.prompts) == ["review", "interview"]
        assert get(found.prompts["review"], settings, {"code": "x"}).startswith("Review this Python code.")
        talk = json.loads(json.loads(get(found.prompts["interview"], settings, None))["content"])["messages"]
        assert [message["role"] for message in talk] == ["user", "assistant"]
        assert talk[0]["content"]["text"] == "I would like to talk about my work."
