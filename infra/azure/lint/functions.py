"""The functions of the language that these files may call. Source: "Bicep functions".

Not here on purpose, so that a call is a finding: `listKeys` and its kin (they hand out keys), `newGuid` and
`utcNow` (they give something else at each deployment), and `reference` (property reads do the same, checked).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.azure.lint.schema.model import array, obj
from infra.azure.lint.schema.platform import ENVIRONMENT
from infra.azure.lint.types import ANY, BOOL, INT, STR, Arr, Obj, Prop, Type, Unknown, union

_OBJECT = Obj(rest=ANY)
_LIST = Arr(ANY)


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters`: types of arguments; the last one counts for all further ones when `most` is larger."""

    parameters: tuple[Type, ...]
    returns: Type | Callable[[Sequence[Type]], Type]
    least: int
    most: int

    def result(self, arguments: Sequence[Type]) -> Type:
        return self.returns(arguments) if callable(self.returns) else self.returns


def _function(
    *parameters: Type,
    returns: Type | Callable[[Sequence[Type]], Type],
    least: int | None = None,
    most: int | None = None,
) -> Function:
    count = len(parameters)
    return Function(parameters, returns, count if least is None else least, count if most is None else most)


def merged(arguments: Sequence[Type]) -> Type:
    """`union`: one object with the properties of all, or one array with the items of all."""
    if all(isinstance(one, Arr) for one in arguments):
        return Arr(union(one.item for one in arguments if isinstance(one, Arr)))
    props: dict[str, Prop] = {}
    rests: list[Type] = []
    for argument in arguments:
        options = argument.options if hasattr(argument, "options") else (argument,)
        for option in options:
            if not isinstance(option, Obj):
                return ANY
            props |= option.props
            rests += [] if option.rest is None else [option.rest]
    return Obj(props, union(rests) if rests else None)


def _items(arguments: Sequence[Type]) -> Type:
    (given,) = arguments
    if not isinstance(given, Obj):
        return array(obj(key=STR, value=ANY))
    values = [prop.type for prop in given.props.values()] + ([] if given.rest is None else [given.rest])
    return array(obj(key=STR, value=union(values)))


def _mapped(arguments: Sequence[Type]) -> Type:
    return Obj(rest=arguments[1])


_MANY = 32
FUNCTIONS: dict[str, Function] = {
    "array": _function(ANY, returns=_LIST),
    "concat": _function(ANY, returns=lambda given: given[0] if isinstance(given[0], Arr) else STR, most=_MANY),
    "contains": _function(ANY, ANY, returns=BOOL),
    "deployer": _function(returns=obj(objectId=STR, tenantId=STR, userPrincipalName=STR)),
    "empty": _function(ANY, returns=BOOL),
    "endsWith": _function(STR, STR, returns=BOOL),
    "environment": _function(returns=ENVIRONMENT),
    "filter": _function(_LIST, ANY, returns=lambda given: given[0]),
    "first": _function(ANY, returns=lambda given: given[0].item if isinstance(given[0], Arr) else STR),
    "format": _function(STR, ANY, returns=STR, most=_MANY),
    "guid": _function(STR, returns=STR, most=_MANY),
    "int": _function(ANY, returns=INT),
    "items": _function(_OBJECT, returns=_items),
    "join": _function(Arr(STR), STR, returns=STR),
    "length": _function(ANY, returns=INT),
    "loadJsonContent": _function(STR, returns=ANY),
    "map": _function(_LIST, ANY, returns=lambda given: Arr(given[1])),
    "mapValues": _function(_OBJECT, ANY, returns=_mapped),
    "max": _function(INT, INT, returns=INT),
    "min": _function(INT, INT, returns=INT),
    "replace": _function(STR, STR, STR, returns=STR),
    "resourceGroup": _function(returns=obj(id=STR, name=STR, location=STR)),
    "resourceId": _function(STR, STR, returns=STR, most=_MANY),
    "split": _function(STR, STR, returns=Arr(STR)),
    "startsWith": _function(STR, STR, returns=BOOL),
    "string": _function(ANY, returns=STR),
    "subscription": _function(returns=obj(id=STR, subscriptionId=STR, tenantId=STR, displayName=STR)),
    "subscriptionResourceId": _function(STR, STR, returns=STR, most=_MANY),
    "substring": _function(STR, INT, INT, returns=STR, least=2),
    "take": _function(ANY, INT, returns=lambda given: given[0]),
    "tenant": _function(returns=obj(tenantId=STR, displayName=STR, countryCode=STR)),
    "toLower": _function(STR, returns=STR),
    "toUpper": _function(STR, returns=STR),
    "trim": _function(STR, returns=STR),
    "union": _function(ANY, ANY, returns=merged, most=_MANY),
    "uniqueString": _function(STR, returns=STR, most=_MANY),
}


def legal_argument(function: Function, number: int) -> Type:
    return function.parameters[min(number, len(function.parameters) - 1)] if function.parameters else Unknown()
