"""Every node of an expression."""

from __future__ import annotations

from collections.abc import Iterator

from infra.azure.lint import syntax


def walk(node: syntax.Expression) -> Iterator[syntax.Expression]:
    """`node` and all that is in it."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: syntax.Expression) -> tuple[syntax.Expression, ...]:
    match node:
        case syntax.Object(fields=fields):
            return tuple(part for field in fields for part in (*field.key_parts, field.value))
        case syntax.Array(items=items) | syntax.Interpolated(parts=items) | syntax.Call(arguments=items):
            return items
        case syntax.Loop(items=source, body=body):
            return (source, body)
        case syntax.Condition(test=test, body=body):
            return (test, body)
        case syntax.Ternary(test=test, then=then, other=other):
            return (test, then, other)
        case syntax.Binary(left=left, right=right):
            return (left, right)
        case syntax.Unary(operand=inner) | syntax.Member(subject=inner) | syntax.Lambda(body=inner):
            return (inner,)
        case syntax.Index(subject=subject, index=index):
            return (subject, index)
    return ()
