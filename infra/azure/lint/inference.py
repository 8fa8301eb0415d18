"""What an expression gives. On the way every name, function, property read and operator is checked."""

from __future__ import annotations

from collections.abc import Callable

from infra.azure.lint import syntax
from infra.azure.lint.functions import FUNCTIONS, legal_argument
from infra.azure.lint.literals import of_json, of_value
from infra.azure.lint.report import Place, Report, Rule, hint
from infra.azure.lint.schema import RESOURCE_TYPES
from infra.azure.lint.symbols import Symbol, Symbols
from infra.azure.lint.types import (
    ANY,
    BOOL,
    INT,
    STR,
    Arr,
    Int,
    Obj,
    Prop,
    Type,
    Union,
    Unknown,
    describe,
    may_be_null,
    mismatch,
    optional,
    union,
    without_null,
)

_COMPARES = ("==", "!=", "=~", "!~", "<", "<=", ">", ">=")
_NUMBERS = ("+", "-", "*", "/", "%")


class Inference:
    """`behind`: what reading a symbol gives; it comes from who knows files and resource types."""

    def __init__(self, symbols: Symbols, report: Report, behind: Callable[[Symbol], Type]) -> None:
        self._symbols = symbols
        self._report = report
        self._behind = behind

    def of(self, node: syntax.Expression) -> Type:
        match node:
            case syntax.Literal(value=value):
                return of_value(value)
            case syntax.Interpolated(parts=parts):
                for part in parts:
                    self._printable(part)
                return STR
            case syntax.Array(items=items):
                return Arr(union(map(self.of, items)) if items else Union(()))
            case syntax.Ternary(test=test, then=then, other=other):
                self.expect(test, BOOL)
                return union((self.of(then), self.of(other)))
            case syntax.Lambda(names=names, body=body):
                with self._symbols.within({name.name: ANY for name in names}):
                    return self.of(body)
            case syntax.Condition(test=test, body=body):
                self.expect(test, BOOL)
                return self.of(body)
        return self._of_others(node)

    def _of_others(self, node: syntax.Expression) -> Type:
        match node:
            case syntax.Name():
                return self._name(node)
            case syntax.Object(fields=fields):
                return self._object(fields)
            case syntax.Loop():
                return self.loop(node, self.of)
            case syntax.Member():
                return self._member(node)
            case syntax.Index():
                return self._index(node)
            case syntax.Call():
                return self._call(node)
            case syntax.Unary():
                return self._unary(node)
            case syntax.Binary():
                return self._binary(node)
        raise AssertionError(f"no such node: {node}")

    def expect(self, node: syntax.Expression, legal: Type) -> Type:
        found = self.of(node)
        if why := mismatch(found, legal):
            self._report.add(node.place, Rule.TYPE, why)
        return found

    def loop(self, node: syntax.Loop, body: Callable[[syntax.Expression], Type]) -> Type:
        items = self.of(node.items)
        if why := mismatch(items, Arr(ANY)):
            self._report.add(node.items.place, Rule.TYPE, why)
        names: dict[str, Type] = {node.names[0].name: items.item if isinstance(items, Arr) else ANY}
        if len(node.names) > 1:
            names[node.names[1].name] = INT
        with self._symbols.within(names):
            return Arr(body(node.body))

    def _printable(self, node: syntax.Expression) -> None:
        found = self.of(node)
        if may_be_null(found):
            self._report.add(node.place, Rule.NULLABLE, "what stands in a string may be null here")
        elif isinstance(found, Obj | Arr):
            self._report.add(node.place, Rule.TYPE, f"{describe(found)} cannot stand in a string")

    def _name(self, node: syntax.Name) -> Type:
        local = self._symbols.find_local(node.name)
        if local is not None:
            return local
        symbol = self._symbols.find(node)
        if symbol is None:
            return ANY
        if symbol.busy:
            self._report.add(node.place, Rule.TYPE, f"'{node.name}' stands for itself")
            return ANY
        if symbol.type is None:
            symbol.busy = True
            symbol.type = self._behind(symbol)
            symbol.busy = False
        return symbol.type

    def _object(self, fields: tuple[syntax.Field, ...]) -> Type:
        props: dict[str, Prop] = {}
        rests: list[Type] = []
        for field in fields:
            for part in field.key_parts:
                self._printable(part)
            found = self.of(field.value)
            if field.key is None:
                rests.append(found)
            elif field.key in props:
                self._report.add(field.place, Rule.PROPERTY, f"the property '{field.key}' stands here twice")
            else:
                props[field.key] = Prop(found)
        return Obj(props, union(rests) if rests else None)

    def _member(self, node: syntax.Member) -> Type:
        subject = self.of(node.subject)
        is_null = may_be_null(subject)
        if is_null and not node.safe and not _is_safe(node.subject):
            message = f"'.{node.name}' is read of what may be null here: write '.?' and say what else, or '!'"
            self._report.add(node.place, Rule.NULLABLE, message)
        found = self._property(without_null(subject), node.name, node.place)
        return optional(found) if node.safe or (is_null and _is_safe(node.subject)) else found

    def _property(self, subject: Type, name: str, place: Place) -> Type:
        if isinstance(subject, Union):
            return union(self._property(option, name, place) for option in subject.options)
        if isinstance(subject, Obj):
            if name in subject.props:
                return subject.props[name].type
            if subject.rest is not None:
                return subject.rest
            message = f"there is no property '{name}' to read." + hint(name, subject.props)
            self._report.add(place, Rule.PROPERTY, message)
        elif not isinstance(subject, Unknown):
            self._report.add(place, Rule.PROPERTY, f"{describe(subject)} has no properties")
        return ANY

    def _index(self, node: syntax.Index) -> Type:
        subject = without_null(self.of(node.subject))
        index = self.of(node.index)
        if isinstance(subject, Arr):
            if why := mismatch(index, INT):
                self._report.add(node.index.place, Rule.TYPE, why)
            return optional(subject.item) if node.safe else subject.item
        if isinstance(subject, Obj) and isinstance(node.index, syntax.Literal):
            return self._property(subject, str(node.index.value), node.index.place)
        return ANY

    def _call(self, node: syntax.Call) -> Type:
        function = FUNCTIONS.get(node.name)
        if function is None:
            message = f"there is no function '{node.name}' that may be called here." + hint(
                node.name, FUNCTIONS
            )
            self._report.add(node.place, Rule.UNKNOWN_FUNCTION, message)
            for argument in node.arguments:
                self.of(argument)
            return ANY
        if not function.least <= len(node.arguments) <= function.most:
            many = str(function.least) if function.least == function.most else f"at least {function.least}"
            message = f"{node.name}() takes {many} arguments, not {len(node.arguments)}"
            self._report.add(node.place, Rule.ARGUMENTS, message)
            return ANY
        given = [
            self.expect(one, legal_argument(function, number)) for number, one in enumerate(node.arguments)
        ]
        if node.name in ("resourceId", "subscriptionResourceId"):
            self._resource_id(node.arguments[0])
        return self._loaded(node) if node.name == "loadJsonContent" else function.result(given)

    def _resource_id(self, argument: syntax.Expression) -> None:
        """Its first argument is a type, not an id of a subscription or group: these files name no others."""
        known = (*RESOURCE_TYPES, "Microsoft.Authorization/roleDefinitions")
        name = argument.value if isinstance(argument, syntax.Literal) else None
        if name not in known:
            message = f"'{name}' is no known type." + hint(str(name), known)
            self._report.add(argument.place, Rule.RESOURCE_TYPE, message)

    def _loaded(self, node: syntax.Call) -> Type:
        (argument,) = node.arguments
        if not isinstance(argument, syntax.Literal):
            self._report.add(
                argument.place, Rule.ARGUMENTS, "loadJsonContent() takes a path that is written out"
            )
            return ANY
        return of_json(self._report, argument.place, self._report.file.parent / str(argument.value))

    def _unary(self, node: syntax.Unary) -> Type:
        match node.operator:
            case "!":
                return self.expect(node.operand, BOOL) and BOOL
            case "-":
                return self.expect(node.operand, INT) and INT
            case _:
                return without_null(self.of(node.operand))

    def _binary(self, node: syntax.Binary) -> Type:
        if node.operator in ("&&", "||"):
            self.expect(node.left, BOOL)
            self.expect(node.right, BOOL)
            return BOOL
        if node.operator in _NUMBERS:
            return _sum(node.operator, self.expect(node.left, INT), self.expect(node.right, INT))
        left, right = self.of(node.left), self.of(node.right)
        if node.operator == "??":
            return union((without_null(left), right))
        assert node.operator in _COMPARES
        if mismatch(right, left) and mismatch(left, right) and type(left) is not type(right):
            message = f"{describe(left)} and {describe(right)} are never equal"
            self._report.add(node.place, Rule.TYPE, message)
        return BOOL


def _is_safe(node: syntax.Expression) -> bool:
    """Whether a `.?` stands further left in a chain: all of it is null then, and nothing is read of null."""
    while isinstance(node, syntax.Member | syntax.Index):
        if node.safe:
            return True
        node = node.subject
    return False


def _sum(operator: str, left: Type, right: Type) -> Type:
    """Bounds go on through an addition, which is what the files do with bounded numbers."""
    if operator == "+" and isinstance(left, Int) and isinstance(right, Int):
        lows = [min(one.values) if one.values else one.low for one in (left, right)]
        highs = [max(one.values) if one.values else one.high for one in (left, right)]
        low, high = (None if None in ends else sum(end or 0 for end in ends) for ends in (lows, highs))
        return Int(low=low, high=high)
    return INT
