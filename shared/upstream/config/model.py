"""`ServerConfig`: one server as it is connected to, whichever form it was written in."""

from __future__ import annotations

import codecs
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from shared.tool.validation import kind_of
from shared.upstream.config.entries import Form
from shared.upstream.config.faults import Scope
from shared.upstream.config.fields import TransportType
from shared.upstream.config.guard import CommandType
from shared.upstream.config.urls import header_faults, url_fault
from shared.upstream.settings import UpstreamSettings

__all__ = ["CommandType", "ErrorHandler", "Scope", "ServerConfig", "TransportType"]

#: HoloDeck's `request_timeout` for `type: mcp` entries that say nothing, seconds.
DEFAULT_REQUEST_TIMEOUT: Final = 60.0
#: The variable that holds `config` as JSON.
CONFIG_VARIABLE: Final = "MCP_CONFIG"
#: Fingerprints cannot be turned back, or compared with guesses: the key is this process's own.
_FINGERPRINT_KEY: Final = secrets.token_bytes(32)


class ErrorHandler(StrEnum):
    """What becomes of bytes that `encoding` does not know."""

    STRICT = "strict"
    IGNORE = "ignore"
    REPLACE = "replace"


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "must be a number, not boolean")
    if isinstance(value, float) and not math.isfinite(value):
        raise PydanticCustomError("number", "must be a finite number")
    return value


Seconds = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]
WholeSeconds = Annotated[int, BeforeValidator(_number), Field(gt=0)]


class ServerConfig(BaseModel):
    """A checked entry with its variables resolved. Times are seconds; None means "not given".

    `args`, `env`, `headers`, `url` and `config` may hold secrets: they are in no message and not in the repr.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    #: As written, and normalised: the key is unique among the servers of a call.
    name: str
    key: str
    form: Form = Form.SERVERS
    scope: Scope = Scope.GLOBAL
    #: The project of an entry with the scope `project`.
    project: str | None = None
    description: str = ""
    #: What the server is: a package, an image, a path; the name when the entry does not say.
    server: str = ""
    transport: TransportType = TransportType.STDIO
    command: str | None = None
    args: tuple[str, ...] = Field(default=(), repr=False)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    env_file: str | None = None
    #: What was read from `env_file`.
    env_file_values: dict[str, str] = Field(default_factory=dict, repr=False)
    encoding: str = "utf-8"
    encoding_error_handler: ErrorHandler = ErrorHandler.STRICT
    url: str | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    #: The transport's own patience: to connect, and between two events of a stream.
    timeout: Seconds | None = None
    sse_read_timeout: Seconds | None = None
    terminate_on_close: StrictBool | None = None
    #: Whether TLS certificates are checked.
    verify: StrictBool = True
    #: The server's own settings; a stdio server gets them as JSON in MCP_CONFIG.
    config: dict[str, Any] | None = Field(default=None, repr=False)
    load_tools: StrictBool = True
    load_prompts: StrictBool = True
    request_timeout: WholeSeconds | None = None
    init_timeout: Seconds | None = None
    tool_timeout: Seconds | None = None
    disabled: StrictBool = False
    disabled_tools: tuple[str, ...] = ()

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None and (fault := url_fault(url, info.data.get("transport"))) is not None:
            raise _fault(fault)
        return url

    @field_validator("args")
    @classmethod
    def _check_args(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        if any("\0" in arg for arg in args):
            raise _fault("must not hold a NUL character")
        return args

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, fault in header_faults(headers).items():
            raise _fault(f"a header {fault}" if not name.isprintable() else f"'{name[:64]}' {fault}")
        return headers

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise _fault("must be the name of a text encoding, like utf-8") from None
        return encoding

    @field_validator("config")
    @classmethod
    def _check_config(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            json.dumps(config, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise _fault("must be an object that JSON can carry, with finite numbers") from None
        return config

    @field_validator("disabled_tools")
    @classmethod
    def _trim_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name.strip() for name in names if name.strip()))

    def connect_timeout(self, settings: UpstreamSettings) -> float:
        """Seconds to connect, and for each listing: `init_timeout`, then the setting."""
        return self.init_timeout or settings.init_timeout

    def call_timeout(self, settings: UpstreamSettings, asked_ms: int | None = None) -> float:
        """Seconds for a call: `__pptb.timeoutMs`, `tool_timeout`, `request_timeout`, then the setting.

        A `type: mcp` entry that says nothing has HoloDeck's 60 s, unless an operator has set the setting.
        """
        if asked_ms is not None:
            return asked_ms / 1000
        given = self.tool_timeout or self.request_timeout
        if given is not None:
            return float(given)
        if self.form is Form.TOOLS and not settings.tool_timeout_given:
            return DEFAULT_REQUEST_TIMEOUT
        return settings.tool_timeout

    def environment(self) -> dict[str, str] | None:
        """What a stdio server is given on top of the defaults: `env_file`, then `env`, then MCP_CONFIG.

        None when there is nothing. Source: reference/mcp-clients.md 1.3.
        """
        found = {**self.env_file_values, **self.env}
        if self.config:
            found[CONFIG_VARIABLE] = json.dumps(self.config)
        return found or None

    @cached_property
    def fingerprint(self) -> str:
        """The same for two configurations that can share a connection, secrets included, and different else.

        It holds for this process only and tells nothing of what it was made from.
        """
        decides: Mapping[str, Any] = self.model_dump(
            mode="json",
            exclude={"scope", "project", "form", "description", "disabled", "disabled_tools", "env_file"},
        )
        text = json.dumps(decides, sort_keys=True)
        return hmac.new(_FINGERPRINT_KEY, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _fault(message: str) -> PydanticCustomError:
    # Without a template: a brace in the message is a brace.
    return PydanticCustomError("config", "{message}", {"message": message})


#: pydantic's kind of error -> what is legal.
_LEGAL: Final[Mapping[str, str]] = {
    "string_type": "must be text",
    "string_unicode": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be positive",
    "missing": "is required",
    "enum": "must be 'strict', 'ignore' or 'replace'",
}
#: Here the kind of the value is what is wrong.
_KIND_ERRORS: Final = ("_type", "_parsing")


def described(error: Mapping[str, Any]) -> tuple[str, str]:
    """(field as a path, message) of one of pydantic's errors. The value is named by its kind only."""
    path = [str(step) for step in error["loc"]]
    kind = str(error["type"])
    message = _LEGAL.get(kind, str(error["msg"]))
    if kind.endswith(_KIND_ERRORS):
        message += f", not {kind_of(error['input'])}"
        if kind == "string_type" and path[0] in ("args", "env", "headers"):
            message += "; write it in quotes"
    return ".".join(path), message
