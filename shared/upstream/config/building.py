"""An entry -> `ServerConfig`, or everything that is wrong with it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from shared.errors import ConfigError, MissingTransportFieldError
from shared.tool.validation import kind_of
from shared.upstream.config import guard
from shared.upstream.config.command import found_on_machine, split_args, split_command
from shared.upstream.config.entries import Entry, Form
from shared.upstream.config.env_file import EnvFiles
from shared.upstream.config.environment import variable_fault
from shared.upstream.config.faults import ConfigFault, ConfigWarning, Notes, Scope, listed, shown
from shared.upstream.config.fields import TransportType, collect, note_foreign, transport_of
from shared.upstream.config.model import ServerConfig, described
from shared.upstream.config.substitution import substitute_all
from shared.upstream.settings import UpstreamSettings

#: Fields whose texts may hold `${VAR}`.
_WITH_VARIABLES: Final = ("args", "env", "env_file", "url", "headers", "config")
_NPM_PACKAGE = re.compile(r"@[a-z0-9][\w.-]*/[a-z0-9][\w.-]*(?:@[\w.^~-]+)?")
#: How servers are called on PyPI, or a requirement that only Python writes.
_PYTHON_PACKAGE = re.compile(r"(?:mcp[-_]server[-_][\w.-]+|[A-Za-z0-9][\w.-]*(?:\[[\w,-]+\])?==[\w.]+)")
_IMAGE = re.compile(
    r"[a-z0-9][a-z0-9._-]*(?::\d+)?(?:/[a-z0-9][a-z0-9._-]*)+(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands, and what it is read with. `folder`: where relative file names begin.

    `env_files`: reads those that it names, and knows afterwards which they were.
    """

    settings: UpstreamSettings
    environ: Mapping[str, str]
    folder: Path
    scope: Scope = Scope.GLOBAL
    project: str | None = None
    env_files: EnvFiles = dataclasses.field(default_factory=EnvFiles)


@dataclass(frozen=True, slots=True)
class Built:
    """`config`: None when there are faults."""

    config: ServerConfig | None
    faults: tuple[ConfigFault, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()


def build(entry: Entry, key: str, place: Place, disabled_tools: tuple[str, ...] = ()) -> Built:
    """`key`: the normalised name; `disabled_tools`: those that another scope has switched off already."""
    notes = Notes()
    config = None
    if entry.broken is not None:
        notes.fault(entry.place, entry.broken)
    else:
        config = _Builder(entry, key, place, notes).config(disabled_tools)
    return Built(
        None if notes.errors else config,
        notes.faults_of(entry.label, place.scope, place.project, key),
        notes.warnings_of(entry.label, place.scope, place.project, key),
    )


class _Builder:
    """One entry on its way. Faults are collected, so that all of them are told at once."""

    def __init__(self, entry: Entry, key: str, place: Place, notes: Notes) -> None:
        self.entry, self.key, self.place, self.notes = entry, key, place, notes
        self.strict = entry.form is Form.TOOLS
        self.fields: dict[str, Any] = {}

    def config(self, disabled_tools: tuple[str, ...]) -> ServerConfig | None:
        self.fields = collect(self.entry.body, self.notes, strict=self.strict)
        self.fields["name"] = self.entry.label if isinstance(self.entry.name, str) else self.entry.name
        if self.fields.get("disabled") is True:
            return self._disabled(disabled_tools)
        transport = transport_of(self.fields, self.notes, strict=self.strict)
        self._server()
        self._command(transport)
        if transport is not None:
            for key in note_foreign(self.fields, transport, self.notes):
                # Program and URL are checked wherever they stand; the rest is as if it were not there.
                if key not in ("command", "url"):
                    del self.fields[key]
        self._variables()
        if transport is TransportType.STDIO:
            self._env_file()
            self._environment()
            self._arguments()
        if transport is not None:
            self._required(transport)
            self.fields["transport"] = transport
        if self.fields.get("verify") is False:
            self.notes.warn("verify", "TLS certificates of this server are not checked")
        return self._validated(disabled_tools)

    def _disabled(self, disabled_tools: tuple[str, ...]) -> ServerConfig | None:
        """A server that is switched off needs nothing but its name, and its variables may be missing."""
        kept = ("name", "description", "server", "disabled", "disabled_tools", "load_tools", "load_prompts")
        ignored = Notes()
        transport = transport_of(dict(self.fields), ignored, strict=self.strict)
        self.fields = {key: value for key, value in self.fields.items() if key in kept}
        self.fields["transport"] = transport or TransportType.STDIO
        self.fields.setdefault("server", self.entry.name)
        return self._validated(disabled_tools)

    def _server(self) -> None:
        server = self.fields.get("server")
        if "server" not in self.fields:
            if self.strict:
                self.notes.fault("server", "is required")
            self.fields["server"] = self.entry.name
        elif isinstance(server, str) and not server.strip():
            self.notes.fault("server", "must be a non-empty identifier")

    def _command(self, transport: TransportType | None) -> None:
        """Splits the command line of an `mcpServers` entry, finds a missing one, and checks the program."""
        command, args = self.fields.get("command"), self.fields.get("args")
        if command is None and transport is TransportType.STDIO and "url" not in self.fields:
            self._infer(self.fields["server"], args)
            return
        if command is None:
            self.fields.pop("command", None)
            return
        legal = guard.allowed(() if self.strict else self.place.settings.commands)
        if not self.strict:
            try:
                command, leading = split_command(
                    command, args, lambda text: text in legal or found_on_machine(text)
                )
            except ConfigError as error:
                self.notes.errors.append(error)
                self.fields.pop("command")
                return
            if isinstance(args, list) and all(isinstance(item, str) for item in args):
                args = split_args(args)
            if leading or isinstance(args, list):
                self.fields["args"] = [*leading, *args] if isinstance(args, list) else args or leading
            if not command:
                # Empty is as good as not there: the fault says what is missing.
                self.fields.pop("command")
                return
            self.fields["command"] = command
        if command not in legal:
            said = f"'{shown(command)}'" if isinstance(command, str) else f"of the kind {kind_of(command)}"
            self.notes.fault("command", f"Invalid command {said}. Supported commands: {listed(legal)}")

    def _infer(self, server: Any, args: Any) -> None:
        """The program for an entry that only says what the server is, by the form of that name."""
        self.fields.pop("command", None)
        if not isinstance(server, str) or not isinstance(args, list | None):
            return
        args = list(args or [])
        if _NPM_PACKAGE.fullmatch(server):
            command, leading = guard.CommandType.NPX, ["-y", server]
        elif _PYTHON_PACKAGE.fullmatch(server):
            command, leading = guard.CommandType.UVX, [server]
        elif _IMAGE.fullmatch(server):
            command, leading = guard.CommandType.DOCKER, ["run", "-i", "--rm", server]
        else:
            return
        self.fields["command"] = command.value
        self.fields["args"] = args if server in args else [*leading, *args]
        self.notes.warn("command", f"is not given; {command} is inferred from the form of 'server'")

    def _variables(self) -> None:
        for key in _WITH_VARIABLES:
            if key not in self.fields:
                continue
            value, errors = substitute_all(self.fields[key], self.place.environ, key)
            self.notes.errors += errors
            if errors:
                # What it would have been cannot be judged any further; it is there, though.
                self.fields[key] = None
            else:
                self.fields[key] = value

    def _env_file(self) -> None:
        name = self.fields.get("env_file")
        if not isinstance(name, str):
            return
        try:
            self.fields["env_file_values"] = self.place.env_files.read(self.place.folder / name)
        except ConfigError as error:
            self.notes.errors.append(error)

    def _environment(self) -> None:
        for field, where in (("env", "env"), ("env_file_values", "env_file")):
            values = self.fields.get(field)
            if not isinstance(values, dict):
                continue
            for name, value in values.items():
                if isinstance(name, str) and isinstance(value, str):
                    fault = variable_fault(name, value)
                    if fault is not None:
                        self.notes.fault(f"{where}.{shown(name) if name else ''}", fault)

    def _arguments(self) -> None:
        command, args = self.fields.get("command"), self.fields.get("args", [])
        if not isinstance(command, str) or not isinstance(args, list):
            return
        if not all(isinstance(item, str) for item in args):
            return
        for fault in guard.argument_faults(command, args, self.place.settings.root):
            self.notes.fault("args", fault)

    def _required(self, transport: TransportType) -> None:
        field = "command" if transport is TransportType.STDIO else "url"
        failed = any(error.field == field for error in self.notes.errors)
        if field not in self.fields and not failed:
            self.notes.errors.append(MissingTransportFieldError(field, transport))

    def _validated(self, disabled_tools: tuple[str, ...]) -> ServerConfig | None:
        given = {key: value for key, value in self.fields.items() if value is not None or key in _NEVER_NULL}
        given |= {
            "key": self.key,
            "form": self.entry.form,
            "scope": self.place.scope,
            "project": self.place.project,
        }
        if isinstance(given.get("command"), list | dict | int | float):
            # Named already, with the legal programs.
            del given["command"]
        if isinstance(self.entry.name, str):
            given.setdefault("description", f"Tools of the MCP server '{self.entry.label}'.")
        own = given.get("disabled_tools")
        if disabled_tools and isinstance(own, list | None):
            given["disabled_tools"] = [*disabled_tools, *(own or [])]
        try:
            return ServerConfig.model_validate(given)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_context=False):
                field, message = described(one)
                self.notes.fault(field, message)
            return None


#: A null in these is a fault of its own; in all others it means "not given".
_NEVER_NULL: Final = frozenset({"name", "load_tools", "load_prompts", "request_timeout", "disabled", "verify"})
