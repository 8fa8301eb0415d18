"""The part of the language that the lint reads: what it takes, what it refuses, what expressions give."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.azure.lint import syntax
from infra.azure.lint.files import Project, check_file
from infra.azure.lint.report import SyntaxFault
from infra.azure.lint.statements import parse


def value_of(expression: str) -> syntax.Expression:
    (statement,) = parse(f"var x = {expression}").of(syntax.Var)
    return statement.value


def findings(folder: Path, text: str) -> list[str]:
    path = folder / "main.bicep"
    path.write_text(text)
    project = Project(folder)
    check_file(project, path)
    return [f"{found.rule}: {found.message}" for found in sorted(project.findings)]


def test_operators_bind_as_documented() -> None:
    found = value_of("a || b && c == d + e * -f ? g ?? h : i")
    assert isinstance(found, syntax.Ternary)
    assert isinstance(found.test, syntax.Binary)
    assert found.test.operator == "||"
    right = found.test.right
    assert isinstance(right, syntax.Binary)
    assert right.operator == "&&"
    equal = right.right
    assert isinstance(equal, syntax.Binary)
    assert equal.operator == "=="
    total = equal.right
    assert isinstance(total, syntax.Binary)
    assert total.operator == "+"
    assert isinstance(found.then, syntax.Binary)
    assert found.then.operator == "??"


def test_equal_operators_go_from_left_to_right() -> None:
    found = value_of("a - b - c")
    assert isinstance(found, syntax.Binary)
    assert isinstance(found.left, syntax.Binary)


def test_strings_have_escapes_and_interpolations() -> None:
    plain = value_of(r"'it\'s \\ \n \u{1F600} \${no}'")
    assert isinstance(plain, syntax.Literal)
    assert plain.value == "it's \\ \n \U0001f600 ${no}"
    mixed = value_of("'a${b}c${toLower('${d}}')}e'")
    assert isinstance(mixed, syntax.Interpolated)
    assert [type(part) for part in mixed.parts] == [syntax.Name, syntax.Call]
    several = value_of("'''it's\n${as it is}'''")
    assert isinstance(several, syntax.Literal)
    assert several.value == "it's\n${as it is}"


def test_places_inside_of_strings_are_those_of_the_file() -> None:
    (statement,) = parse("\nvar x = 'a${b}'").of(syntax.Var)
    assert isinstance(statement.value, syntax.Interpolated)
    (part,) = statement.value.parts
    assert (part.place.line, part.place.column) == (2, 13)


def test_comments_and_both_separators_are_taken() -> None:
    found = value_of("{ a: 1, b: [ // one\n 1\n /* two\n */ 2 ]\n\n 'c-d': { } }")
    assert isinstance(found, syntax.Object)
    assert [field.key for field in found.fields] == ["a", "b", "c-d"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("var x = 'a", 1, "does not end"),
        ("var x = 'a${b'", 1, "does not end"),
        (r"var x = '\q'", 1, "escape"),
        ("var x = #", 1, "unexpected character"),
        ("var x = [\n1 2\n]", 2, "comma"),
        ("var x = { a 1 }", 1, "':'"),
        ("var x =\n", 1, "expression"),
        ("var x = 1 var y = 2", 1, "line must end"),
        ("var x = (a, b)", 1, "'=>'"),
        ("var x = (a, 1) => a", 1, "lambda"),
        ("param x text", 1, "no type"),
        ("\n\nfunc f() string => 'x'", 3, "knows no statement 'func'"),
        ("resource x 'a${b}' = {}", 1, "interpolation"),
        ("var x = '${a b}'", 1, "interpolation must end"),
    ],
)
def test_a_syntax_fault_has_its_place(text: str, line: int, said: str) -> None:
    with pytest.raises(SyntaxFault) as caught:
        parse(text)
    assert caught.value.place.line == line
    assert said in caught.value.message


@pytest.mark.parametrize(
    "statements",
    [
        "param a string?\noutput x string = a ?? 'none'",
        "param a 'x' | 'y'\noutput x 'x' | 'y' | 'z' = a",
        "param a int[]\noutput x int = a[0] + 1",
        "param a object\noutput x string = a.any.thing['is legal']",
        "var a = { b: { c: 'd' } }\noutput x string = a.b['c']",
        "var a = [for (n, i) in ['x']: '${n}${i}']\noutput x string[] = a",
        "output x string[] = map(['x'], n => toUpper(n))",
        "output x bool = contains([1, 2], 2) && !empty('a') || 1 < 2",
        "output x string = items({ a: 'b' })[0].value",
        "param a bool\noutput x object = union({ b: 1 }, a ? { c: 2 } : {})",
        "@minValue(1)\n@maxValue(9)\nparam a int\noutput x int = a * 2",
    ],
)
def test_what_is_legal_has_no_finding(tmp_path: Path, statements: str) -> None:
    assert findings(tmp_path, statements) == []


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        ("output x string = y", "nothing is called 'y'"),
        ("param a string?\noutput x string = a", "null"),
        ("param a string?\noutput x string = 'b${a}'", "may be null"),
        ("param a 'x' | 'y'\noutput x 'x' = a", "'x' is expected, not 'y'"),
        ("output x int = 'a'", "a whole number is expected"),
        ("output x bool = 1 && true", "true or false is expected"),
        ("output x string = 'a' + 'b'", "a whole number is expected"),
        ("output x bool = 1 == 'a'", "never equal"),
        ("var a = b\nvar b = a\noutput x string = a", "stands for itself"),
        ("var a = { b: 1 }\noutput x int = a.c", "no property 'c'"),
        ("output x string = 'a'.b", "has no properties"),
        ("output x object = { a: 1\n a: 2 }", "twice"),
        ("output x string = '${[1]}'", "cannot stand in a string"),
        ("output x array = [for a in 'text': a]", "an array is expected"),
        ("output x string = listKeys('a', 'b')", "no function 'listKeys'"),
        ("targetScope = 'tenant'", "targetScope is one of"),
        ("@allowed(['a', 1])\nparam a string\noutput x string = a", "@allowed"),
        ("@maxValue(1)\nparam a string\noutput x string = a", "whole numbers"),
        ("@minimum(1)\nparam a int\noutput x int = a", "no decorator 'minimum'"),
        ("@allowed(['a'])\nvar a = 'a'\noutput x string = a", "is for parameters"),
        ("@minValue(5)\nparam a int = 4\noutput x int = a", "from 5 is expected"),
        ("output x string = resourceId('Microsoft.Web/site', 'a')", "no known type"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, statements: str, said: str) -> None:
    found = findings(tmp_path, statements)
    assert any(said in one for one in found), found


def test_modules_that_use_each_other_are_told_of_once_each(tmp_path: Path) -> None:
    (tmp_path / "other.bicep").write_text("output a string = 1 +\n")
    text = "module m 'other.bicep' = {\n  name: 'm'\n}\nmodule n 'other.bicep' = {\n  name: 'n'\n}\n"
    found = findings(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith("syntax")
