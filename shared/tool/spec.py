"""What a tool is: the values that a declaration comes down to, whatever form it was written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from shared.errors import DeclarationError
from shared.text import shape_of

type JsonObject = dict[str, Any]

DEFAULT_TIMEOUT_MS: Final = 120_000
#: A person needs longer than a program.
DEFAULT_WINDOW_TIMEOUT_MS: Final = 900_000
#: Attempts of a tool that may run again after a lost worker without doing anything twice.
REPEATABLE_ATTEMPTS: Final = 3
MAX_ATTEMPTS_LIMIT: Final = 10
#: The property under which a result that is no object is published and sent.
RESULT_KEY: Final = "result"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SEMANTIC_TIMEOUT_LIMIT_MS = 86_400_000


class Mode(StrEnum):
    """Whether the caller waits for the result."""

    #: Answered with an acceptance at once.
    ONE_WAY = "one-way"
    #: Answered with the result.
    TWO_WAY = "two-way"


class ExecutionMode(StrEnum):
    """Where the work is done."""

    #: In the call itself.
    INLINE = "inline"
    #: As a stored job, by a worker.
    HEADLESS = "headless"
    #: By a person, in a window.
    WINDOWED = "windowed"


class Isolation(StrEnum):
    """What a headless run shares with the worker."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hints about a tool's effects, as the MCP specification names them. None: not stated."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    def to_wire(self) -> JsonObject:
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: value for name, value in hints.items() if value is not None}

    @property
    def repeatable(self) -> bool:
        """Whether a second run after a lost worker does no harm."""
        return bool(self.read_only or self.idempotent)


@dataclass(frozen=True, slots=True)
class RunRules:
    """How a tool may be run: the `agents` section of a contract, or the arguments of `@tool`."""

    modes: tuple[Mode, ...] = (Mode.TWO_WAY,)
    #: None: not declared; the mode is then inferred (see `resolve_mode`).
    default_mode: Mode | None = None
    execution_modes: tuple[ExecutionMode, ...] = (ExecutionMode.INLINE,)
    default_execution_mode: ExecutionMode = ExecutionMode.INLINE
    #: Per attempt; None: the default of 120 s.
    timeout_ms: int | None = None
    max_attempts: int = 1
    isolation: Isolation = Isolation.THREAD
    #: How long a window waits for a person; None: `timeout_ms`, else the app's setting.
    window_timeout_ms: int | None = None
    #: Methods of the APIs that its page may call beside those that read: `dataverseAPI.update`.
    window_methods: tuple[str, ...] = ()

    def resolve_mode(self, *, returns_data: bool) -> Mode:
        """The mode of a call that names none. A declared default always wins."""
        if self.default_mode is not None:
            return self.default_mode
        if not returns_data and Mode.ONE_WAY in self.modes:
            return Mode.ONE_WAY
        return Mode.TWO_WAY if Mode.TWO_WAY in self.modes else self.modes[0]

    @property
    def may_outlive_call(self) -> bool:
        """Whether a call may be answered with something else than the tool's own result."""
        return self.execution_modes != (ExecutionMode.INLINE,) or Mode.ONE_WAY in self.modes

    @property
    def has_window(self) -> bool:
        return ExecutionMode.WINDOWED in self.execution_modes

    @property
    def runs_apart_only(self) -> bool:
        """Whether the tool's code never runs in the app's own process."""
        return self.isolation is Isolation.PROCESS and ExecutionMode.INLINE not in self.execution_modes


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool, complete and immutable. Holds no function: those are loaded at the first call."""

    #: The name that agents call (the slug).
    name: str
    #: Who the tool is inside the app: a package name, a folder, an npm id.
    tool_id: str
    title: str
    description: str
    #: JSON Schema of the arguments, root `type: object`, without `__pptb`.
    input_schema: JsonObject
    #: JSON Schema of the structured result, root `type: object`; None: none is promised.
    result_schema: JsonObject | None
    rules: RunRules = field(default_factory=RunRules)
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    capabilities: tuple[str, ...] = ()
    icons: tuple[JsonObject, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    #: Whether the result schema is `{"result": …}` around what the tool returns, whatever that is.
    wraps_result: bool = False

    @property
    def function_name(self) -> str:
        """The Azure function's name: letters, digits, `_` and `-`, beginning with a letter."""
        return "tool_" + re.sub(r"[^A-Za-z0-9_-]", "_", self.name)

    @property
    def timeout_ms(self) -> int:
        return self.rules.timeout_ms or DEFAULT_TIMEOUT_MS


def check_name(name: str) -> str:
    """The name, if clients accept it. Raises `DeclarationError`."""
    if not _NAME.fullmatch(name):
        raise DeclarationError(
            f"a name must be 1 to 64 of the characters A-Z a-z 0-9 _ . -, not {shape_of(name)}"
        )
    return name


def make_rules(
    *,
    modes: tuple[str, ...] | None = None,
    default_mode: str | None = None,
    execution_modes: tuple[str, ...] | None = None,
    default_execution_mode: str | None = None,
    timeout_ms: int | None = None,
    max_attempts: int | None = None,
    isolation: str = Isolation.THREAD,
    annotations: ToolAnnotations | None = None,
) -> RunRules:
    """Checks how a tool may be run, with the rules of a contract's `agents` section.

    Raises `DeclarationError` that names every wrong option and the legal values.
    """
    faults: list[str] = []
    legal_modes = _choices("modes", modes, Mode, (Mode.TWO_WAY,), faults)
    default = None if default_mode is None else _choice("default_mode", default_mode, Mode, faults)
    if default is not None and legal_modes and default not in legal_modes:
        faults.append(f"default_mode '{default}' is not among its modes")
    legal_executions = _choices(
        "execution_modes", execution_modes, ExecutionMode, (ExecutionMode.INLINE,), faults
    )
    execution = next(iter(legal_executions), ExecutionMode.INLINE)
    if default_execution_mode is not None:
        asked = _choice("default_execution_mode", default_execution_mode, ExecutionMode, faults)
        if asked is not None and legal_executions and asked not in legal_executions:
            faults.append(f"default_execution_mode '{asked}' is not among its execution modes")
        execution = asked or execution
    attempts = max_attempts
    if attempts is None:
        attempts = REPEATABLE_ATTEMPTS if annotations and annotations.repeatable else 1
    rules = RunRules(
        modes=legal_modes,
        default_mode=default,
        execution_modes=legal_executions,
        default_execution_mode=execution,
        timeout_ms=_whole("timeout_ms", timeout_ms, _SEMANTIC_TIMEOUT_LIMIT_MS, faults),
        max_attempts=_whole("max_attempts", attempts, MAX_ATTEMPTS_LIMIT, faults) or 1,
        isolation=_choice("isolation", isolation, Isolation, faults) or Isolation.THREAD,
    )
    if faults:
        raise DeclarationError("; ".join(faults))
    return rules


def _choice[E: StrEnum](option: str, value: str, kind: type[E], faults: list[str]) -> E | None:
    try:
        return kind(value)
    except ValueError:
        legal = ", ".join(f"'{member}'" for member in kind)
        faults.append(f"{option} must be one of {legal}, not {value!r}")
        return None


def _choices[E: StrEnum](
    option: str, values: tuple[str, ...] | None, kind: type[E], assumed: tuple[E, ...], faults: list[str]
) -> tuple[E, ...]:
    """Empty: none of them is legal."""
    if values is None:
        return assumed
    if not values:
        faults.append(f"{option} must not be empty")
    chosen = [_choice(option, value, kind, faults) for value in values]
    return tuple(dict.fromkeys(member for member in chosen if member is not None))


def _whole(option: str, value: int | None, limit: int, faults: list[str]) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= limit:
        faults.append(f"{option} must be a whole number from 1 to {limit}, not {value!r}")
        return None
    return value


def returns_data(spec: ToolSpec) -> bool:
    """Whether the tool promises structured data, as a contract's `returnTopic` with properties does."""
    schema: Mapping[str, Any] = spec.result_schema or {}
    return bool(schema.get("properties") or schema.get("additionalProperties") or schema.get("anyOf"))
