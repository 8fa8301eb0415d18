"""Addresses that cannot be right are told in our words, before anything is sent."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.apis.http import LONGEST_URL, Hosts, origin_of
from shared.apis.powerplatform import PowerPlatformApi
from shared.apis.urls import https_origin, relative_url
from shared.errors import ToolboxError, ToolError
from tests.support.dataverse import FakeEnvironment, Wire


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Acme.CRM.dynamics.com", "https://acme.crm.dynamics.com"),
        ("HTTPS://acme.crm.dynamics.com:443/", "https://acme.crm.dynamics.com"),
        ("https://acme:8443/x?y", "https://acme:8443"),
        ("https://127.0.0.1:5000", "https://127.0.0.1:5000"),
        ("https://[::1]:5000", "https://[::1]:5000"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_an_origin_is_told(url: str, origin: str) -> None:
    assert https_origin(url) == origin
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    "url",
    [
        "http://acme.crm.dynamics.com",
        "//acme",
        "https://",
        "https://user@acme",
        "https://user:password@acme",
        "https://acme\\@evil",
        "https://ac me",
        "https://acme\t.com",
        " https://acme",
        "https://acme\n",
        "https://bücher.example",
        "https://acme..com",
        "https://-acme",
        "https://acme_1",
        "https://acme.",
        f"https://{'a' * 64}.com",
        f"https://{'a.' * 127}com",
        "https://999.1.1.1",
        "https://1.2.3",
        "https://[::1",
        "https://[fe80::1%25eth0]",
        "https://acme:0",
        "https://acme:99999",
        "https://acme:x",
    ],
)
def test_what_is_no_origin_is_refused_as_an_address_of_an_environment(url: str) -> None:
    assert https_origin(url) is None
    wire = Wire(environment=FakeEnvironment(url=url))
    with pytest.raises(ToolError, match="address must be https://host"):
        wire.api.queryData("accounts")
    assert wire.environment.asked == []


@given(st.one_of(st.text(max_size=30), st.from_regex(r"https://[a-z0-9.:\-\[\]%_@/]{1,20}", fullmatch=True)))
def test_httpx_takes_whatever_passes(url: str) -> None:
    origin = https_origin(url)
    if origin is not None:
        assert str(httpx.URL(origin)) == origin
        assert https_origin(origin) == origin


def test_an_address_that_is_too_long_is_told_before_a_token_is_asked_for() -> None:
    wire = Wire()
    environment = FakeEnvironment()
    api = PowerPlatformApi(lambda _target: environment, wire.hosts)
    with pytest.raises(ToolError, match=f"characters of at most {LONGEST_URL:,}"):
        api.Governance.Get("policies?filter=" + "x" * LONGEST_URL)
    with pytest.raises(ToolError, match="Dataverse: the request's address is too long or illegal"):
        wire.api.execute(
            {
                "operationName": "sample_Echo",
                "operationType": "function",
                "parameters": {"Text": "x" * LONGEST_URL},
            }
        )
    assert environment.asked == wire.environment.asked == []
    assert wire.requests == []


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ToolError, match="lone surrogate"):
        relative_url("accounts?$filter=name eq '\ud800'", "The query")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTPS_PROXY", "http://user:sentinel-of-proxy@ho st:port"),
        ("HTTPS_PROXY", "http://sentinel-of-proxy:port"),
        ("ALL_PROXY", "gopher://sentinel-of-proxy"),
        ("SSL_CERT_FILE", "/nowhere/sentinel-of-proxy.pem"),
    ],
)
def test_proxy_settings_that_are_no_good_are_told_without_their_value(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ToolboxError, match=variable) as raised:
        Hosts().of("https://acme.crm.dynamics.com")
    assert "sentinel" not in raised.value.message
