"""Route templates."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.host.routes import TemplateError, parse_template, split_path

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("template", "path", "values"),
    [
        ("jobs", "/jobs", {}),
        ("Jobs", "/jOBS/", {}),
        ("jobs", "/jobs/x", None),
        ("jobs", "/", None),
        ("jobs/{id}", "/jobs/a%20b", {"id": "a b"}),
        ("jobs/{id}", "/jobs/a%2Fb", {"id": "a%2Fb"}),
        ("jobs/{id}", "/jobs", None),
        ("jobs/{id}", "/jobs//", None),
        ("jobs/{id?}", "/jobs", {}),
        ("jobs/{id?}", "/jobs/7", {"id": "7"}),
        ("jobs/{id=new}", "/jobs", {"id": "new"}),
        ("{*rest}", "/", {}),
        ("{*rest}", "/a/b/", {"rest": "a/b"}),
        ("x/{**rest}", "/x/a/b", {"rest": "a/b"}),
        ("x/{*rest}", "/y/a", None),
        ("{ignored:maxlength(0)?}", "/", {}),
        ("{ignored:maxlength(0)?}", "/x", None),
        ("{name}.{ext}", "/a.b.c", {"name": "a", "ext": "b.c"}),
        ("{name}.{ext}", "/ab", None),
        ("v-{n:int}/x", "/V-3/x", {"n": "3"}),
        ("v-{n:int}/x", "/v-a/x", None),
        ("{{x}}/{y}", "/{x}/1", {"y": "1"}),
    ],
)
def test_matching(template: str, path: str, values: dict[str, str] | None) -> None:
    assert parse_template(template).match(split_path(path)) == values


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        ("int", ["1", "-5", "2147483647"], ["x", "1.0", "2147483648", "\u0661"]),
        ("long", ["9223372036854775807"], ["9223372036854775808"]),
        ("bool", ["true", "FALSE"], ["1"]),
        ("guid", ["01234567-89ab-cdef-0123-456789abcdef"], ["0123"]),
        ("alpha", ["abcXYZ"], ["a1", "é"]),
        ("datetime", ["2026-11-29", "2026-11-29T10:00:00"], ["yesterday"]),
        ("double", ["1.5", "-2e3", ".5"], ["1,5", ""]),
        ("decimal", ["1.5"], ["x"]),
        ("length(3)", ["abc"], ["ab", "abcd"]),
        ("length(2,3)", ["ab", "abc"], ["a", "abcd"]),
        ("minlength(2)", ["ab"], ["a"]),
        ("maxlength(2)", ["ab"], ["abc"]),
        ("min(3)", ["3"], ["2", "x"]),
        ("max(3)", ["3"], ["4"]),
        ("range(1,3)", ["1", "3"], ["0", "4"]),
        (r"regex(^\d{{2}}(a|b)$)", ["12a", "12B"], ["12", "123a"]),
        ("required", ["x"], []),
        ("int:min(1)", ["1"], ["0"]),
        ("minlength(2):alpha", ["ab"], ["a", "12"]),
    ],
)
def test_constraints(constraint: str, good: list[str], bad: list[str]) -> None:
    template = parse_template(f"{{x:{constraint}}}")
    for text in good:
        assert template.match([text]) == {"x": text}, text
    for text in bad:
        assert template.match([text]) is None, text


@pytest.mark.parametrize(
    "template",
    [
        "{",
        "}",
        "{}",
        "a//b",
        "{a}{b}",
        "{a}/{A}",
        "{*a}/b",
        "x{*a}",
        "{a:unknown}",
        "{a:length(x)}",
        "{a:regex([)}",
        "{a?x}",
        "{a:}",
    ],
)
def test_bad_templates(template: str) -> None:
    with pytest.raises(TemplateError):
        parse_template(template)


def test_precedence_is_literal_then_constrained_then_free_then_catch_all() -> None:
    wanted = ["a/b", "a/x-{c}", "a/{c}", "a/{*c:int}", "a/{*c}", "{a}/b", "{*a}"]
    templates = [parse_template(text) for text in reversed(wanted)]
    ordered = sorted(templates, key=lambda template: template.precedence)
    assert [template.text for template in ordered] == wanted
    assert parse_template("a/{c:int}").precedence < parse_template("a/{c}").precedence


@given(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
def test_any_segment_comes_back_decoded(texts: list[str]) -> None:
    template = parse_template("/".join(f"{{p{index}}}" for index in range(len(texts))))
    path = "/" + "/".join(quote(text, safe="") for text in texts)
    assert template.match(split_path(path)) == {f"p{index}": text for index, text in enumerate(texts)}


@given(st.text(max_size=40))
def test_a_template_is_parsed_or_refused_but_never_breaks(text: str) -> None:
    try:
        template = parse_template(text)
    except TemplateError:
        return
    template.match(split_path("/a/b"))
    template.match([])


@given(st.text(max_size=40))
def test_any_path_can_be_split(text: str) -> None:
    assert all("/" not in part for part in split_path(text))


@given(NAMES, NAMES, TEXTS)
def test_literals_match_only_themselves(literal: str, other: str, text: str) -> None:
    template = parse_template(f"{literal}/{{x}}")
    assert template.match([literal.upper(), text]) == {"x": text}
    if other != literal:
        assert template.match([other, text]) is None
