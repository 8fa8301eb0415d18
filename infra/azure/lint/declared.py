"""Declared types and decorators of parameters."""

from __future__ import annotations

from typing import Final

from infra.azure.lint import syntax
from infra.azure.lint.literals import of_value
from infra.azure.lint.report import Report, Rule, hint
from infra.azure.lint.schema.model import need, obj, one_of
from infra.azure.lint.types import (
    ANY,
    BOOL,
    INT,
    STR,
    Arr,
    Int,
    Obj,
    Prop,
    Str,
    Type,
    describe,
    mismatch,
    optional,
    union,
)

_SIMPLE: Final[dict[str, Type]] = {
    "string": STR,
    "int": INT,
    "bool": BOOL,
    "object": Obj(rest=ANY),
    "array": Arr(ANY),
}
#: Decorator -> how many arguments it takes. Source: "Parameters in Bicep", "Outputs in Bicep".
_DECORATORS: Final = {
    "allowed": 1,
    "description": 1,
    "maxLength": 1,
    "maxValue": 1,
    "metadata": 1,
    "minLength": 1,
    "minValue": 1,
    "secure": 0,
}
#: What azd reads of a parameter. Source: "azd's parameters in Bicep".
_METADATA: Final = obj(azd=obj(type=need(one_of("location", "resourceGroup"))))
_OF_PARAMETERS: Final = frozenset({"allowed", "maxLength", "maxValue", "minLength", "minValue", "secure"})


def declared_type(name: syntax.TypeName) -> Type:
    found: Type = Str(frozenset(name.literals)) if name.literals else _SIMPLE[name.name]
    for _ in range(name.arrays):
        found = Arr(found)
    return optional(found) if name.nullable else found


def param_type(param: syntax.Param) -> Type:
    """With what its decorators say of its values."""
    found = declared_type(param.type)
    allowed = _argument(param, "allowed")
    if isinstance(allowed, syntax.Array):
        return union(of_value(item.value) for item in allowed.items if isinstance(item, syntax.Literal))
    if found == INT:
        low, high = (_number(_argument(param, name)) for name in ("minValue", "maxValue"))
        return Int(low=low, high=high)
    return found


def is_secure(statement: syntax.Declared) -> bool:
    return any(decorator.name == "secure" for decorator in statement.decorators)


def check_decorators(statement: syntax.Declared, report: Report) -> None:
    for decorator in statement.decorators:
        count = _DECORATORS.get(decorator.name)
        if count is None:
            message = f"there is no decorator '{decorator.name}'." + hint(decorator.name, _DECORATORS)
            report.add(decorator.place, Rule.DECORATOR, message)
        elif len(decorator.arguments) != count:
            report.add(decorator.place, Rule.DECORATOR, f"@{decorator.name} takes {count} arguments")
        elif decorator.name in _OF_PARAMETERS and not isinstance(statement, syntax.Param):
            report.add(decorator.place, Rule.DECORATOR, f"@{decorator.name} is for parameters")
        else:
            _check_argument(statement, decorator, report)


def _check_argument(statement: syntax.Declared, decorator: syntax.Decorator, report: Report) -> None:
    legal: dict[str, Type] = {"description": STR, "metadata": _METADATA, "secure": ANY}
    kind = declared_type(statement.type) if isinstance(statement, syntax.Param) else ANY
    for argument in decorator.arguments:
        if decorator.name == "allowed":
            wanted: Type = Arr(kind)
        else:
            wanted = legal.get(decorator.name, INT)
        given = _constant(argument)
        if why := mismatch(given, wanted):
            report.add(argument.place, Rule.DECORATOR, f"@{decorator.name}: {why}")
    if decorator.name in ("minValue", "maxValue") and kind != INT:
        report.add(decorator.place, Rule.DECORATOR, f"@{decorator.name} is for whole numbers")
    if decorator.name in ("minLength", "maxLength") and not isinstance(kind, Str | Arr):
        report.add(
            decorator.place, Rule.DECORATOR, f"@{decorator.name} is for texts and arrays, not {describe(kind)}"
        )


def _constant(node: syntax.Expression) -> Type:
    match node:
        case syntax.Literal(value=value):
            return of_value(value)
        case syntax.Array(items=items):
            return Arr(union(map(_constant, items)))
        case syntax.Object(fields=fields):
            return Obj({field.key or "": Prop(_constant(field.value)) for field in fields})
    return ANY


def _argument(param: syntax.Param, name: str) -> syntax.Expression | None:
    found = (one.arguments for one in param.decorators if one.name == name and one.arguments)
    return next((arguments[0] for arguments in found), None)


def _number(node: syntax.Expression | None) -> int | None:
    return node.value if isinstance(node, syntax.Literal) and isinstance(node.value, int) else None
