from __future__ import annotations

import base64
import hmac
import json
import os

import pytest

from shared import auth, settings
from shared.errors import AuthenticationError, SettingsError
from shared.settings import Settings


def made(**environ: str) -> Settings:
    return settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", **environ})


TENANT, PERSON = "72f988bf-0000-4444-8888-2d7cd011db47", "b9a1c0de-1111-4222-8333-9c9c9c9c9c9c"
SCHEMA = "http://schemas.microsoft.com/identity/claims/"


def principal(claims: object = None, auth_typ: object = "aad") -> str:
    """A header as the platform writes it."""
    if claims is None:
        claims = [
            {"typ": f"{SCHEMA}tenantid", "val": TENANT},
            {"typ": f"{SCHEMA}objectidentifier", "val": PERSON},
        ]
    body = {"auth_typ": auth_typ, "claims": claims, "name_typ": "name", "role_typ": "roles"}
    return base64.b64encode(json.dumps(body).encode()).decode()


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


def test_a_trusted_principal_names_the_owner() -> None:
    found = made(TOOLBOX_TRUST_EASYAUTH="1")
    short = principal([{"typ": "tid", "val": TENANT.upper()}, {"typ": "oid", "val": PERSON}])
    for header in (principal(), short):
        owner = f"entra:{TENANT}:{PERSON}"
        assert auth.check_http({"x-ms-client-principal": header}, found) == (auth.TokenState.ACCEPTED, owner)
        assert auth.owner_of_call({"X-MS-CLIENT-PRINCIPAL": header}, found) == owner


@pytest.mark.parametrize("environ", [{}, {"TOOLBOX_TRUST_EASYAUTH": "0"}, {"MCP_AUTH_TOKEN": "base"}])
def test_a_principal_means_nothing_unless_it_is_trusted(environ: dict[str, str]) -> None:
    """Anybody can send that header to an app without built-in authentication in front."""
    found = made(**environ)
    headers = {"X-MS-CLIENT-PRINCIPAL": principal()}
    assert auth.owner_of_call(headers, found) == "default"
    assert auth.check_http(headers, found)[0] is not auth.TokenState.ACCEPTED


BAD_PRINCIPALS = [
    pytest.param("", id="empty"),
    pytest.param("not base64!", id="no base64"),
    pytest.param(base64.b64encode(b"[1]").decode(), id="no object"),
    pytest.param(base64.b64encode(b"[" * 20_000).decode(), id="nested too deep"),
    pytest.param(f"{principal()},{principal()}", id="repeated"),
    pytest.param(principal(auth_typ="google"), id="another provider"),
    pytest.param(principal(auth_typ=None), id="no provider"),
    pytest.param(principal([{"typ": "oid", "val": PERSON}]), id="no tenant"),
    pytest.param(principal([{"typ": "tid", "val": TENANT}]), id="no object id"),
    pytest.param(principal([{"typ": "tid", "val": TENANT}, {"typ": "oid", "val": "me"}]), id="no guid"),
    pytest.param(
        principal(
            [*({"typ": "oid", "val": value} for value in (PERSON, TENANT)), {"typ": "tid", "val": TENANT}]
        ),
        id="two object ids",
    ),
    pytest.param(principal({"oid": PERSON, "tid": TENANT}), id="claims of another shape"),
    pytest.param(principal(["oid", None, 5]), id="claims that are none"),
]


@pytest.mark.parametrize("header", BAD_PRINCIPALS)
def test_a_principal_that_the_platform_did_not_write_is_refused(header: str) -> None:
    found = made(TOOLBOX_TRUST_EASYAUTH="1", MCP_AUTH_TOKEN="base")
    assert auth.check_http({"X-MS-CLIENT-PRINCIPAL": header}, found) == (auth.TokenState.REFUSED, "")
    with pytest.raises(AuthenticationError):
        auth.owner_of_call({"X-MS-CLIENT-PRINCIPAL": header}, found)


def test_with_sign_in_nobody_is_the_default_owner_by_saying_nothing() -> None:
    """The MCP endpoint then asks for no key, so an anonymous caller has shown nothing at all."""
    for found in (made(TOOLBOX_TRUST_EASYAUTH="1"), made(TOOLBOX_TRUST_EASYAUTH="1", MCP_AUTH_TOKEN="base")):
        with pytest.raises(AuthenticationError, match="sign in"):
            auth.owner_of_call({"Host": "x"}, found)
        assert auth.check_http({}, found) == (auth.TokenState.REFUSED, "")


def test_a_token_counts_before_the_sign_in_and_a_wrong_one_is_not_made_good_by_it() -> None:
    found = made(TOOLBOX_TRUST_EASYAUTH="1", MCP_AUTH_TOKENS=TWO_OWNERS)
    right = {"X-MCP-Auth-Token": "ben-1", "X-MS-CLIENT-PRINCIPAL": principal()}
    wrong = {"X-MCP-Auth-Token": "ben-2", "X-MS-CLIENT-PRINCIPAL": principal()}
    assert auth.owner_of_call(right, found) == "ben"
    assert auth.check_http(right, found) == (auth.TokenState.ACCEPTED, "ben")
    assert auth.check_http(wrong, found)[0] is auth.TokenState.REFUSED
    with pytest.raises(AuthenticationError):
        auth.owner_of_call(wrong, found)
