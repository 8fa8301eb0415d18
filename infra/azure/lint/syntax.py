"""The tree of a Bicep file. Every node knows its place."""

from __future__ import annotations

from dataclasses import dataclass

from infra.azure.lint.report import Place


@dataclass(frozen=True, slots=True)
class Node:
    place: Place


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A string without interpolations, a number, `true`, `false` or `null`."""

    value: str | int | bool | None


@dataclass(frozen=True, slots=True)
class Interpolated(Node):
    """A string with interpolations. Only what stands between its texts is kept."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`key: value` of an object. `key` is None where it is interpolated; then `key_parts` has what is in it."""

    key: str | None
    key_parts: tuple[Expression, ...]
    value: Expression


@dataclass(frozen=True, slots=True)
class Object(Node):
    fields: tuple[Field, ...]

    def get(self, key: str) -> Expression | None:
        return next((field.value for field in self.fields if field.key == key), None)


@dataclass(frozen=True, slots=True)
class Array(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """`[for item in items: body]`, `[for (item, index) in items: body]`."""

    names: tuple[Name, ...]
    items: Expression
    body: Expression


@dataclass(frozen=True, slots=True)
class Condition(Node):
    """`if (test) body`, of a resource or module."""

    test: Expression
    body: Expression


@dataclass(frozen=True, slots=True)
class Ternary(Node):
    test: Expression
    then: Expression
    other: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`!x`, `-x`, and `x!` (written `assert`)."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`subject.name`; `subject.?name` is safe."""

    subject: Expression
    name: str
    safe: bool


@dataclass(frozen=True, slots=True)
class Index(Node):
    subject: Expression
    index: Expression
    safe: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`name(…)`. Functions of namespaces and resources, `az.x()`, are not of the part that the lint knows."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    names: tuple[Name, ...]
    body: Expression


type Expression = (
    Literal
    | Interpolated
    | Name
    | Object
    | Array
    | Loop
    | Condition
    | Ternary
    | Binary
    | Unary
    | Member
    | Index
    | Call
    | Lambda
)


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """`string`, `int[]`, `'a' | 'b'`, with `?` where null is legal too."""

    #: A type's name; or the legal strings where it is a union of them.
    name: str
    literals: tuple[str, ...] = ()
    arrays: int = 0
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Decorator(Node):
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Scope(Node):
    value: Expression


@dataclass(frozen=True, slots=True)
class Declared(Node):
    """What every statement that declares a name has."""

    name: str
    decorators: tuple[Decorator, ...]


@dataclass(frozen=True, slots=True)
class Param(Declared):
    type: TypeName
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Var(Declared):
    value: Expression


@dataclass(frozen=True, slots=True)
class Output(Declared):
    type: TypeName
    value: Expression


@dataclass(frozen=True, slots=True)
class Resource(Declared):
    """`type`: like `Microsoft.Web/sites@2024-11-01`."""

    type: str
    existing: bool
    value: Expression


@dataclass(frozen=True, slots=True)
class Module(Declared):
    path: str
    value: Expression


type Statement = Scope | Param | Var | Output | Resource | Module


@dataclass(frozen=True, slots=True)
class File:
    statements: tuple[Statement, ...]

    def of[S: Statement](self, kind: type[S]) -> list[S]:
        return [statement for statement in self.statements if isinstance(statement, kind)]
