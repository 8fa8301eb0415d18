"""From `upstream.lock.json` to the app's own tools and prompts. Standard library only: it happens at load."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from shared.errors import ConfigError, InputError
from shared.tool.context import Context
from shared.tool.declaration import TextParameter
from shared.tool.discovery import Fault
from shared.tool.handler import Handler, ToolEntry
from shared.tool.prompts import DecoratedPrompt, PromptSpec
from shared.tool.result import ToolResult
from shared.tool.spec import (
    REPEATABLE_ATTEMPTS,
    ExecutionMode,
    JsonObject,
    Mode,
    RunRules,
    ToolAnnotations,
    ToolSpec,
)
from shared.tool.validation import SchemaCheck
from shared.upstream import lock
from shared.upstream.lock import Lock, LockedPrompt, LockedTool
from shared.upstream.names import alias, canonical
from shared.upstream.policy import Policy

#: Key of a published tool's metadata that says where it is from.
ORIGIN: Final = "toolbox/upstream"
_ANNOTATIONS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}


class Caller(Protocol):
    """Who carries the calls to the servers: `shared.upstream.gateway`."""

    async def call(self, tool: LockedTool, arguments: JsonObject, context: Context) -> ToolResult: ...

    async def prompt(self, prompt: LockedPrompt, arguments: dict[str, str | None]) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Published:
    """What the app registers, with the home of each, and what is left out and why."""

    tools: list[tuple[str, ToolEntry]]
    prompts: list[tuple[str, DecoratedPrompt]]
    faults: list[Fault]
    lock: Lock

    @property
    def aliases(self) -> dict[str, str]:
        """Qualified name -> the published one; where that is the same, the alias is another name of it."""
        dotted = [tool.name for tool in self.lock.tools if tool.name == tool.qualified]
        # Qualified names win.
        return {alias(name): name for name in dotted} | {tool.qualified: tool.name for tool in self.lock.tools}


def home_of(server: str) -> str:
    """What stands in the place of a folder's name for a server's tools."""
    return f"upstream '{server}'"


def published(path: Path, policy: Policy, caller: Caller) -> Published:
    """The locked tools and prompts as entries of the app. A lock file that cannot be read is one fault."""
    try:
        locked = lock.read(path)
    except ConfigError as error:
        return Published([], [], [Fault(lock.LOCK_FILE, error.message)], Lock())
    tools: list[tuple[str, ToolEntry]] = [
        (home_of(tool.server), UpstreamEntry(tool, caller))
        for tool in locked.tools
        # The host lists every trigger to everyone, so what nobody may call is no trigger.
        if not tool.disabled and not policy.denied_to_all(canonical(tool.server, tool.tool))
    ]
    prompts = [
        (home_of(prompt.server), _prompt(prompt, caller))
        for prompt in locked.prompts
        if not policy.denied_to_all(canonical(prompt.server, prompt.prompt))
    ]
    return Published(tools, prompts, [], locked)


class UpstreamEntry:
    """A tool of another server as a tool of the app. A `ToolEntry`."""

    def __init__(self, locked: LockedTool, caller: Caller) -> None:
        self.locked = locked
        self.spec = spec_of(locked)
        self._caller = caller
        self._handler: Handler | None = None

    def load(self) -> Handler:
        if self._handler is None:
            locked, caller = self.locked, self._caller

            def run(arguments: JsonObject, context: Context | None) -> Awaitable[ToolResult]:
                assert context is not None
                return caller.call(locked, arguments, context)

            self._handler = UpstreamHandler(
                self.spec, run, is_async=True, needs_context=True, to_result=_unchanged
            )
        return self._handler


def _unchanged(value: Any) -> ToolResult:
    result: ToolResult = value
    return result


@dataclass(frozen=True, slots=True)
class UpstreamHandler(Handler):
    """The server judges its arguments itself, so null stays null; ours is the check of what was published."""

    def __post_init__(self) -> None:
        result = self.spec.result_schema
        object.__setattr__(self, "_input", SchemaCheck(self.spec.input_schema))
        object.__setattr__(self, "_result", None if result is None else SchemaCheck(result))

    def check_input(self, arguments: JsonObject) -> JsonObject:
        """The arguments, if they fit the locked schema. Raises `InputError` with every fault."""
        faults = self._input.faults(arguments)
        if faults:
            raise InputError(faults=faults)
        return arguments

    def finish(self, value: Any) -> ToolResult:
        """The answer, if it keeps what the tool's published schema promises.

        If not, it is an error that still holds what the server sent: clients that validate would refuse it all.
        """
        result: ToolResult = value
        if result.is_error or self._result is None:
            return result
        if result.structured is None:
            reason = "the server sent no structured content, which its tool promises"
        else:
            faults = self._result.faults(result.structured)
            if not faults:
                return result
            reason = f"the server's structured content does not fit its own schema: {'; '.join(faults)}"
        text = f"Output validation failed: {reason}"
        return ToolResult(
            ({"type": "text", "text": text}, *result.content),
            is_error=True,
            meta={**result.meta, "toolbox/errorCode": "invalid_result"},
        )


def spec_of(locked: LockedTool) -> ToolSpec:
    """The tool as the app publishes it. Where its scopes differ, what is published fits all of them."""
    schemas = list(locked.scopes.values())
    hints = {
        ours: locked.annotations[theirs]
        for theirs, ours in _ANNOTATIONS.items()
        if isinstance(locked.annotations.get(theirs), bool)
    }
    annotations = ToolAnnotations(**hints)
    first = schemas[0]
    agreed = all((one.output_schema, one.wraps) == (first.output_schema, first.wraps) for one in schemas)
    return ToolSpec(
        name=locked.name,
        tool_id=canonical(locked.server, locked.tool),
        title=locked.title,
        description=locked.description,
        input_schema=united([one.input_schema for one in schemas]),
        result_schema=first.output_schema if agreed else None,
        rules=RunRules(
            modes=(Mode.TWO_WAY, Mode.ONE_WAY),
            default_mode=Mode.TWO_WAY,
            execution_modes=(ExecutionMode.INLINE, ExecutionMode.HEADLESS),
            timeout_ms=locked.timeout_ms,
            max_attempts=REPEATABLE_ATTEMPTS if annotations.repeatable else 1,
        ),
        annotations=annotations,
        icons=locked.icons,
        metadata={
            **locked.meta,
            ORIGIN: {
                "server": locked.server,
                "tool": locked.tool,
                "qualifiedName": locked.qualified,
            },
        },
        wraps_result=agreed and first.wraps,
    )


def united(schemas: list[JsonObject]) -> JsonObject:
    """One schema that takes what any of them takes; itself where they are the same."""
    first = schemas[0]
    if all(schema == first for schema in schemas):
        return {"properties": {}, **first}
    properties: JsonObject = {}
    for schema in schemas:
        for name, part in schema.get("properties", {}).items():
            known = properties.setdefault(name, part)
            if known != part:
                properties[name] = {}
    required = set(first.get("required", ())).intersection(*(schema.get("required", ()) for schema in schemas))
    # Parts may point at definitions, which the scopes need not share: those of all are kept where they agree.
    definitions: JsonObject = {}
    for schema in schemas:
        for name, part in schema.get("$defs", {}).items():
            if definitions.setdefault(name, part) != part:
                return {"type": "object", "properties": {name: {} for name in properties}}
    merged: JsonObject = {"type": "object", "properties": properties}
    if required:
        merged["required"] = sorted(required)
    return merged | ({"$defs": definitions} if definitions else {})


def _prompt(locked: LockedPrompt, caller: Caller) -> DecoratedPrompt:
    async def get(**arguments: str | None) -> list[Any]:
        return await caller.prompt(locked, arguments)

    spec = PromptSpec(
        name=locked.name,
        title=locked.title or None,
        description=locked.description,
        arguments=tuple(_parameter(argument) for argument in locked.arguments),
        icons=None,
        metadata=None,
        plain=False,
    )
    return DecoratedPrompt(spec, get)


def _parameter(argument: JsonObject) -> TextParameter:
    return TextParameter(
        name=str(argument["name"]),
        description=str(argument.get("description") or "") or None,
        required=argument.get("required") is True,
        none_when_absent=False,
    )
