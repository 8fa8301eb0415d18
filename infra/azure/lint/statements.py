"""Statements of a Bicep file."""

from __future__ import annotations

import functools

from infra.azure.lint import syntax
from infra.azure.lint.expressions import Expressions
from infra.azure.lint.report import SyntaxFault
from infra.azure.lint.tokens import Kind

_TYPES = ("string", "int", "bool", "object", "array")


@functools.lru_cache(maxsize=64)
def parse(text: str) -> syntax.File:
    """The file's tree. Raises `SyntaxFault` at the first fault."""
    return Statements(text).file()


class Statements(Expressions):
    def file(self) -> syntax.File:
        found: list[syntax.Statement] = []
        self.newlines()
        while self.now.kind is not Kind.END:
            found.append(self._statement())
            self.end_of_line()
        return syntax.File(tuple(found))

    def _statement(self) -> syntax.Statement:
        decorators: list[syntax.Decorator] = []
        while self.is_at("@"):
            start = self.take()
            name = self.expect_kind(Kind.NAME)
            decorators.append(syntax.Decorator(start.place, name.text, self.arguments()))
            self.end_of_line()
        keyword = self.expect_kind(Kind.NAME)
        given = tuple(decorators)
        match keyword.text:
            case "targetScope" if not given:
                self.expect("=")
                return syntax.Scope(keyword.place, self.expression())
            case "param":
                return self._param(given)
            case "var":
                name = self.expect_kind(Kind.NAME)
                self.expect("=")
                return syntax.Var(name.place, name.text, given, self.expression())
            case "output":
                name = self.expect_kind(Kind.NAME)
                kind = self._type()
                self.expect("=")
                return syntax.Output(name.place, name.text, given, kind, self.expression())
            case "resource":
                return self._resource(given)
            case "module":
                name = self.expect_kind(Kind.NAME)
                path = self._path()
                self.expect("=")
                return syntax.Module(name.place, name.text, given, path, self.body())
        raise SyntaxFault(keyword.place, f"the lint knows no statement '{keyword.text}'")

    def _param(self, decorators: tuple[syntax.Decorator, ...]) -> syntax.Param:
        name = self.expect_kind(Kind.NAME)
        kind = self._type()
        default = self.expression() if self.skip("=") else None
        return syntax.Param(name.place, name.text, decorators, kind, default)

    def _resource(self, decorators: tuple[syntax.Decorator, ...]) -> syntax.Resource:
        name = self.expect_kind(Kind.NAME)
        kind = self._path()
        existing = self.skip("existing")
        self.expect("=")
        return syntax.Resource(name.place, name.text, decorators, kind, existing, self.body())

    def _path(self) -> str:
        token = self.expect_kind(Kind.STRING)
        found = self._string(token)
        if not isinstance(found, syntax.Literal):
            raise SyntaxFault(token.place, "a type or path has no interpolation")
        return str(found.value)

    def _type(self) -> syntax.TypeName:
        start = self.now
        literals: list[str] = []
        name = ""
        if start.kind is Kind.STRING:
            literals.append(self._path())
            while self.skip("|"):
                literals.append(self._path())
            name = "string"
        else:
            name = self.expect_kind(Kind.NAME).text
            if name not in _TYPES:
                raise SyntaxFault(start.place, f"'{name}' is no type; known are {', '.join(_TYPES)}")
        arrays = 0
        while self.is_at("["):
            self.take()
            self.expect("]")
            arrays += 1
        nullable = self.skip("?")
        return syntax.TypeName(start.place, name, tuple(literals), arrays, nullable)
