from __future__ import annotations

import base64
import hmac
import os

import pytest

from shared import auth, settings
from shared.errors import AuthenticationError, SettingsError
from shared.settings import Settings


def made(**environ: str) -> Settings:
    return settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", **environ})


TWO_OWNERS = '{"ana": ["ana-1", "ana-2"], "ben": "ben-1"}'


def test_a_token_names_its_owner() -> None:
    found = made(MCP_AUTH_TOKEN="base", MCP_AUTH_TOKENS=TWO_OWNERS)
    for token, owner in [("base", "default"), ("ana-1", "ana"), ("ana-2", "ana"), ("ben-1", "ben")]:
        assert auth.check_http({"x-mcp-auth-token": token}, found) == (auth.TokenState.ACCEPTED, owner)


@pytest.mark.parametrize("token", ["", " ", "wrong", "bas", "basee", "BASE", "bäse", "\udcff", "ana-1,ben-1"])
def test_anything_else_is_refused(token: str) -> None:
    found = made(MCP_AUTH_TOKEN="base", MCP_AUTH_TOKENS=TWO_OWNERS)
    assert auth.check_http({"X-MCP-Auth-Token": token}, found)[0] is auth.TokenState.REFUSED
    assert auth.check_http({}, found)[0] is auth.TokenState.REFUSED


def test_without_any_configured_token_nobody_is_let_in() -> None:
    assert auth.check_http({"X-MCP-Auth-Token": "x"}, made())[0] is auth.TokenState.UNCONFIGURED
    assert auth.check_http({"X-MCP-Auth-Token": ""}, made())[0] is auth.TokenState.UNCONFIGURED


def test_an_mcp_call_without_the_header_is_the_default_owner() -> None:
    assert auth.owner_of_call({"Host": "x"}, made()) == "default"
    assert auth.owner_of_call({"Host": "x"}, made(MCP_AUTH_TOKEN="base")) == "default"


def test_an_mcp_call_with_a_bad_header_is_never_taken_for_one_without() -> None:
    found = made(MCP_AUTH_TOKEN="base")
    bad: list[dict[str, object]] = [
        {"X-MCP-Auth-Token": "wrong"},
        {"X-MCP-Auth-Token": ""},
        {"X-MCP-Auth-Token": "base,base"},
        {"X-MCP-Auth-Token": ["base"]},
        {"X-MCP-Auth-Token": "base", "x-mcp-auth-token": "base"},
    ]
    for headers in bad:
        with pytest.raises(AuthenticationError):
            auth.owner_of_call(headers, found)


def test_the_default_owner_can_be_closed() -> None:
    for found in (made(TOOLBOX_REQUIRE_TOKEN="1", MCP_AUTH_TOKEN="base"), made(MCP_AUTH_TOKENS=TWO_OWNERS)):
        with pytest.raises(AuthenticationError):
            auth.owner_of_call({}, found)


def test_a_token_without_any_configured_one_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match="MCP_AUTH_TOKEN"):
        auth.owner_of_call({"X-MCP-Auth-Token": "x"}, made())


def test_every_token_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first match must not end the comparing: time would tell how far down the list a token stands."""
    compared: list[bytes] = []
    real = hmac.compare_digest

    def watched(left: bytes, right: bytes) -> bool:
        compared.append(right)
        return bool(real(left, right))

    monkeypatch.setattr(hmac, "compare_digest", watched)
    random = base64.b64encode(os.urandom(12)).decode()
    tokens = {"a": ("first",), "b": (random, "last")}
    assert auth.owner_of("first", tokens) == "a"
    assert len(compared) == 3
