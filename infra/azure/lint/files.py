"""One Bicep file, and the modules that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from infra.azure.lint import syntax
from infra.azure.lint.declared import check_decorators, declared_type, is_secure, param_type
from infra.azure.lint.inference import Inference
from infra.azure.lint.report import Finding, Report, Rule, SyntaxFault
from infra.azure.lint.resources import Resources, resource_type, unwrapped
from infra.azure.lint.schema.platform import ROLES
from infra.azure.lint.statements import parse
from infra.azure.lint.symbols import Symbol, Symbols
from infra.azure.lint.types import ANY, BOOL, STR, Arr, Obj, Prop, Type, optional
from infra.azure.lint.values import Values
from infra.azure.lint.walk import children, walk

_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_TARGETS = ("resourceGroup", "subscription")


@dataclass(slots=True)
class Project:
    """All files below `root`, each read once."""

    root: Path
    findings: set[Finding] = field(default_factory=set)
    trees: dict[Path, syntax.File | None] = field(default_factory=dict)
    #: Files that are a module of another.
    used: set[Path] = field(default_factory=set)

    def tree(self, path: Path) -> syntax.File | None:
        """None for a file that is missing or has a syntax fault; the fault is told once."""
        path = path.resolve()
        if path not in self.trees:
            self.trees[path] = None
            try:
                self.trees[path] = parse(path.read_text("utf-8"))
            except SyntaxFault as fault:
                report = Report(path, self.root, self.findings)
                report.add(fault.place, Rule.SYNTAX, fault.message)
        return self.trees[path]


def target_of(tree: syntax.File) -> str:
    (scope,) = tree.of(syntax.Scope)[:1] or (None,)
    value = scope.value if scope else None
    return str(value.value) if isinstance(value, syntax.Literal) else _TARGETS[0]


def check_file(project: Project, path: Path) -> None:
    tree = project.tree(path)
    if tree is not None:
        Checker(project, path.resolve(), tree).check()


class Checker:
    def __init__(self, project: Project, path: Path, tree: syntax.File) -> None:
        self._project = project
        self._path = path
        self._tree = tree
        self._report = Report(path, project.root, project.findings)
        self._symbols = Symbols(self._report)
        self._inference = Inference(self._symbols, self._report, self._behind)
        self._values = Values(self._inference, self._symbols, self._report)
        self._resources = Resources(self._values, self._symbols, self._report, target_of(tree))

    def check(self) -> None:
        self._symbols.declare(self._tree.statements)
        for statement in self._tree.statements:
            self._statement(statement)
        self._roles()
        self._secrets()
        self._symbols.tell_unused()

    def _statement(self, statement: syntax.Statement) -> None:
        if isinstance(statement, syntax.Declared):
            check_decorators(statement, self._report)
        match statement:
            case syntax.Scope(place=place):
                if target_of(self._tree) not in _TARGETS or len(self._tree.of(syntax.Scope)) > 1:
                    message = f"targetScope is one of {', '.join(_TARGETS)}, and stands once"
                    self._report.add(place, Rule.VALUE, message)
            case syntax.Param(default=default) if default is not None:
                self._values.check(default, param_type(statement))
            case syntax.Var(value=value):
                self._inference.of(value)
            case syntax.Output(value=value):
                self._values.check(value, declared_type(statement.type))
            case syntax.Resource():
                self._resources.check(statement)
            case syntax.Module():
                self._module(statement)

    def _behind(self, symbol: Symbol) -> Type:
        match symbol.declared:
            case syntax.Param() as param:
                return param_type(param)
            case syntax.Var(value=value):
                return self._inference.of(value)
            case syntax.Resource() as resource:
                return resource_type(resource)
            case syntax.Module() as module:
                return self._module_type(module)
        return ANY

    def _module_tree(self, module: syntax.Module) -> syntax.File | None:
        path = (self._path.parent / module.path).resolve()
        if not path.is_file():
            self._report.add(module.place, Rule.MODULE, f"there is no file '{module.path}'")
            return None
        self._project.used.add(path)
        return self._project.tree(path)

    def _module_type(self, module: syntax.Module) -> Type:
        tree = self._module_tree(module)
        if tree is None:
            return ANY
        outputs = {output.name: Prop(declared_type(output.type)) for output in tree.of(syntax.Output)}
        found: Type = Obj({"name": Prop(STR), "outputs": Prop(Obj(outputs))})
        if isinstance(module.value, syntax.Loop):
            return Arr(found)
        return optional(found) if isinstance(module.value, syntax.Condition) else found

    def _module(self, module: syntax.Module) -> None:
        tree = self._module_tree(module)
        body = unwrapped(module.value)
        if tree is None or not isinstance(body, syntax.Object):
            self._inference.of(module.value)
            return
        params = {
            param.name: Prop(param_type(param), required=param.default is None and not param.type.nullable)
            for param in tree.of(syntax.Param)
        }
        needs_params = any(prop.required for prop in params.values())
        moves = target_of(tree) != target_of(self._tree)
        legal = Obj(
            {
                "name": Prop(STR),
                "scope": Prop(ANY, required=moves),
                "dependsOn": Prop(Arr(ANY)),
                "params": Prop(Obj(params), required=needs_params),
            }
        )
        if isinstance(module.value, syntax.Condition):
            self._values.check(module.value.test, BOOL)
            self._values.check(body, legal)
        else:
            self._values.check(module.value, Arr(legal) if isinstance(module.value, syntax.Loop) else legal)

    def _roles(self) -> None:
        """Every GUID is a role that we know, under that role's name: a wrong digit would be another role."""
        for name, node in _named_values(self._tree):
            value = node.value if isinstance(node, syntax.Literal) else None
            if not isinstance(value, str) or ROLES.get(name) == value:
                continue
            if name in ROLES or _GUID.fullmatch(value):
                known = next((role for role, guid in ROLES.items() if guid == value), None)
                message = f"this is the role {known}" if known else "this is no role of infra/azure/lint/schema"
                self._report.add(node.place, Rule.ROLE, f"'{name}': {message}")

    def _secrets(self) -> None:
        secret = {param.name for param in self._tree.of(syntax.Param) if is_secure(param)}
        for output in self._tree.of(syntax.Output):
            for node in walk(output.value):
                if isinstance(node, syntax.Name) and node.name in secret:
                    message = f"'{node.name}' is secret: an output stays readable in the deployment's history"
                    self._report.add(node.place, Rule.SECRET, message)


def _named_values(tree: syntax.File) -> Iterator[tuple[str, syntax.Expression]]:
    """(name, value) of every variable and property, and what is in them; what has no name of its own has ""."""
    for statement in tree.statements:
        top = statement.default if isinstance(statement, syntax.Param) else statement.value
        if top is not None:
            yield from _named(statement.name if isinstance(statement, syntax.Var) else "", top)


def _named(name: str, node: syntax.Expression) -> Iterator[tuple[str, syntax.Expression]]:
    yield name, node
    if isinstance(node, syntax.Object):
        for field in node.fields:
            yield from _named(field.key or "", field.value)
    else:
        for child in children(node):
            yield from _named("", child)
