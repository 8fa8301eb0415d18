"""`upstream.lock.json`: the tools and prompts of other servers as they were when `dev.py upstream sync` ran.

The app publishes what stands here, so that loading it needs no network, no configuration and no library. The
file is sorted and holds no secrets: it is meant to be reviewed and committed.

    {"version": 1,
     "names": "safe" | "dotted",
     "tools": [{"name": published name, "server": key, "tool": name at the server, "title", "description",
                "timeoutMs", "disabled"?, "annotations"?, "icons"?, "meta"?, "notes"?: [text],
                "scopes": {scope: {"hash", "inputSchema", "outputSchema"?, "wraps"?}}}],
     "prompts": [{"name", "server", "prompt", "title", "description", "arguments": [...],
                  "scopes": {scope: {"hash"}}}]}

A scope is `global` or `project:NAME`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from shared.errors import ConfigError
from shared.tool.spec import JsonObject
from shared.upstream.model import UpstreamTool

LOCK_FILE: Final = "upstream.lock.json"
VERSION: Final = 1
GLOBAL: Final = "global"
_PROJECT: Final = "project:"


def scope_of(project: str | None) -> str:
    """The scope's name in the lock file: of a project, or for None the global one."""
    return GLOBAL if project is None else _PROJECT + project


def project_of(scope: str) -> str | None:
    return scope[len(_PROJECT) :] if scope.startswith(_PROJECT) else None


def digest(*parts: Any) -> str:
    """A hash over JSON values that is the same for the same values, in whatever order their keys stand."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of(tool: UpstreamTool) -> str:
    """Over everything of a tool that an agent is told, or that decides how it may be called."""
    return digest(
        tool.name,
        tool.title,
        tool.description,
        tool.input_schema,
        tool.output_schema,
        tool.annotations,
    )


@dataclass(frozen=True, slots=True)
class Schemas:
    """What one scope's server said of a tool, made publishable."""

    #: Over everything that the server said of the tool.
    hash: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    #: Whether the output schema puts what the server sends under `result`, since that may be no object.
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class LockedTool:
    """A tool of another server."""

    #: The name that it is published under.
    name: str
    #: The server's key: its normalised name.
    server: str
    #: The tool's name at the server.
    tool: str
    title: str
    description: str
    #: Scope -> what the server of that scope said.
    scopes: Mapping[str, Schemas]
    timeout_ms: int
    disabled: bool = False
    annotations: JsonObject = field(default_factory=dict)
    icons: tuple[JsonObject, ...] = ()
    meta: JsonObject = field(default_factory=dict)
    #: What had to be changed so that it can be published.
    notes: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True, slots=True)
class LockedPrompt:
    """A prompt of another server."""

    name: str
    server: str
    prompt: str
    title: str
    description: str
    #: `{"name", "description"?, "required"?}`, as the server gave them.
    arguments: tuple[JsonObject, ...]
    #: Scope -> hash.
    scopes: Mapping[str, str]

    @property
    def qualified(self) -> str:
        return f"{self.server}.{self.prompt}"


@dataclass(frozen=True, slots=True)
class Lock:
    """Everything that is locked."""

    names: str = "safe"
    tools: tuple[LockedTool, ...] = ()
    prompts: tuple[LockedPrompt, ...] = ()

    def to_text(self) -> str:
        """The file's content. The same lock always gives the same text."""
        tools = sorted(self.tools, key=lambda one: (one.server, one.tool))
        prompts = sorted(self.prompts, key=lambda one: (one.server, one.prompt))
        body = {
            "version": VERSION,
            "names": self.names,
            "tools": [_tool_json(one) for one in tools],
            "prompts": [_prompt_json(one) for one in prompts],
        }
        text = json.dumps(body, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        # Half a character, which JSON can carry and no file can.
        return text.encode("utf-8", "replace").decode("utf-8")


def read(path: Path) -> Lock:
    """The lock; an empty one where there is no file. Raises `ConfigError`."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(LOCK_FILE, f"cannot be read: {type(error).__name__}") from None
    return parse(text)


def parse(text: str) -> Lock:
    """The lock in a file's text. Raises `ConfigError`: what sync wrote can be read, so somebody changed it."""
    try:
        body = json.loads(text)
        if body["version"] != VERSION:
            raise ConfigError(LOCK_FILE, f"has version {body['version']!r}, this app reads {VERSION}; {_AGAIN}")
        return Lock(
            body["names"],
            tuple(_tool_of(one) for one in body["tools"]),
            tuple(_prompt_of(one) for one in body["prompts"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else "is no JSON of the form that sync writes"
        raise ConfigError(LOCK_FILE, f"{reason}; {_AGAIN}") from None


_AGAIN: Final = "make it again with `python3 dev.py upstream sync`"


def _tool_json(one: LockedTool) -> JsonObject:
    body: JsonObject = {
        "name": one.name,
        "server": one.server,
        "tool": one.tool,
        "title": one.title,
        "description": one.description,
        "timeoutMs": one.timeout_ms,
        "scopes": {scope: _schemas_json(schemas) for scope, schemas in one.scopes.items()},
    }
    extra = {
        "disabled": one.disabled,
        "annotations": one.annotations,
        "icons": list(one.icons),
        "meta": one.meta,
        "notes": list(one.notes),
    }
    return body | {key: value for key, value in extra.items() if value}


def _schemas_json(schemas: Schemas) -> JsonObject:
    body: JsonObject = {"hash": schemas.hash, "inputSchema": schemas.input_schema}
    if schemas.output_schema is not None:
        body["outputSchema"] = schemas.output_schema
    return body | ({"wraps": True} if schemas.wraps else {})


def _prompt_json(one: LockedPrompt) -> JsonObject:
    return {
        "name": one.name,
        "server": one.server,
        "prompt": one.prompt,
        "title": one.title,
        "description": one.description,
        "arguments": list(one.arguments),
        "scopes": {scope: {"hash": value} for scope, value in one.scopes.items()},
    }


def _tool_of(body: JsonObject) -> LockedTool:
    if not body["scopes"]:
        raise KeyError("scopes")
    return LockedTool(
        name=_text(body["name"]),
        server=_text(body["server"]),
        tool=_text(body["tool"]),
        title=_text(body["title"]),
        description=_text(body["description"]),
        scopes={
            _text(scope): Schemas(
                _text(schemas["hash"]),
                _object(schemas["inputSchema"]),
                schemas.get("outputSchema"),
                schemas.get("wraps") is True,
            )
            for scope, schemas in body["scopes"].items()
        },
        timeout_ms=int(body["timeoutMs"]),
        disabled=body.get("disabled") is True,
        annotations=_object(body.get("annotations", {})),
        icons=tuple(body.get("icons", ())),
        meta=_object(body.get("meta", {})),
        notes=tuple(body.get("notes", ())),
    )


def _prompt_of(body: JsonObject) -> LockedPrompt:
    return LockedPrompt(
        name=_text(body["name"]),
        server=_text(body["server"]),
        prompt=_text(body["prompt"]),
        title=_text(body["title"]),
        description=_text(body["description"]),
        arguments=tuple(_object(one) for one in body["arguments"]),
        scopes={_text(scope): _text(value["hash"]) for scope, value in body["scopes"].items()},
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError
    return value
