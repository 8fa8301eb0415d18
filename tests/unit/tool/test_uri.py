"""Uri templates: what is accepted, what a uri's parameters are, and which templates are the same."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.tool.uri import UriTemplate


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("docs://tools", ()),
        ("docs://tools/{name}", ("name",)),
        ("docs://{area}/{name}.md?v={version}", ("area", "name", "version")),
        ("urn:isbn:{number}", ("number",)),
        ("item:{id}", ("id",)),
    ],
)
def test_templates(text: str, names: tuple[str, ...]) -> None:
    template = UriTemplate.parse(text)
    assert (template.text, template.names) == (text, names)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be absolute"),
        ("tools/{name}", "must be absolute"),
        ("/tools", "must be absolute"),
        ("{scheme}://tools", "must be absolute"),
        ("docs:", "must be absolute"),
        ("docs://a b", "without blanks"),
        ("docs://a\n", "without blanks"),
        ("docs://{a}{b}", "two expressions without anything between"),
        ("docs://{a", "a brace without its partner"),
        ("docs://a}", "a brace without its partner"),
        ("docs://{{a}}", "a brace without its partner"),
        ("docs://{}", "must hold a parameter's name"),
        ("docs://{a*}", "must hold a parameter's name"),
        ("docs://x{?q}", "must hold a parameter's name"),
        ("docs://{1a}", "must hold a parameter's name"),
        ("docs://{a}/{a}", "names a parameter twice"),
    ],
)
def test_what_is_no_template_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        UriTemplate.parse(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "values"),
    [
        ("docs://a/b.md", {"area": "a", "name": "b"}),
        ("DOCS://a/b.md", {"area": "a", "name": "b"}),
        ("docs://a%20b/%C3%A9.md", {"area": "a b", "name": "é"}),
        ("docs://a/%252F.md", {"area": "a", "name": "%2F"}),
        ("docs://a/b+c.md", {"area": "a", "name": "b+c"}),
    ],
)
def test_values_are_decoded_once(uri: str, values: dict[str, str]) -> None:
    assert UriTemplate.parse("docs://{area}/{name}.md").values(uri) == values


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("docs://a", "does not fit"),
        ("docs:///b", "does not fit"),
        ("docs://a/b/c", "does not fit"),
        ("docs://a/b?c", "does not fit"),
        ("docs://a/b#c", "does not fit"),
        ("docs://a/", "does not fit"),
        ("docs://a/b\n", "does not fit"),
        ("docs://a/..", "'name' must be one path segment"),
        ("docs://a/%2e%2e", "'name' must be one path segment"),
        ("docs://a/x%2Fy", "'name' must be one path segment"),
        ("docs://a/x%5Cy", "'name' must be one path segment"),
        ("docs://a/%ff", "'name' is not UTF-8"),
        ("docs://a/%4", "'name' is not percent-encoded"),
        ("docs://a/%zz", "'name' is not percent-encoded"),
        ("docs://a/%00", "'name' holds"),
    ],
)
def test_a_uri_that_does_not_fit_is_refused(uri: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        UriTemplate.parse("docs://{area}/{name}").values(uri)


@given(st.text(min_size=1).filter(lambda text: not set(text) & set("/\\\0") and text not in (".", "..")))
def test_any_segment_survives(text: str) -> None:
    try:
        encoded = quote(text, safe="")
    except UnicodeEncodeError:
        return
    assert UriTemplate.parse("docs://x/{name}/y").values(f"docs://x/{encoded}/y") == {"name": text}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("docs://x/{a}", "docs://x/{b}", True),
        ("docs://X/{a}", "DOCS://x/{b}", True),
        ("docs://x/y", "docs://x/Y", False),
        ("docs://x/{a}", "docs://x/y", False),
        ("docs://x/{a}", "docs://x/{a}/z", False),
    ],
)
def test_shapes(one: str, other: str, same: bool) -> None:
    assert (UriTemplate.parse(one).shape == UriTemplate.parse(other).shape) is same
