"""Resource statements: type, version, body, parent, scope."""

from __future__ import annotations

from dataclasses import dataclass

from infra.azure.lint import syntax
from infra.azure.lint.report import Report, Rule, hint
from infra.azure.lint.schema import RESOURCE_TYPES
from infra.azure.lint.schema.model import ResourceType
from infra.azure.lint.symbols import Symbols
from infra.azure.lint.types import ANY, BOOL, STR, Arr, Obj, Prop, Type, optional
from infra.azure.lint.values import Values

#: Properties of the statement, not of the resource. Source: "Resource declaration in Bicep".
META = ("parent", "scope", "dependsOn")


def schema_of(statement: syntax.Resource) -> ResourceType | None:
    return RESOURCE_TYPES.get(statement.type.partition("@")[0])


def resource_type(statement: syntax.Resource) -> Type:
    """What reading its name gives."""
    known = schema_of(statement)
    found: Type = known.readable() if known else ANY
    if isinstance(statement.value, syntax.Loop):
        return Arr(found)
    return optional(found) if isinstance(statement.value, syntax.Condition) else found


def unwrapped(node: syntax.Expression) -> syntax.Expression:
    """The object in a loop and a condition."""
    while isinstance(node, syntax.Loop | syntax.Condition):
        node = node.body
    return node


@dataclass(frozen=True, slots=True)
class Resources:
    values: Values
    symbols: Symbols
    report: Report
    target: str

    def check(self, statement: syntax.Resource) -> None:
        known = self._known(statement)
        body = unwrapped(statement.value)
        if known is None or not isinstance(body, syntax.Object):
            self.values.inference.of(statement.value)
            return
        legal = self._legal(statement, known, body)
        wrapped: Type = Arr(legal) if isinstance(statement.value, syntax.Loop) else legal
        if isinstance(statement.value, syntax.Condition):
            self.values.check(statement.value.test, BOOL)
            self.values.check(body, wrapped)
        else:
            self.values.check(statement.value, wrapped)
        self._parent(statement, known, body)
        self._scope(statement, known, body)
        self._depends(body)

    def _known(self, statement: syntax.Resource) -> ResourceType | None:
        name, _, version = statement.type.partition("@")
        known = RESOURCE_TYPES.get(name)
        if known is None:
            message = f"'{name}' is no resource type that infra/azure/lint/schema has." + hint(
                name, RESOURCE_TYPES
            )
            self.report.add(statement.place, Rule.RESOURCE_TYPE, message)
            return None
        if version != known.version:
            message = f"{name} was looked up at {known.version}, not at '{version}'"
            self.report.add(statement.place, Rule.API_VERSION, message)
        if known.target != self.target and not known.extension:
            message = f"{name} is deployed to a {known.target}, and this file to a {self.target}"
            self.report.add(statement.place, Rule.RESOURCE_TYPE, message)
        return known

    def _legal(self, statement: syntax.Resource, known: ResourceType, body: syntax.Object) -> Obj:
        name = body.get("name")
        variant = known.variants.get(str(name.value)) if isinstance(name, syntax.Literal) else None
        props = dict((variant or known.body).props)
        if statement.existing:
            props = {"name": Prop(STR, required=True)}
        elif variant is not None:
            props["name"] = known.body.props["name"]
        return Obj(props | {name: Prop(ANY) for name in META})

    def _parent(self, statement: syntax.Resource, known: ResourceType, body: syntax.Object) -> None:
        given = body.get("parent")
        wanted = known.parent if known.name.count("/") > 1 else None
        if given is None:
            if wanted is not None:
                message = f"{known.name} needs 'parent', a resource of type {wanted}"
                self.report.add(statement.place, Rule.PARENT, message)
            return
        if wanted is None:
            self.report.add(given.place, Rule.PARENT, f"{known.name} stands alone and has no parent")
            return
        found = self._resource(given)
        if found is None or found.type.partition("@")[0] != wanted:
            self.report.add(given.place, Rule.PARENT, f"the parent must be a resource of type {wanted}")

    def _scope(self, statement: syntax.Resource, known: ResourceType, body: syntax.Object) -> None:
        given = body.get("scope")
        if given is None:
            if known.extension:
                message = f"{known.name} needs 'scope', the resource that it is for"
                self.report.add(statement.place, Rule.PARENT, message)
        elif not known.extension and not statement.existing:
            self.report.add(given.place, Rule.PARENT, f"{known.name} is no extension: it has no scope")
        elif self._resource(given) is None:
            self.report.add(given.place, Rule.PARENT, "the scope must be a resource of this file")

    def _depends(self, body: syntax.Object) -> None:
        given = body.get("dependsOn")
        items = given.items if isinstance(given, syntax.Array) else ()
        if given is not None and not isinstance(given, syntax.Array):
            self.report.add(given.place, Rule.TYPE, "dependsOn must be an array of resources and modules")
        for item in items:
            symbol = self.symbols.of_file.get(item.name) if isinstance(item, syntax.Name) else None
            if symbol is None or not isinstance(symbol.declared, syntax.Resource | syntax.Module):
                self.report.add(item.place, Rule.TYPE, "dependsOn takes names of resources and modules")

    def _resource(self, node: syntax.Expression) -> syntax.Resource | None:
        """The resource that `name` or `name[index]` names."""
        inner = node.subject if isinstance(node, syntax.Index) else node
        symbol = self.symbols.of_file.get(inner.name) if isinstance(inner, syntax.Name) else None
        return symbol.declared if symbol and isinstance(symbol.declared, syntax.Resource) else None
