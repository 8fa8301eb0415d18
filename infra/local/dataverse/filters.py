"""$filter: text -> tree -> predicate.

The tree is made of frozen values, so that tests can write one, print it (`unparse`) and read it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.errors import bad_query, unsupported
from infra.local.dataverse.literals import Literal, Token, Type, parse_literal, tokenize, write_literal

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPARISONS: Final = ("eq", "ne", "gt", "ge", "lt", "le")
FUNCTIONS: Final = ("contains", "startswith", "endswith")
_DEPTH: Final = 100


@dataclass(frozen=True, slots=True)
class Path:
    """A property, possibly of the record a navigation property leads to."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`."""

    op: str
    left: Path | Literal
    right: Path | Literal


@dataclass(frozen=True, slots=True)
class Among:
    """`path in (…)`."""

    path: Path
    items: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """contains, startswith or endswith."""

    name: str
    path: Path
    text: Literal


@dataclass(frozen=True, slots=True)
class Not:
    """Negation."""

    node: Node


@dataclass(frozen=True, slots=True)
class Both:
    """`left and right`, or with `either` `left or right`."""

    left: Node
    right: Node
    either: bool = False


type Node = Compare | Among | Call | Not | Both


def chain(node: Both) -> list[Node]:
    """The parts of `a or b or c` in order: a tree as deep as the chain is long, which may be thousands."""
    parts: list[Node] = []
    rest: Node = node
    while isinstance(rest, Both) and rest.either is node.either:
        parts.append(rest.right)
        rest = rest.left
    return [rest, *reversed(parts)]


def parse(text: str, aliases: Mapping[str, str] | None = None) -> Node:
    """The tree of a $filter. `aliases` are parameter aliases of the query (`@p1`). Raises ApiError."""
    return _Parser(text, aliases or {}).run()


def unparse(node: Node) -> str:
    """A $filter that parses to this tree."""
    match node:
        case Both():
            return (" or " if node.either else " and ").join(f"({unparse(part)})" for part in chain(node))
        case Not(inner):
            return f"not ({unparse(inner)})"
        case Call(name, path, text):
            return f"{name}({'/'.join(path.names)},{write_literal(text)})"
        case Among(path, items):
            return f"{'/'.join(path.names)} in ({','.join(map(write_literal, items))})"
        case Compare(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"


def _operand(operand: Path | Literal) -> str:
    return write_literal(operand) if isinstance(operand, Literal) else "/".join(operand.names)


class _Parser:
    """Recursive descent: or < and < not < comparison."""

    def __init__(self, text: str, aliases: Mapping[str, str]) -> None:
        self._text = text
        self._aliases = aliases
        self._tokens = tokenize(text)
        self._next = 0
        self._depth = 0

    def run(self) -> Node:
        node = self._either()
        if self._peek.kind != "end":
            raise self._syntax()
        return node

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self, kind: str | None = None, text: str | None = None) -> Token:
        token = self._peek
        if (kind is not None and token.kind != kind) or (text is not None and token.text != text):
            raise self._syntax()
        self._next += 1
        return token

    def _is_word(self, word: str) -> bool:
        return self._peek.kind == "name" and self._peek.text == word

    def _syntax(self) -> Exception:
        return bad_query(f"Syntax error at position {self._peek.position} in '{self._text}'.")

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            raise bad_query("The filter is nested too deeply.")
        node = self._both()
        while self._is_word("or"):
            self._take()
            node = Both(node, self._both(), either=True)
        self._depth -= 1
        return node

    def _both(self) -> Node:
        node = self._unary()
        while self._is_word("and"):
            self._take()
            node = Both(node, self._unary())
        return node

    def _unary(self) -> Node:
        if self._is_word("not"):
            self._take()
            self._depth += 1
            if self._depth > _DEPTH:
                raise bad_query("The filter is nested too deeply.")
            inner = self._unary()
            self._depth -= 1
            return Not(inner)
        if self._peek.kind == "(":
            self._take()
            node = self._either()
            self._take(")")
            return node
        return self._comparison()

    def _comparison(self) -> Node:
        token = self._peek
        if token.kind == "name" and self._tokens[self._next + 1].kind == "(":
            return self._call(token.text)
        left = self._value()
        if self._is_word("in") and isinstance(left, Path):
            self._take()
            return Among(left, self._list())
        if self._peek.kind != "name" or self._peek.text not in COMPARISONS:
            raise self._syntax()
        return Compare(self._take().text, left, self._value())

    def _call(self, name: str) -> Node:
        if name not in FUNCTIONS:
            if name.startswith("Microsoft.Dynamics.CRM."):
                raise unsupported(f"the query function {name}")
            raise bad_query(
                f"An unknown function with name '{name}' was found. This may also be a function import."
            )
        self._take()
        self._take("(")
        path = self._value()
        self._take(",")
        text = self._value()
        self._take(")")
        if not isinstance(path, Path) or not isinstance(text, Literal) or text.type is not Type.STRING:
            raise bad_query(
                f"No function signature for the function with name '{name}' matches the specified arguments."
            )
        return Call(name, path, text)

    def _list(self) -> tuple[Literal, ...]:
        self._take("(")
        items: list[Literal] = []
        while True:
            item = self._value()
            if not isinstance(item, Literal):
                raise self._syntax()
            items.append(item)
            if self._peek.kind != ",":
                break
            self._take()
        self._take(")")
        return tuple(items)

    def _value(self) -> Path | Literal:
        token = self._take()
        if token.literal is not None:
            return token.literal
        if token.kind == "alias":
            return self._alias(token.text)
        if token.kind != "name":
            self._next -= 1
            raise self._syntax()
        names = [token.text]
        while self._peek.kind == "/":
            self._take()
            names.append(self._take("name").text)
        if self._peek.kind == "(" and names[-1] in {"any", "all"}:
            raise unsupported(f"the lambda operator {names[-1]}")
        return Path(tuple(names))

    def _alias(self, name: str) -> Literal:
        value: Any = self._aliases.get(name)
        literal = parse_literal(value) if value is not None else None
        if literal is None:
            raise bad_query(f"The parameter alias '{name}' has no value.")
        return literal
