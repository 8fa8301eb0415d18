"""URLs are judged by their parsed host; headers are what a request can carry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.upstream.config.fields import TransportType
from shared.upstream.config.urls import LOCAL_HOSTS, header_faults, url_fault
from tests.unit.upstream.config.vectors import server

HTTP, WEBSOCKET = TransportType.HTTP, TransportType.WEBSOCKET


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com", "https://example.com:8443/mcp?key=x#y", "HTTPS://Example.COM/",
        "https://10.0.0.1/",
        "https://[2001:db8::1]:443/", "https://xn--bcher-kva.example/",
        "http://localhost:1/x", "http://127.0.0.1/", "http://[::1]:80/", "https://under_score.example/",
    ],
)  # fmt: skip
def test_legal_urls(url: str) -> None:
    assert url_fault(url, HTTP) is None
    assert url_fault(url, TransportType.SSE) is None
    assert url_fault(url, WEBSOCKET) is not None


@pytest.mark.parametrize(
    "url",
    [
        "", "https://", "https:///mcp", "https:/x", "example.com", "http://example.com",
        "ftp://example.com", "file:///x",
        "http://localhost.evil.com/", "http://localhost@evil.com/", "https://user@example.com/",
        "https://u:p@h/",
        "http://127.0.0.1.evil.com/", "http://[::1].evil.com/", "http://localhostevil.com", "https://h:99999/",
        "https://h:0/", "https://h:x/", "https://exa mple.com/", "https://h/\n", "https://h/\tx",
        "https://h\\@evil.com/",
        "http://0.0.0.0/", "http://127.1/", "http://0x7f000001/", "http://[::ffff:127.0.0.1]/",
        "http://[::1%25eth0]/",
        "https://[::1", "https://-x.example/", "https://x..example/", "https://exa%6dple.com/", "https://h\0/",
        "http://\N{FULLWIDTH LATIN SMALL LETTER L}ocalhost/", "javascript:alert(1)", "//example.com/x",
        "https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example/",
    ],
)  # fmt: skip
def test_illegal_urls(url: str) -> None:
    fault = url_fault(url, HTTP)
    assert fault is not None
    assert "evil" not in fault


@pytest.mark.parametrize("url", ["wss://example.com/ws", "ws://localhost:9000/", "WS://127.0.0.1/"])
def test_websockets(url: str) -> None:
    assert url_fault(url, WEBSOCKET) is None
    assert url_fault(url, HTTP) is not None


@settings(deadline=None)
@given(st.text(max_size=40), st.sampled_from(["http", "ws"]))
def test_plain_text_never_leaves_the_machine(rest: str, scheme: str) -> None:
    """Whatever follows `http://`: if it is let through, a client that parses it reaches this machine."""
    import httpx

    url = f"{scheme}://{rest}"
    if url_fault(url, None) is None:
        assert httpx.URL(url).host in LOCAL_HOSTS
        assert httpx.URL(url).userinfo == b""


@settings(deadline=None)
@given(st.text(max_size=40))
def test_other_parsers_find_the_same_host(rest: str) -> None:
    import httpx

    url = f"https://{rest}"
    if url_fault(url, HTTP) is None:
        assert httpx.URL(url).host
        assert httpx.URL(url).userinfo == b""


@pytest.mark.parametrize(
    ("name", "value"),
    [("X", "a\r\nEvil: 1"), ("X", "a\n"), ("X", "\N{EURO SIGN}"), ("X Y", "a"), ("", "a"), ("X:", "a"),
     ("Host", "a"),
     ("content-length", "1"), ("Mcp-Session-Id", "x"), ("X", "\0")],
)  # fmt: skip
def test_illegal_headers(name: str, value: str) -> None:
    assert header_faults({name: value}).keys() == {name}


def test_a_header_stands_once() -> None:
    assert header_faults({"X-Key": "a", "x-key": "b"}).keys() == {"x-key"}
    assert header_faults({"Authorization": "Bearer a", "X-Key": "b\tc"}) == {}


def test_a_secret_with_a_line_break_is_named_but_not_shown() -> None:
    entry = {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}
    outcome = server(entry, environ={"T": "hunter2\n"})
    assert "'Authorization' must be printable ASCII on one line" in outcome.said()
    assert "hunter2" not in outcome.said()
