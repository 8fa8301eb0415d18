"""Expressions: a recursive descent by the precedence table of "Bicep operators"."""

from __future__ import annotations

import re

from infra.azure.lint import syntax
from infra.azure.lint.cursor import Cursor
from infra.azure.lint.report import SyntaxFault
from infra.azure.lint.tokens import Kind, Token, interpolation_end

#: From the loosest to the tightest.
_LEVELS = (
    ("??",),
    ("||",),
    ("&&",),
    ("==", "!=", "=~", "!~"),
    ("<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile(r"\\(u\{[0-9A-Fa-f]+\}|.)")


class Expressions(Cursor):
    """Parses expressions. Every method raises `SyntaxFault`."""

    def expression(self) -> syntax.Expression:
        test = self._binary(0)
        if not self.is_at("?"):
            return test
        self.take()
        self.newlines()
        then = self.expression()
        self.newlines()
        self.expect(":")
        self.newlines()
        return syntax.Ternary(test.place, test, then, self.expression())

    def _binary(self, level: int) -> syntax.Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.is_at(*_LEVELS[level]):
            operator = self.take().text
            self.newlines()
            left = syntax.Binary(left.place, operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> syntax.Expression:
        if self.is_at("!", "-"):
            operator = self.take()
            return syntax.Unary(operator.place, operator.text, self._unary())
        return self._postfix(self._primary())

    def _postfix(self, subject: syntax.Expression) -> syntax.Expression:
        while True:
            if self.is_at(".", ".?"):
                safe = self.take().text == ".?"
                name = self.expect_kind(Kind.NAME)
                subject = syntax.Member(name.place, subject, name.text, safe)
            elif self.is_at("[", "[?"):
                safe = self.take().text == "[?"
                index = self.expression()
                self.expect("]")
                subject = syntax.Index(index.place, subject, index, safe)
            elif self.is_at("!"):
                subject = syntax.Unary(self.take().place, "assert", subject)
            else:
                return subject

    def _primary(self) -> syntax.Expression:
        token = self.now
        if token.kind is Kind.STRING:
            return self._string(self.take())
        if token.kind is Kind.NUMBER:
            return syntax.Literal(self.take().place, int(token.text))
        if token.kind is Kind.NAME:
            return self._named(self.take())
        if self.is_at("{"):
            return self._object()
        if self.is_at("["):
            return self._array()
        if self.is_at("("):
            return self._grouped()
        raise SyntaxFault(token.place, f"an expression is expected here, not {token}")

    def _named(self, name: Token) -> syntax.Expression:
        if name.text in _WORDS:
            return syntax.Literal(name.place, _WORDS[name.text])
        if self.is_at("("):
            return syntax.Call(name.place, name.text, self.arguments())
        if self.skip("=>"):
            return syntax.Lambda(name.place, (syntax.Name(name.place, name.text),), self.expression())
        return syntax.Name(name.place, name.text)

    def arguments(self) -> tuple[syntax.Expression, ...]:
        self.expect("(")
        found: list[syntax.Expression] = []
        self.newlines()
        while not self.is_at(")"):
            found.append(self.expression())
            self.newlines()
            if not self.is_at(")"):
                self.expect(",")
                self.newlines()
        self.expect(")")
        return tuple(found)

    def _grouped(self) -> syntax.Expression:
        start = self.expect("(")
        self.newlines()
        inner = self.expression()
        names = [inner]
        while self.skip(","):
            names.append(self.expression())
        self.newlines()
        self.expect(")")
        if self.is_at("=>"):
            self.take()
            bound = tuple(name for name in names if isinstance(name, syntax.Name))
            if len(bound) != len(names):
                raise SyntaxFault(start.place, "a lambda's variables are names")
            return syntax.Lambda(start.place, bound, self.expression())
        if len(names) > 1:
            raise SyntaxFault(start.place, "'=>' is expected behind several names in parentheses")
        return inner

    def _object(self) -> syntax.Object:
        start = self.expect("{")
        fields: list[syntax.Field] = []
        self.newlines()
        while not self.is_at("}"):
            fields.append(self._field())
            if not self.is_at("}"):
                self._next_item()
        self.expect("}")
        return syntax.Object(start.place, tuple(fields))

    def _field(self) -> syntax.Field:
        token = self.take()
        key: str | None = token.text
        parts: tuple[syntax.Expression, ...] = ()
        if token.kind is Kind.STRING:
            quoted = self._string(token)
            key = str(quoted.value) if isinstance(quoted, syntax.Literal) else None
            parts = quoted.parts if isinstance(quoted, syntax.Interpolated) else ()
        elif token.kind is not Kind.NAME:
            raise SyntaxFault(token.place, f"a property's name is expected here, not {token}")
        self.expect(":")
        self.newlines()
        return syntax.Field(token.place, key, parts, self.expression())

    def _next_item(self) -> None:
        """Between two items stands a comma or the end of a line."""
        if not self.skip(",") and self.now.kind is not Kind.NEWLINE:
            raise SyntaxFault(
                self.now.place, f"a comma or the end of the line is expected here, not {self.now}"
            )
        self.newlines()

    def _array(self) -> syntax.Array | syntax.Loop:
        start = self.expect("[")
        self.newlines()
        if self.is_at("for"):
            return self._loop(start)
        items: list[syntax.Expression] = []
        while not self.is_at("]"):
            items.append(self.expression())
            if not self.is_at("]"):
                self._next_item()
        self.expect("]")
        return syntax.Array(start.place, tuple(items))

    def _loop(self, start: Token) -> syntax.Loop:
        self.expect("for")
        several = self.skip("(")
        names = [self.expect_kind(Kind.NAME)]
        if several:
            self.expect(",")
            names.append(self.expect_kind(Kind.NAME))
            self.expect(")")
        self.expect("in")
        items = self.expression()
        self.expect(":")
        self.newlines()
        body = self.body()
        self.newlines()
        self.expect("]")
        return syntax.Loop(
            start.place, tuple(syntax.Name(name.place, name.text) for name in names), items, body
        )

    def body(self) -> syntax.Expression:
        """What a resource or module is: an object, perhaps under a condition or in a loop."""
        if not self.is_at("if"):
            return self.expression()
        start = self.take()
        self.expect("(")
        test = self.expression()
        self.expect(")")
        self.newlines()
        return syntax.Condition(start.place, test, self._object())

    def _string(self, token: Token) -> syntax.Literal | syntax.Interpolated:
        if token.text.startswith("'''"):
            return syntax.Literal(token.place, token.text[3:-3])
        parts: list[syntax.Expression] = []
        plain: list[str] = []
        position, end = token.offset + 1, token.offset + len(token.text) - 1
        while position < end:
            if self.text.startswith("${", position):
                after = interpolation_end(self.text, position + 2, token.place)
                parts.append(self._part(position + 2, after - 1))
                position = after
            elif self.text[position] == "\\":
                match = _ESCAPED.match(self.text, position)
                assert match is not None  # the tokens have seen it
                plain.append(_unescaped(match[1]))
                position = match.end()
            else:
                plain.append(self.text[position])
                position += 1
        if parts:
            return syntax.Interpolated(token.place, tuple(parts))
        return syntax.Literal(token.place, "".join(plain))

    def _part(self, start: int, end: int) -> syntax.Expression:
        inner = Expressions(self.text[:end], start)
        found = inner.expression()
        if inner.now.kind is not Kind.END:
            raise SyntaxFault(inner.now.place, f"the interpolation must end here, before {inner.now}")
        return found


def _unescaped(escape: str) -> str:
    if escape.startswith("u{"):
        return chr(int(escape[2:-1], 16))
    return _ESCAPES.get(escape, escape)
