"""The values that a property takes or an expression gives, and whether the one fits the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from infra.azure.lint.report import hint


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything: what the lint cannot tell. Fits everywhere."""


@dataclass(frozen=True, slots=True)
class Null:
    pass


@dataclass(frozen=True, slots=True)
class Bool:
    pass


@dataclass(frozen=True, slots=True)
class Str:
    """`values`: the only ones there are; None: any text."""

    values: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Int:
    values: frozenset[int] | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Arr:
    item: Type


@dataclass(frozen=True, slots=True)
class Prop:
    type: Type
    required: bool = False
    #: The service sets it: it can be read, and not be given.
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Obj:
    props: Mapping[str, Prop] = field(default_factory=dict)
    #: What properties of other names are; None: there are none.
    rest: Type | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """At least two different types, none of them a Union."""

    options: tuple[Type, ...]


type Type = Unknown | Null | Bool | Str | Int | Arr | Obj | Union

ANY = Unknown()
NULL = Null()
BOOL = Bool()
STR = Str()
INT = Int()


def union(types: Iterable[Type]) -> Type:
    """What is one of these. Literals of one kind become one type."""
    flat: list[Type] = []
    for one in types:
        flat.extend(one.options if isinstance(one, Union) else (one,))
    if not flat or any(isinstance(one, Unknown) for one in flat):
        return ANY
    texts = [one for one in flat if isinstance(one, Str)]
    if len(texts) > 1:
        known = [one.values for one in texts]
        joined = None if None in known else frozenset().union(*(values or frozenset() for values in known))
        flat = [one for one in flat if not isinstance(one, Str)] + [Str(joined)]
    numbers = [one for one in flat if isinstance(one, Int)]
    if len(numbers) > 1:
        listed = [one.values for one in numbers]
        whole = INT if None in listed else Int(frozenset().union(*(values or frozenset() for values in listed)))
        flat = [one for one in flat if not isinstance(one, Int)] + [whole]
    different: list[Type] = []
    for one in flat:
        if one not in different:
            different.append(one)
    return different[0] if len(different) == 1 else Union(tuple(different))


def optional(one: Type) -> Type:
    return union((one, NULL))


def without_null(one: Type) -> Type:
    if not isinstance(one, Union):
        return one
    return union(option for option in one.options if not isinstance(option, Null))


def may_be_null(one: Type) -> bool:
    return isinstance(one, Union) and any(isinstance(option, Null) for option in one.options)


def partial(one: Obj) -> Obj:
    """The same with nothing required: one of several objects that are put together."""
    return Obj({name: replace(prop, required=False) for name, prop in one.props.items()}, one.rest)


def describe(one: Type) -> str:
    match one:
        case Str(values=None):
            return "a string"
        case Str(values=values):
            return " or ".join(f"'{value}'" for value in sorted(values or ()))
        case Int(values=values) if values is not None:
            return " or ".join(map(str, sorted(values)))
        case Int(low=low, high=high):
            return (
                "a whole number" + (f" from {low}" if low is not None else "") + (f" to {high}" if high else "")
            )
        case Bool():
            return "true or false"
        case Null():
            return "null"
        case Arr():
            return "an array"
        case Obj():
            return "an object"
        case Union(options=options):
            return " or ".join(map(describe, options))
        case _:
            return "anything"


def mismatch(actual: Type, expected: Type) -> str | None:
    """Why a value of one type does not fit where the other is expected; None: it fits."""
    if isinstance(actual, Unknown) or isinstance(expected, Unknown):
        return None
    if isinstance(actual, Union):
        return next((why for one in actual.options if (why := mismatch(one, expected))), None)
    if isinstance(expected, Union):
        reasons = [mismatch(actual, one) for one in expected.options]
        if None in reasons:
            return None
        alike = [why for why, one in zip(reasons, expected.options, strict=True) if type(one) is type(actual)]
        return alike[0] if alike else _wrong(actual, expected)
    if type(actual) is not type(expected):
        return _wrong(actual, expected)
    return _within(actual, expected)


def _wrong(actual: Type, expected: Type) -> str:
    return f"{describe(expected)} is expected, not {describe(actual)}"


def _within(actual: Type, expected: Type) -> str | None:
    """The same for two types of one kind."""
    match actual, expected:
        case Str(values=given), Str(values=legal) if legal is not None:
            return None if given is not None and given <= legal else _unlisted(given, expected)
        case Int(), Int():
            return None if _in_range(actual, expected) else _wrong(actual, expected)
        case Arr(item=given), Arr(item=legal):
            return mismatch(given, legal)
        case Obj(), Obj():
            return _object_mismatch(actual, expected)
    return None


def _unlisted(given: frozenset[str] | None, expected: Str) -> str:
    if given is None:
        return f"{describe(expected)} is expected, not just any string"
    (first, *_) = sorted(given - (expected.values or frozenset()))
    return f"{describe(expected)} is expected, not '{first}'." + hint(first, expected.values or ())


def _in_range(actual: Int, expected: Int) -> bool:
    if expected.values is not None:
        return actual.values is not None and actual.values <= expected.values
    low = min(actual.values) if actual.values else actual.low
    high = max(actual.values) if actual.values else actual.high
    # A number that nobody bounds is let pass: the deployment tells.
    too_low = expected.low is not None and low is not None and low < expected.low
    too_high = expected.high is not None and high is not None and high > expected.high
    return not too_low and not too_high


def _object_mismatch(actual: Obj, expected: Obj) -> str | None:
    for name, prop in actual.props.items():
        legal = expected.props.get(name)
        if legal is None and expected.rest is None:
            return f"there is no property '{name}'." + hint(name, expected.props)
        if legal is not None and legal.read_only:
            return f"'{name}' is set by the service"
        wanted = (
            optional(legal.type) if legal and not legal.required else legal.type if legal else expected.rest
        )
        if wanted is not None and (why := mismatch(prop.type, wanted)):
            return f"{name}: {why}"
    missing = [name for name, prop in expected.props.items() if prop.required and name not in actual.props]
    return f"the property '{missing[0]}' is missing" if missing and actual.rest is None else None
