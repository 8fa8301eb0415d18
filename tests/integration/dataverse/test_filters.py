"""The $filter parser: what it prints it reads, and what it means agrees with a plain model."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.filters import (
    COMPARISONS,
    FUNCTIONS,
    Among,
    Both,
    Call,
    Compare,
    Node,
    Not,
    Path,
    parse,
    unparse,
)
from infra.local.dataverse.literals import Literal, Type
from infra.local.dataverse.predicates import Field, compile_filter

TYPES = {"text": Type.STRING, "number": Type.NUMBER, "yes": Type.BOOLEAN, "id": Type.GUID}
GUIDS = [f"00000000-0000-0000-0000-00000000000{number}" for number in range(4)]

texts = st.text(string.ascii_letters + " '%/(),æØ", max_size=5)
numbers = st.integers(-5, 5) | st.floats(-5, 5, allow_nan=False).map(lambda value: round(value, 2))
values: dict[str, st.SearchStrategy[Any]] = {
    "text": texts, "number": numbers, "yes": st.booleans(), "id": st.sampled_from(GUIDS),
}  # fmt: skip
rows = st.fixed_dictionaries({name: st.none() | strategy for name, strategy in values.items()})


def literals(name: str) -> st.SearchStrategy[Literal]:
    return values[name].map(lambda value: Literal(TYPES[name], value))


def leaves() -> st.SearchStrategy[Node]:
    names = st.sampled_from(sorted(TYPES))
    compares = names.flatmap(
        lambda name: st.builds(
            Compare,
            st.sampled_from(COMPARISONS),
            st.just(Path((name,))),
            literals(name) | st.just(Literal(Type.NULL, None)),
        )
    )
    among = names.flatmap(
        lambda name: st.builds(
            Among, st.just(Path((name,))), st.lists(literals(name), min_size=1, max_size=3).map(tuple)
        )
    )
    calls = st.builds(Call, st.sampled_from(FUNCTIONS), st.just(Path(("text",))), literals("text"))
    return compares | among | calls


nodes: st.SearchStrategy[Node] = st.recursive(
    leaves(), lambda inner: st.builds(Not, inner) | st.builds(Both, inner, inner, st.booleans()), max_leaves=8
)


def field(names: tuple[str, ...]) -> Field:
    name = names[0]
    return Field(TYPES[name], lambda row: row[name])


def folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def model(node: Node, row: dict[str, Any]) -> bool:
    """The meaning of a filter, written down the slow way."""
    match node:
        case Not(inner):
            return not model(inner, row)
        case Both(left, right, either):
            results = [model(left, row), model(right, row)]
            return any(results) if either else all(results)
        case Among(path, items):
            return folded(row[path.names[0]]) in [folded(item.value) for item in items]
        case Call(name, path, text):
            value, part = folded(row[path.names[0]]), folded(text.value)
            if value is None:
                return False
            return bool({"contains": part in value, "startswith": value.startswith(part),
                         "endswith": value.endswith(part)}[name])  # fmt: skip
        case Compare(op, left, right):
            assert isinstance(left, Path)
            assert isinstance(right, Literal)
            one, two = folded(row[left.names[0]]), folded(right.value)
            if op in {"eq", "ne"}:
                return bool((one == two) is (op == "eq"))
            if one is None or two is None:
                return False
            return bool({"gt": one > two, "ge": one >= two, "lt": one < two, "le": one <= two}[op])


@given(nodes)
@settings(max_examples=80, deadline=None)
def test_reads_what_it_prints(node: Node) -> None:
    assert parse(unparse(node)) == node


@given(nodes, rows)
@settings(max_examples=80, deadline=None)
def test_means_what_the_model_says(node: Node, row: dict[str, Any]) -> None:
    assert compile_filter(parse(unparse(node)), field)(row) is model(node, row)


@given(st.text(string.ascii_letters + "'()/ ,-@:1234567890", max_size=30))
@settings(max_examples=80, deadline=None)
def test_any_other_text_is_a_client_error(text: str) -> None:
    try:
        parse(text)
    except ApiError as error:
        assert error.status in {400, 501}  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("text eq 'a' or text eq 'b' and yes eq true", "(text eq 'a') or ((text eq 'b') and (yes eq true))"),
        ("not contains(text,'a') and yes eq true", "(not (contains(text,'a'))) and (yes eq true)"),
        ("(text eq 'a' or text eq 'b') and yes eq true", "((text eq 'a') or (text eq 'b')) and (yes eq true)"),
        ("text eq @p1", "text eq 'it''s'"),
        ("5 lt number", "5 lt number"),
        ("when ge 2024-01-02T03:04:05Z", "when ge 2024-01-02T03:04:05Z"),
        ("kind eq Microsoft.Dynamics.CRM.Kind'One'", "kind eq 'One'"),
        ("  account/name  eq  null ", "account/name eq null"),
    ],
)
def test_precedence_and_literals(text: str, printed: str) -> None:
    assert unparse(parse(text, {"@p1": "'it''s'"})) == printed


@pytest.mark.parametrize(
    "text",
    ["", "text", "text eq", "text eq 'a", "text like 'a'", "(text eq 'a'", "text eq 'a')", "nope(text,'a')",
     "text eq @p", "contains('a',text)", "contains(text,1)", "text in ()", "id eq guid'x'",
     "(" * 200 + "text eq 'a'" + ")" * 200,
     "not " * 200 + "text eq 'a'"],
)  # fmt: skip
def test_malformed(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(text)
    assert caught.value.status == 400


def test_lambda_is_said_to_be_unsupported() -> None:
    with pytest.raises(ApiError) as caught:
        parse("contacts/any(c:c/name eq 'x')")
    assert caught.value.status == 501


@pytest.mark.parametrize(
    "text", ["text eq 1", "number eq 'a'", "id eq 'a'", "yes eq 1", "contains(number,'a')"]
)
def test_types_must_fit(text: str) -> None:
    with pytest.raises(ApiError) as caught:
        compile_filter(parse(text), field)
    assert caught.value.status == 400


@pytest.mark.parametrize("word", ["or", "and"])
def test_a_chain_may_be_longer_than_the_stack_is_deep(word: str) -> None:
    operator, wanted = ("eq", 2999) if word == "or" else ("ne", 3000)
    node = parse(f" {word} ".join(f"number {operator} {value}" for value in range(3000)))
    holds = compile_filter(node, lambda names: Field(TYPES[names[0]], lambda row: row[names[0]]))
    assert [number for number in (2998.5, wanted, -1) if holds({"number": number})] == (
        [2999] if word == "or" else [2998.5, 3000, -1]
    )
    printed = unparse(node)
    assert (printed.count(f" {word} "), printed.count("(")) == (2999, 3000)
