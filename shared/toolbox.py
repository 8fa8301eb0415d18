"""What a start needs, and no more: settings are checked, and triggers learn what they are declared with.

`function_app.py` stands on this. With a `tools.lock.json` that fits, a start imports no tool and none of the
app's parts: `runtime` puts those together at the first call. Without one the declarations themselves are read,
which takes the parts.
"""

# No `from __future__ import annotations`: the worker library would compile each trigger's annotations anew.
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

import azure.functions as func

from shared import settings as app_settings
from shared import startup
from shared.lockfile import reading
from shared.lockfile.reading import Registration

if TYPE_CHECKING:
    from shared.runtime import Runtime
    from shared.upstream.policy import Policy

#: Settings of upstream servers, besides those with `_UPSTREAM_` in their names. Where none is set, nothing
#: can be wrong with them.
_UPSTREAM_SETTINGS: Final = ("MCP_SERVERS", "TOOLBOX_PROJECTS")


class Toolbox:
    """The app before its first call. Raises `SettingsError` at once when a setting is illegal."""

    def __init__(self, tools_folder: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.settings = app_settings.current()
        self._folder = tools_folder
        self._runtime: Runtime | None = None
        self._making = threading.Lock()
        root = tools_folder.parent
        startup.check_host(root / "host.json")
        self._lock = reading.usable(str(root), tools_folder.name, self.settings.max_timeout_ms, environ)
        #: What each trigger is declared with.
        self.tools: list[Registration]
        self.resources: list[Registration]
        self.prompts: list[Registration]
        if self._lock is None:
            self.tools, self.resources, self.prompts = self.runtime.registrations()
            return
        self._lock.tell()
        startup.check_named_jobs(self.settings, self._lock.run_as_jobs)
        if self.settings.connections:
            _check_connections(self.settings.connections)
        policy = _policy(environ, root) if any(map(environ.get, _names(environ))) else None
        denied = policy.denied_to_all if policy is not None else None
        self.tools = self._lock.tools(denied)
        self.resources = self._lock.resources()
        self.prompts = self._lock.prompts(denied)

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
        made = functools.cache(lambda: self.runtime.tool_trigger(tool.name))

        async def call(payload: str, context: func.Context) -> str:
            return await made()(payload, context)

        return _known(call, tool)

    def resource_trigger(self, resource: Registration) -> Callable[[str], Awaitable[str]]:
        made = functools.cache(lambda: self.runtime.resource_trigger(resource.name))

        async def read(payload: str) -> str:
            return await made()(payload)

        return _known(read, resource)

    def prompt_trigger(self, prompt: Registration) -> Callable[[func.PromptInvocationContext], Awaitable[str]]:
        made = functools.cache(lambda: self.runtime.prompt_trigger(prompt.name))

        async def get(payload: func.PromptInvocationContext) -> str:
            return await made()(payload)

        return _known(get, prompt)


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
