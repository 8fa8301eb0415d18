"""host.json: the parts that this host obeys, with the real host's names, defaults and limits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.host.errors import HostError
from infra.local.host.settings import load_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TIMESPAN = re.compile(r"(?:(\d+)\.)?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d{1,7})?)?")
_OVERRIDE = "AzureFunctionsJobHost__"

DEFAULT_FUNCTION_TIMEOUT = 30 * 60.0  # seconds; what the Flex Consumption, Premium and Dedicated plans have
DEFAULT_SERVER_NAME = "Azure Functions MCP server"
DEFAULT_SERVER_VERSION = "1.0.0"
DEFAULT_BODY_LIMIT = 104_857_600  # bytes


@dataclass(frozen=True, slots=True)
class McpOptions:
    """``extensions.mcp``."""

    server_name: str = DEFAULT_SERVER_NAME
    server_version: str = DEFAULT_SERVER_VERSION
    instructions: str | None = None
    anonymous: bool = False  # system.webhookAuthorizationLevel


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """``extensions.queues``. Times are seconds."""

    batch_size: int = 16
    new_batch_threshold: int = 8
    max_polling_interval: float = 60.0
    visibility_timeout: float = 0.0  # after a failure only
    max_dequeue_count: int = 5
    base64: bool = True  # messageEncoding


@dataclass(frozen=True, slots=True)
class HostConfig:
    """A parsed host.json. ``function_timeout`` is seconds, None means unbounded."""

    route_prefix: str = "api"
    function_timeout: float | None = DEFAULT_FUNCTION_TIMEOUT
    mcp: McpOptions = McpOptions()
    queues: QueueOptions = QueueOptions()
    log_level: str = "Information"


def parse_timespan(text: str, where: str) -> float:
    """Seconds of a .NET TimeSpan: ``[d.]hh:mm[:ss[.fffffff]]``."""
    match = _TIMESPAN.fullmatch(text.strip())
    if match is None or int(match[2]) > 23 or int(match[3]) > 59 or int(match[4] or 0) > 59:
        raise HostError(f"{where} must be a time span like 00:05:00, not {text!r}.")
    days, hours, minutes, seconds = (int(part or 0) for part in match.group(1, 2, 3, 4))
    return days * 86_400 + hours * 3_600 + minutes * 60 + seconds + float(match[5] or 0)


def load_config(app_dir: Path, environment: Mapping[str, str]) -> HostConfig:
    """Read APP_DIR/host.json and the ``AzureFunctionsJobHost__a__b`` settings that override it.

    Raises HostError with the key and what it may be.
    """
    path = app_dir / "host.json"
    if not path.is_file():
        raise HostError(f"{app_dir} has no host.json: it is not a Functions app.")
    data = _Section(load_json(path), "host.json")
    for name, value in environment.items():
        if name.lower().startswith(_OVERRIDE.lower()):
            data.put(name[len(_OVERRIDE) :].split("__"), value)
    if data.get("version") != "2.0":
        raise HostError('host.json must say "version": "2.0".')
    extensions = data.section("extensions")
    return HostConfig(
        route_prefix=extensions.section("http").text("routePrefix", "api").strip("/"),
        function_timeout=_function_timeout(data),
        mcp=_mcp(extensions.section("mcp")),
        queues=_queues(extensions.section("queues"), environment),
        log_level=data.section("logging").section("logLevel").text("default", "Information"),
    )


def body_limit(environment: Mapping[str, str]) -> int:
    """The largest request body in bytes (FUNCTIONS_REQUEST_BODY_SIZE_LIMIT)."""
    text = environment.get("FUNCTIONS_REQUEST_BODY_SIZE_LIMIT") or str(DEFAULT_BODY_LIMIT)
    if not text.isascii() or not text.isdigit():
        raise HostError(f"FUNCTIONS_REQUEST_BODY_SIZE_LIMIT must be a number of bytes, not {text!r}.")
    return int(text)


def _function_timeout(data: _Section) -> float | None:
    text = data.text("functionTimeout", "")
    if text == "-1":
        return None
    if not text:
        return DEFAULT_FUNCTION_TIMEOUT
    seconds = parse_timespan(text, "functionTimeout in host.json")
    if seconds < 1:
        raise HostError("functionTimeout in host.json must be at least one second.")
    return seconds


def _mcp(section: _Section) -> McpOptions:
    level = section.section("system").text("webhookAuthorizationLevel", "System")
    if level.lower() not in {"system", "anonymous"}:
        raise HostError(
            f"extensions.mcp.system.webhookAuthorizationLevel must be System or Anonymous, not {level!r}."
        )
    return McpOptions(
        server_name=section.text("serverName", DEFAULT_SERVER_NAME),
        server_version=section.text("serverVersion", DEFAULT_SERVER_VERSION),
        instructions=section.text("instructions", "") or None,
        anonymous=level.lower() == "anonymous",
    )


def _queues(section: _Section, environment: Mapping[str, str]) -> QueueOptions:
    development = environment.get("AZURE_FUNCTIONS_ENVIRONMENT", "").lower() == "development"
    batch_size = section.number("batchSize", 16, low=1, high=32)
    encoding = section.text("messageEncoding", "base64").lower()
    if encoding not in {"base64", "none"}:
        raise HostError(f"{section.path}.messageEncoding must be base64 or none, not {encoding!r}.")
    return QueueOptions(
        batch_size=batch_size,
        new_batch_threshold=section.number(
            "newBatchThreshold", batch_size // 2 * (os.process_cpu_count() or 1), low=0
        ),
        max_polling_interval=section.seconds("maxPollingInterval", 2.0 if development else 60.0, low=0.1),
        visibility_timeout=section.seconds("visibilityTimeout", 0.0),
        max_dequeue_count=section.number("maxDequeueCount", 5, low=1),
        base64=encoding == "base64",
    )


class _Section:
    """An object of host.json with case-insensitive names and errors that say where."""

    def __init__(self, data: dict[str, Any], path: str) -> None:
        self._data = data
        self.path = path

    def _name(self, key: str) -> str:
        return next((name for name in self._data if name.lower() == key.lower()), key)

    def get(self, key: str) -> Any:
        return self._data.get(self._name(key))

    def put(self, keys: list[str], value: str) -> None:
        """Set a nested value, as the overriding settings do."""
        data, name = self._data, self._name(keys[0])
        if len(keys) == 1:
            data[name] = value
            return
        if not isinstance(data.get(name), dict):
            data[name] = {}
        _Section(data[name], self.path).put(keys[1:], value)

    def section(self, key: str) -> _Section:
        value = self.get(key)
        if value is not None and not isinstance(value, dict):
            raise HostError(f"{self.path}: {key} must be an object.")
        return _Section(value or {}, f"{self.path}.{key}" if self.path != "host.json" else key)

    def text(self, key: str, default: str) -> str:
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, dict | list):
            raise HostError(f"{self.path}: {key} must be a string.")
        return str(value)

    def number(self, key: str, default: int, low: int, high: int = 2**31 - 1) -> int:
        text = self.text(key, str(default))
        number = int(text) if re.fullmatch(r"-?\d{1,10}", text) else None
        if number is None or not low <= number <= high:
            limit = f"from {low} to {high}" if high < 2**31 - 1 else f"of at least {low}"
            raise HostError(f"{self.path}.{key} must be a number {limit}, not {text!r}.")
        return number

    def seconds(self, key: str, default: float, low: float = 0.0) -> float:
        value = self.get(key)
        if value is None:
            return default
        seconds = parse_timespan(str(value), f"{self.path}.{key}")
        if seconds < low:
            raise HostError(f"{self.path}.{key} must be at least {low} s.")
        return seconds
