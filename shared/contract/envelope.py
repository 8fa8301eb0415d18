"""`arguments.__pptb`: how a caller wants a call to be run.

It is taken out before the tool sees its input. Everything in it is optional; what is there must be legal, and a
fault names the field, the value's kind and the legal values. Null means absent.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

from shared.errors import EnvelopeError, UnsupportedModeError
from shared.text import shape_of
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.spec import (
    DEFAULT_WINDOW_TIMEOUT_MS,
    ExecutionMode,
    JsonObject,
    Mode,
    RunRules,
    ToolSpec,
)
from shared.tool.spec import returns_data as spec_returns_data
from shared.tool.validation import kind_of

MAX_TOKEN_LENGTH: Final = 16_384
MAX_KEY_LENGTH: Final = 200
_FIELDS: Final = (
    "mode",
    "executionMode",
    "timeoutMs",
    "authToken",
    "idempotencyKey",
    "connectionName",
    "connectionNames",
    "project",
)
#: Connections that one call may name.
MOST_CONNECTIONS: Final = 10
LEGAL_PROJECT: Final = "1 to 64 of the characters A-Z a-z 0-9 _ - with a letter or digit first"
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Envelope:
    """The options of one call as the caller gave them; None: not given."""

    mode: Mode | None = None
    execution_mode: ExecutionMode | None = None
    timeout_ms: int | None = None
    auth_token: str | None = field(default=None, repr=False)
    idempotency_key: str | None = None
    #: Names of saved connections, by slot.
    connections: tuple[str, ...] = ()
    #: Whose upstream servers are meant, beside the global ones.
    project: str | None = None
    #: What is illegal in it; `plan` refuses it.
    faults: str = ""


NOTHING_ASKED: Final = Envelope()


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How a call will be run: the caller's options, the tool's rules and the app's limits in one."""

    mode: Mode
    execution_mode: ExecutionMode
    timeout_ms: int
    auth_token: str | None = field(default=None, repr=False)
    idempotency_key: str | None = None
    #: Names of saved connections, by slot.
    connections: tuple[str, ...] = ()
    #: Whether the caller has named a timeout.
    timeout_asked: bool = False
    #: Whether the caller gave a token that such a call has no use for.
    token_unused: bool = False


def split(arguments: JsonObject) -> tuple[JsonObject, Envelope]:
    """(arguments without `__pptb`, its options).

    What is illegal in the options is for `plan` to tell: faults of the tool's own arguments come first, as in
    the original.
    """
    if ENVELOPE_KEY not in arguments:
        return arguments, NOTHING_ASKED
    own = {name: value for name, value in arguments.items() if name != ENVELOPE_KEY}
    raw = arguments[ENVELOPE_KEY]
    try:
        return own, parse(raw)
    except EnvelopeError as error:
        # The token is kept, so that it can be taken out of what is said about the rest.
        token = _text(raw, "authToken", MAX_TOKEN_LENGTH, []) if isinstance(raw, dict) else None
        return own, Envelope(auth_token=token, faults=error.message)


def parse(raw: Any) -> Envelope:
    """The options. Raises `EnvelopeError` with every fault."""
    if raw is None:
        return NOTHING_ASKED
    if not isinstance(raw, dict):
        raise EnvelopeError(f"{ENVELOPE_KEY}: expected object, got {kind_of(raw)}")
    given = {name: value for name, value in raw.items() if value is not None}
    faults = [
        f"{ENVELOPE_KEY}: unknown field '{name[:80]}'; known are {', '.join(_FIELDS)}"
        for name in given
        if name not in _FIELDS
    ]
    mode = _choice(given, "mode", Mode, faults)
    execution_mode = _choice(given, "executionMode", ExecutionMode, faults)
    timeout_ms = _timeout(given, faults)
    auth_token = _text(given, "authToken", MAX_TOKEN_LENGTH, faults)
    key = _text(given, "idempotencyKey", MAX_KEY_LENGTH, faults)
    connections = _connections(given, faults)
    project = _project(given, faults)
    if faults:
        raise EnvelopeError("; ".join(faults))
    return Envelope(mode, execution_mode, timeout_ms, auth_token, key, connections, project)


def plan(
    spec: ToolSpec,
    asked: Envelope,
    *,
    max_timeout_ms: int,
    inline_timeout_ms: int,
    window_timeout_ms: int = DEFAULT_WINDOW_TIMEOUT_MS,
) -> CallPlan:
    """What the call comes down to. `window_timeout_ms`: of a window for which nobody has named another time.

    Raises `EnvelopeError`, then `UnsupportedModeError`; of the modes, the execution mode is looked at first.
    """
    if asked.faults:
        raise EnvelopeError(asked.faults)
    rules: RunRules = spec.rules
    execution = asked.execution_mode or rules.default_execution_mode
    if execution not in rules.execution_modes:
        raise UnsupportedModeError(
            f"Requested execution mode '{execution}' is not supported. "
            f"Supported execution modes: {', '.join(rules.execution_modes)}"
        )
    mode = asked.mode or rules.resolve_mode(returns_data=spec_returns_data(spec))
    if mode not in rules.modes:
        raise UnsupportedModeError(
            f"Requested mode '{mode}' is not supported. Supported modes: {', '.join(rules.modes)}"
        )
    if execution is ExecutionMode.WINDOWED:
        ceiling = longest_window_ms(window_timeout_ms, max_timeout_ms)
        return _windowed(spec, asked, mode, window_timeout_ms, ceiling)
    in_call = execution is ExecutionMode.INLINE and mode is Mode.TWO_WAY
    if in_call and asked.idempotency_key is not None:
        headless = ExecutionMode.HEADLESS in rules.execution_modes
        hint = "set executionMode 'headless'" if headless else "this tool runs in the call itself"
        raise EnvelopeError(f"{ENVELOPE_KEY}.idempotencyKey: only a job can be found again by its key; {hint}")
    ceiling = inline_timeout_ms if in_call else max_timeout_ms
    timeout_ms = min(asked.timeout_ms or spec.timeout_ms, ceiling)
    return CallPlan(
        mode,
        execution,
        timeout_ms,
        asked.auth_token,
        asked.idempotency_key,
        asked.connections,
        timeout_asked=asked.timeout_ms is not None,
    )


def longest_window_ms(window_timeout_ms: int, max_timeout_ms: int) -> int:
    """How long a window can be open at most, whoever names its time: the app's settings say it, in ms."""
    return max(window_timeout_ms, max_timeout_ms)


def _windowed(spec: ToolSpec, asked: Envelope, mode: Mode, default_ms: int, ceiling_ms: int) -> CallPlan:
    """A window runs no code of a worker's, so no functionTimeout binds it. It is never given a token: its page
    is a stranger's code in a browser, and as in the original works with the connection's own credentials."""
    rules = spec.rules
    timeout_ms = asked.timeout_ms or rules.window_timeout_ms or rules.timeout_ms or default_ms
    return CallPlan(
        mode,
        ExecutionMode.WINDOWED,
        min(timeout_ms, ceiling_ms),
        None,
        asked.idempotency_key,
        asked.connections,
        timeout_asked=asked.timeout_ms is not None,
        token_unused=asked.auth_token is not None,
    )


def _choice[E: (Mode, ExecutionMode)](
    given: JsonObject, name: str, kind: type[E], faults: list[str]
) -> E | None:
    if name not in given:
        return None
    value = given[name]
    legal = [str(member) for member in kind]
    if isinstance(value, str) and value in legal:
        return kind(value)
    got = f"'{value[:40]}'" if isinstance(value, str) else kind_of(value)
    faults.append(f"{ENVELOPE_KEY}.{name}: must be one of {', '.join(legal)}, got {got}")
    return None


def _timeout(given: JsonObject, faults: list[str]) -> int | None:
    """Milliseconds. Any positive number is legal; what is longer than allowed is cut, and echoed."""
    value = given.get("timeoutMs")
    if value is None:
        return None
    legal = f"{ENVELOPE_KEY}.timeoutMs: must be a positive number of milliseconds"
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.append(f"{legal}, got {kind_of(value)}")
        return None
    if isinstance(value, float) and not math.isfinite(value):
        faults.append(f"{legal}, got a number that is not finite")
        return None
    if value <= 0:
        faults.append(f"{legal}, got {value if abs(value) < 1e15 else 'a negative number'}")
        return None
    return max(int(value), 1)


def _text(given: JsonObject, name: str, longest: int, faults: list[str]) -> str | None:
    """A text without the blanks around it."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        faults.append(f"{ENVELOPE_KEY}.{name}: expected string, got {kind_of(value)}")
        return None
    text = value.strip()
    if not text or len(text) > longest:
        faults.append(f"{ENVELOPE_KEY}.{name}: must have 1 to {longest} characters, has {len(text)}")
        return None
    return text


def _unlisted(value: Any) -> str:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_CONNECTIONS:
        return shape_of(value)
    odd = next(name for name in value if not (isinstance(name, str) and name.strip()))
    return f"one with {shape_of(odd)}"


def is_project(name: str) -> bool:
    """Whether a project may have this name: it is a folder's too, so nothing else gets through."""
    return _PROJECT.fullmatch(name) is not None


def _project(given: JsonObject, faults: list[str]) -> str | None:
    name = _text(given, "project", MAX_KEY_LENGTH, faults)
    if name is not None and not is_project(name):
        faults.append(f"{ENVELOPE_KEY}.project: must be {LEGAL_PROJECT}, got another string")
    return name


def _connections(given: JsonObject, faults: list[str]) -> tuple[str, ...]:
    """`connectionName`, or `connectionNames` by slot; both may be there if they agree. The original's texts."""
    single = _text(given, "connectionName", MAX_KEY_LENGTH, faults)
    several = given.get("connectionNames")
    if several is None:
        return () if single is None else (single,)
    fits = isinstance(several, list) and 0 < len(several) <= MOST_CONNECTIONS
    if not fits or not all(isinstance(name, str) and name.strip() for name in several):
        faults.append(
            f"{ENVELOPE_KEY}.connectionNames must be an array of non-empty saved connection names."
            f" It may hold {MOST_CONNECTIONS} at most, and is {_unlisted(several)}."
        )
        return ()
    names = tuple(name.strip() for name in several)
    if single is not None and single.casefold() != names[0].casefold():
        faults.append(f"{ENVELOPE_KEY}.connectionName must match connectionNames[0] when both are supplied.")
    return names
