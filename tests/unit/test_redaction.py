from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.redaction import REDACTED, Redactor, header_secrets

SECRET = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF), min_size=6, max_size=60)


@given(SECRET, st.text(max_size=40), st.text(max_size=40))
def test_a_known_value_never_stays(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret])(f"{before}{secret}{after}").replace(REDACTED, "")


@given(SECRET, SECRET)
def test_a_secret_inside_another_leaves_nothing_of_either(first: str, second: str) -> None:
    joined = first + second
    told = Redactor([first, joined])(f"<{joined}>")
    assert told == f"<{REDACTED}>"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: Bearer {REDACTED}"),
        ("basic dXNlcjpwYXNzd29yZA==", f"basic {REDACTED}"),
        (
            "token eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl end",
            f"token {REDACTED} end",
        ),
        (
            "https://acme.blob.core.windows.net/c?sv=1&sig=abcDEF123%2Bxyz4567890%3D&se=2",
            f"https://acme.blob.core.windows.net/c?sv=1&sig={REDACTED}&se=2",
        ),
        ("AccountName=acme;AccountKey=c2VjcmV0;X=1", f"AccountName=acme;AccountKey={REDACTED};X=1"),
    ],
)
def test_known_shapes_go_and_the_rest_stays(text: str, told: str) -> None:
    assert Redactor()(text) == told


@pytest.mark.parametrize(
    "text", ["", "a basic idea", "the bearer of news", "design=1", "eyJ", "漢字 and emoji 🎈"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor([None, "", "abc"])(text) == text


def test_secrets_among_headers() -> None:
    headers: dict[str, object] = {
        "X-Functions-Key": "key-1",
        "authorization": "Bearer credential-2",
        "Accept": "text/plain",
        "x-mcp-auth-token": "token-3",
        "Cookie": ["not", "a", "text"],
    }
    assert header_secrets(headers) == ["key-1", "Bearer credential-2", "credential-2", "token-3"]
