"""Values that are written out, against what is legal where they stand: each fault is told at its own place."""

from __future__ import annotations

from dataclasses import dataclass

from infra.azure.lint import syntax
from infra.azure.lint.functions import FUNCTIONS
from infra.azure.lint.inference import Inference
from infra.azure.lint.report import Report, Rule, hint
from infra.azure.lint.symbols import Symbols
from infra.azure.lint.types import BOOL, Arr, Obj, Str, Type, Union, mismatch, optional, partial, without_null


@dataclass(frozen=True, slots=True)
class Values:
    inference: Inference
    symbols: Symbols
    report: Report

    def check(self, node: syntax.Expression, legal: Type) -> None:
        """Adds what is wrong with `node` where a value of type `legal` is expected."""
        shape = without_null(legal)
        match node:
            case syntax.Object() if isinstance(shape, Obj):
                self._object(node, shape)
            case syntax.Array(items=items) if isinstance(shape, Arr):
                for item in items:
                    self.check(item, shape.item)
            case syntax.Loop() if isinstance(shape, Arr):
                self._loop(node, shape)
            case syntax.Ternary(test=test, then=then, other=other):
                self.inference.expect(test, BOOL)
                self.check(then, legal)
                self.check(other, legal)
            case syntax.Call(name="union", arguments=arguments) if isinstance(shape, Obj):
                self._merged(node, arguments, shape)
            case _:
                found = self.inference.of(node)
                if why := mismatch(found, legal):
                    self.report.add(node.place, _rule(found, legal), why)

    def _object(self, node: syntax.Object, legal: Obj) -> None:
        for field in node.fields:
            for part in field.key_parts:
                self.inference.of(part)
            self._field(field, legal)
        names = [field.key for field in node.fields]
        for name in sorted({name for name in names if name and names.count(name) > 1}):
            self.report.add(node.place, Rule.PROPERTY, f"the property '{name}' stands here twice")
        for name, prop in legal.props.items():
            if prop.required and name not in names:
                self.report.add(node.place, Rule.MISSING_PROPERTY, f"the property '{name}' is missing")

    def _field(self, field: syntax.Field, legal: Obj) -> None:
        prop = None if field.key is None else legal.props.get(field.key)
        if prop is not None:
            if prop.read_only:
                self.report.add(field.place, Rule.READ_ONLY, f"'{field.key}' is set by the service")
            self.check(field.value, prop.type if prop.required else optional(prop.type))
        elif legal.rest is not None:
            self.check(field.value, legal.rest)
        else:
            message = f"there is no property '{field.key}' here." + hint(str(field.key), legal.props)
            self.report.add(field.place, Rule.PROPERTY, message)
            self.inference.of(field.value)

    def _loop(self, node: syntax.Loop, legal: Arr) -> None:
        def body(inner: syntax.Expression) -> Type:
            self.check(inner, legal.item)
            return legal.item

        self.inference.loop(node, body)

    def _merged(self, node: syntax.Call, arguments: tuple[syntax.Expression, ...], legal: Obj) -> None:
        """Each part against the whole with nothing required, then whether together they have what is."""
        for argument in arguments:
            self.check(argument, partial(legal))
        if len(arguments) < FUNCTIONS["union"].least:
            self.report.add(node.place, Rule.ARGUMENTS, "union() takes at least 2 arguments")
            return
        whole = FUNCTIONS["union"].result([self.inference.of(argument) for argument in arguments])
        if isinstance(whole, Obj):
            missing = [name for name, prop in legal.props.items() if prop.required and name not in whole.props]
            for name in missing if whole.rest is None else ():
                self.report.add(node.place, Rule.MISSING_PROPERTY, f"the property '{name}' is missing")


def _rule(found: Type, legal: Type) -> Rule:
    """A text that is not in the list is another fault than a number in the place of a text."""
    options = legal.options if isinstance(legal, Union) else (legal,)
    listed = any(isinstance(option, Str) and option.values is not None for option in options)
    return Rule.VALUE if isinstance(found, Str) and listed else Rule.TYPE
