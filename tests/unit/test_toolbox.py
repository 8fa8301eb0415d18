"""What `shared.toolbox.App` declares by itself is to the worker library what its own decorators make."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import azure.functions as func
import pytest
from azure_functions_runtime.bindings.meta import load_binding_registry
from azure_functions_runtime.functions import Registry

from infra.local.host import protos
from shared.lockfile.reading import Registration
from shared.toolbox import App, binding_of

FIELDS: dict[str, dict[str, Any]] = {
    "tool": {
        "tool_name": "greet",
        "description": 'Says "Grüße" — \U0001f44b.',
        "tool_properties": "[]",
        "use_result_schema": True,
        "input_schema": '{"type":"object"}',
    },
    "resource": {
        "uri": "notes://{name}",
        "resource_name": "note",
        "description": "A note.",
        "mime_type": "text/x",
    },
    "prompt": {
        "prompt_name": "review",
        "description": "Reviews.",
        "prompt_arguments": [func.PromptArgument("code", "What to review.", True)],
    },
}


async def tool_function(payload: str, context: func.Context) -> str:
    return payload


async def resource_function(payload: str) -> str:
    return payload


async def prompt_function(payload: func.PromptInvocationContext) -> str:
    return ""


async def page(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("")


FUNCTIONS: dict[str, Any] = {"tool": tool_function, "resource": resource_function, "prompt": prompt_function}


def app(**entries: Registration) -> App:
    """With one tool, resource or prompt."""
    given: Any = SimpleNamespace(tools=[], resources=[], prompts=[])
    for kind, entry in entries.items():
        setattr(given, f"{kind}s", [entry])
        setattr(given, f"{kind}_trigger", lambda _, kind=kind: FUNCTIONS[kind])
    return App(given)


def indexed(function: func.Function) -> Any:
    """What the worker library knows of a function: what it calls, and how."""
    load_binding_registry()
    registry: Any = Registry()
    return registry.add_indexed_function(function, protos)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_binding_that_was_written_before_stands_for_the_decorator(kind: Any) -> None:
    written = binding_of(kind, FIELDS[kind])
    (ready,) = app(**{kind: Registration("f", "x", written)}).get_functions()
    (decorated,) = app(**{kind: Registration("f", "x", "", FIELDS[kind])}).get_functions()
    assert type(ready) is not type(decorated)
    assert ready.get_raw_bindings() == decorated.get_raw_bindings() == [written]
    assert ready.get_function_json() == decorated.get_function_json()
    assert ready.get_function_name() == decorated.get_function_name()
    assert ready.is_http_function() is decorated.is_http_function() is False
    assert indexed(ready) == indexed(decorated)


def test_two_functions_of_one_name_are_refused() -> None:
    ours = app(tool=Registration("f", "x", binding_of("tool", FIELDS["tool"])))

    @ours.route(route="a")
    async def tool_function(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse("")

    with pytest.raises(ValueError, match="tool_function does not have a unique function name"):
        ours.get_functions()


def test_triggers_of_other_kinds_are_the_librarys(caplog: pytest.LogCaptureFixture) -> None:
    ours = app(tool=Registration("f", "x", binding_of("tool", FIELDS["tool"])))
    ours.route(route="a")(page)

    @ours.timer_trigger(arg_name="timer", schedule="0 */5 * * * *")
    async def clean(timer: func.TimerRequest) -> None: ...

    caplog.clear()
    with caplog.at_level(logging.WARNING):
        names = [function.get_function_name() for function in ours.get_functions()]
    assert names == ["tool_function", "page", "clean"]
    assert not caplog.records
