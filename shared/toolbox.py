"""What a start needs, and no more: settings are checked, and triggers learn what they are declared with.

`function_app.py` stands on this. With a `tools.lock.json` that fits, a start imports no tool and none of the
app's parts: `runtime` puts those together at the first call. Without one the declarations themselves are read,
which takes the parts.
"""

# No `from __future__ import annotations`: the worker library would compile each trigger's annotations anew.
import functools
import inspect
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Literal

import azure.functions as func
from azure.functions.decorators.generic import GenericTrigger

from shared import settings as app_settings
from shared import startup
from shared.errors import SettingsError
from shared.lockfile import reading
from shared.lockfile.reading import Registration, ToolsLock
from shared.settings import Settings

if TYPE_CHECKING:
    from shared.runtime import Runtime
    from shared.upstream.policy import Policy

#: Settings of upstream servers, besides those with `_UPSTREAM_` in their names. Where none is set, nothing
#: can be wrong with them.
_UPSTREAM_SETTINGS: Final = ("MCP_SERVERS", "TOOLBOX_PROJECTS")

type Kind = Literal["tool", "resource", "prompt"]
type Trigger = Callable[..., Awaitable[str]]

#: The parameter of each trigger of a tool, resource or prompt, and so its binding's name.
_PARAMETER: Final = "payload"
_SCRIPT: Final = "function_app.py"


class Toolbox:
    """The app before its first call. Raises `SettingsError` with all that is wrong with settings."""

    def __init__(self, tools_folder: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._folder = tools_folder
        self._runtime: Runtime | None = None
        self._making = threading.Lock()
        self._lock: ToolsLock | None = None
        #: Which upstream tools nobody may call; None: nothing is denied, or what is cannot be told.
        self._denied: Callable[[str], bool] | None = None
        self.settings: Settings
        #: What each trigger is declared with.
        self.tools: list[Registration]
        self.resources: list[Registration]
        self.prompts: list[Registration]
        try:
            self._start(tools_folder.parent, environ)
        except SettingsError as error:
            as_jobs = () if self._lock is None else self._lock.run_as_jobs(self._denied)
            raise startup.failure(error, tools_folder.parent, environ, as_jobs) from None

    def _start(self, root: Path, environ: Mapping[str, str]) -> None:
        self.settings = app_settings.current()
        startup.check_host(root / "host.json")
        self._lock = reading.usable(str(root), self._folder.name, self.settings.max_timeout_ms, environ)
        if self._lock is None:
            self.tools, self.resources, self.prompts = self.runtime.registrations()
            return
        self._lock.tell()
        if self.settings.connections:
            _check_connections(self.settings.connections)
        policy = _policy(environ, root) if any(map(environ.get, _names(environ))) else None
        self._denied = policy.denied_to_all if policy is not None else None
        startup.check_named_jobs(self.settings, self._lock.run_as_jobs(self._denied))
        self.tools, self.resources, self.prompts = self._lock.registrations(self._denied)

    @property
    def runtime(self) -> "Runtime":
        """The app's parts, put together when they are first asked for."""
        if self._runtime is None:
            from shared.runtime import Runtime

            with self._making:
                if self._runtime is None:
                    self._runtime = Runtime(self._folder, self._lock)
        return self._runtime

    def tool_trigger(self, tool: Registration) -> Callable[[str, func.Context], Awaitable[str]]:
        """The function behind a tool's trigger. The host knows it by its `__name__`."""
        name = tool.name

        async def call(payload: str, context: func.Context) -> str:
            return await self._tool(name)(payload, context)

        return _known(call, tool)

    def resource_trigger(self, resource: Registration) -> Callable[[str], Awaitable[str]]:
        name = resource.name

        async def read(payload: str) -> str:
            return await self._resource(name)(payload)

        return _known(read, resource)

    def prompt_trigger(self, prompt: Registration) -> Callable[[func.PromptInvocationContext], Awaitable[str]]:
        name = prompt.name

        async def get(payload: func.PromptInvocationContext) -> str:
            return await self._prompt(name)(payload)

        return _known(get, prompt)

    # What is behind each trigger, made at its first call.

    @functools.cache  # noqa: B019 - lives as long as the process
    def _tool(self, name: str) -> Callable[[str, func.Context], Awaitable[str]]:
        return self.runtime.tool_trigger(name)

    @functools.cache  # noqa: B019
    def _resource(self, name: str) -> Callable[[str], Awaitable[str]]:
        return self.runtime.resource_trigger(name)

    @functools.cache  # noqa: B019
    def _prompt(self, name: str) -> Callable[[func.PromptInvocationContext], Awaitable[str]]:
        return self.runtime.prompt_trigger(name)


class App(func.FunctionApp):
    """The app as the worker library asks for it: a toolbox's triggers, and those that are declared on it.

    Its HTTP functions ask for no key of the host's.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        super().__init__(func.AuthLevel.ANONYMOUS)
        for tool in toolbox.tools:
            self._declare("tool", tool, toolbox.tool_trigger(tool))
        for resource in toolbox.resources:
            self._declare("resource", resource, toolbox.resource_trigger(resource))
        for prompt in toolbox.prompts:
            self._declare("prompt", prompt, toolbox.prompt_trigger(prompt))

    def _declare(self, kind: Kind, entry: Registration, trigger: Trigger) -> None:
        if entry.binding:
            builders: list[Any] = self._function_builders
            builders.append(_Ready(trigger, _binding(kind), entry.binding))
        else:
            _decorator(self, kind)(arg_name=_PARAMETER, **entry.fields)(trigger)


class _Ready(func.Function):
    """A function whose binding is written already: azure-functions takes 0.1 ms to make and write one.

    It stands in the place of its own builder, too.
    """

    def __init__(self, function: Trigger, trigger: GenericTrigger, text: str) -> None:
        """`trigger`: the binding, for what the library asks of it besides its text."""
        super().__init__(function, _SCRIPT)
        self.add_trigger(trigger)
        self._text = text

    def build(self, auth_level: func.AuthLevel | None = None) -> func.Function:
        return self

    def get_raw_bindings(self) -> list[str]:
        return [self._text]

    def get_bindings_dict(self) -> dict[str, Any]:
        return {"bindings": [json.loads(self._text)]}


@functools.cache
def _binding(kind: Kind) -> GenericTrigger:
    """The same for all functions of a kind."""
    return GenericTrigger(_PARAMETER, type=f"mcp{kind.title()}Trigger")


def binding_of(kind: Kind, fields: Mapping[str, Any]) -> str:
    """A binding's text, as azure-functions makes it of the keyword arguments of its decorator."""
    app = func.FunctionApp()

    async def trigger(payload: str) -> str:
        return payload

    _decorator(app, kind)(arg_name=_PARAMETER, **fields)(trigger)
    (function,) = app.get_functions()
    (binding,) = function.get_raw_bindings()
    return str(binding)


def _decorator(app: func.FunctionApp, kind: Kind) -> Callable[..., Callable[[Trigger], object]]:
    match kind:
        case "tool":
            return app.mcp_tool_trigger
        case "resource":
            return app.mcp_resource_trigger
        case "prompt":
            return app.mcp_prompt_trigger


#: Of functions with the same code, so that the worker library need not take each of them apart: with many tools
#: that is a good part of a start.
_signatures: dict[CodeType, inspect.Signature] = {}


def _known[F: Callable[..., Any]](trigger: F, entry: Registration) -> F:
    """The trigger with the name that the host knows it by, and its signature at hand."""
    function: Any = trigger
    function.__name__ = entry.function_name
    if function.__code__ not in _signatures:
        _signatures[function.__code__] = inspect.signature(function)
    function.__signature__ = _signatures[function.__code__]
    return trigger


def _names(environ: Mapping[str, str]) -> list[str]:
    return [name for name in environ if name in _UPSTREAM_SETTINGS or "_UPSTREAM_" in name]


def _check_connections(setting: str) -> None:
    from shared.apis.connections.reading import read_setting

    read_setting(setting)


def _policy(environ: Mapping[str, str], root: Path) -> "Policy":
    """Who may use which upstream tool; the other settings of upstream servers are checked with it."""
    from shared.upstream.policy import Policy
    from shared.upstream.settings import upstream_settings

    return Policy.parse(upstream_settings(environ, root).policy)
