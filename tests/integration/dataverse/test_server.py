"""The running stand-in: https, tokens, faults, the log, the Power Platform API, the command line."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from infra.local.dataverse.authority import App
from infra.local.dataverse.faults import Fault, Kind
from infra.local.dataverse.stand_in import TENANT, EnvironmentSpec, StandIn
from tests.integration.dataverse.support import bearer, client_of, token

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
POWER_PLATFORM = "https://api.powerplatform.com/.default"


def api_url(stand_in: StandIn, path: str, name: str | None = None) -> str:
    return f"{stand_in.url(name)}/api/data/v9.2/{path}"


def test_the_first_call(dataverse: StandIn, client: httpx.Client) -> None:
    granted = token(dataverse, client)
    assert granted.json()["expires_in"] == 3600
    answer = client.get(api_url(dataverse, "WhoAmI"), headers=bearer(dataverse, client))
    assert answer.status_code == 200
    assert answer.headers["odata-version"] == "4.0"
    assert answer.headers["x-ms-service-request-id"]
    assert answer.headers["content-type"].startswith("application/json; odata.metadata=minimal")


def test_only_its_own_certificate_authority_is_good(dataverse: StandIn) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(dataverse.url())


@pytest.mark.parametrize(
    ("changed", "status", "error", "code"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", 7000215),
        ({"client_id": "nobody"}, 400, "unauthorized_client", 700016),
        ({"grant_type": "password"}, 400, "unsupported_grant_type", 70003),
        ({"scope": "openid"}, 400, "invalid_scope", 1002012),
        ({"scope": "https://other.invalid/.default"}, 400, "invalid_resource", 500011),
        ({"client_assertion_type": ASSERTION, "client_assertion": "x.y.z"},
         401, "invalid_client", 700027),
    ],
)  # fmt: skip
def test_token_refusals(
    dataverse: StandIn, client: httpx.Client, changed: dict[str, str], status: int, error: str, code: int
) -> None:
    scope = changed.pop("scope", None)
    answer = token(dataverse, client, scope, **changed)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["error_description"].startswith(f"AADSTS{code}: ")


def test_unknown_tenant(dataverse: StandIn, client: httpx.Client) -> None:
    answer = client.post(f"{dataverse.authority_url}/nowhere/oauth2/v2.0/token", data={})
    assert answer.json()["error_codes"] == [90002]


def test_tokens_expire(dataverse: StandIn, client: httpx.Client) -> None:
    dataverse.authority.lifetime = 0.3
    headers, url = bearer(dataverse, client), api_url(dataverse, "WhoAmI")
    assert client.get(url, headers=headers).status_code == 200
    time.sleep(0.35)
    refused = client.get(url, headers=headers)
    assert (refused.status_code, refused.text) == (401, "")
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert "expired" in refused.headers["www-authenticate"]
    dataverse.authority.lifetime = 60
    headers = bearer(dataverse, client)
    assert client.get(url, headers=headers).status_code == 200
    dataverse.authority.expire_tokens()
    assert client.get(url, headers=headers).status_code == 401
    assert (
        client.get(url).status_code == client.get(url, headers={"authorization": "Bearer x"}).status_code == 401
    )
    assert [one.token for one in dataverse.requests("WhoAmI")] == [1, None, 2, None, None, None]


def test_tenants_and_environments_are_apart() -> None:
    ids = [f"11111111-0000-0000-0000-00000000000{number}" for number in range(3)]
    apps = (App(ids[0], "one", "t1"), App(ids[1], "two", "t1"), App(ids[2], "three", "t2"))
    specs = [
        EnvironmentSpec("a", "t1"),
        EnvironmentSpec("b", "t1", (apps[1].client_id,)),
        EnvironmentSpec("c", "t2"),
    ]
    with StandIn.start(specs, apps) as stand_in, client_of(stand_in) as client:

        def status(app: App, name: str, scope_of: str | None = None) -> int:
            form = {"grant_type": "client_credentials", "client_id": app.client_id, "client_secret": app.secret,
                    "scope": f"{stand_in.url(scope_of or name)}/.default"}  # fmt: skip
            granted = client.post(f"{stand_in.authority_url}/{app.tenant}/oauth2/v2.0/token", data=form).json()
            headers = {"authorization": f"Bearer {granted['access_token']}"}
            return client.get(api_url(stand_in, "WhoAmI", name), headers=headers).status_code

        assert (
            status(apps[0], "a") == status(apps[1], "a") == status(apps[1], "b") == status(apps[2], "c") == 200
        )
        assert status(apps[0], "b") == 403
        assert status(apps[2], "a") == 401
        assert status(apps[0], "a", scope_of="b") == 401
        stand_in.environment("a").insert("account", {"name": "only here"})
        assert len(stand_in.environment("c").ids("account")) == 12
        assert {one.environment for one in stand_in.requests("WhoAmI")} == {"a", "b", "c"}


def test_a_slash_before_default_is_an_audience_too(dataverse: StandIn, client: httpx.Client) -> None:
    headers = bearer(dataverse, client, f"{dataverse.url()}//.default")
    assert client.get(api_url(dataverse, "WhoAmI"), headers=headers).status_code == 200


def test_certificates() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "app")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(1)).sign(key, SHA256())
    )  # fmt: skip
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    app = App("app", "unused", TENANT, (pem,))
    with StandIn.start(apps=(app,)) as stand_in, client_of(stand_in) as client:
        endpoint = f"{stand_in.authority_url}/{TENANT}/oauth2/v2.0/token"

        def status(scheme: str, **claims: Any) -> int:
            given = {"iss": "app", "sub": "app", "aud": endpoint, "exp": time.time() + 60} | claims
            parts = [
                urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in ({"alg": scheme}, given)
            ]
            rules = padding.PSS(padding.MGF1(SHA256()), 32) if scheme == "PS256" else padding.PKCS1v15()
            proof = urlsafe_b64encode(key.sign(b".".join(parts), rules, SHA256())).rstrip(b"=")
            assertion = b".".join([*parts, proof]).decode()
            return token(
                stand_in, client, client_secret="", client_assertion_type=ASSERTION, client_assertion=assertion
            ).status_code

        assert status("RS256") == status("PS256") == 200
        assert (
            status("RS256", aud="https://other.invalid")
            == status("RS256", exp=1)
            == status("RS256", iss="x")
            == 401
        )
        assert "(removed)" in stand_in.requests()[0].body


def test_managed_identity_and_discovery(dataverse: StandIn, client: httpx.Client) -> None:
    url = f"{dataverse.url()}/msi/token?api-version=2019-08-01&resource={dataverse.url()}"
    assert client.get(url).status_code == 401
    granted = client.get(url, headers={"x-identity-header": dataverse.authority.identity_header}).json()
    headers = {"authorization": f"Bearer {granted['access_token']}"}
    assert int(granted["expires_on"]) > time.time()
    assert client.get(api_url(dataverse, "WhoAmI"), headers=headers).status_code == 200
    found = client.get(f"{dataverse.url()}/{TENANT}/v2.0/.well-known/openid-configuration").json()
    assert found["token_endpoint"] == f"{dataverse.url()}/{TENANT}/oauth2/v2.0/token"


def test_throttling_at_chosen_requests(dataverse: StandIn, client: httpx.Client) -> None:
    armed = dataverse.arm(Fault(Kind.THROTTLED, nth=(2, 3), retry_after="7"))
    headers = bearer(dataverse, client)
    answers = [client.get(api_url(dataverse, "WhoAmI"), headers=headers) for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 429, 429, 200]
    assert answers[1].headers["retry-after"] == "7"
    assert answers[1].headers["x-ms-service-request-id"]
    assert answers[1].json()["error"]["code"] == "0x80072322"
    assert (armed.seen, armed.struck) == (4, 2)
    assert [one.fault for one in dataverse.requests("WhoAmI")] == [None, "throttled", "throttled", None]


def test_other_faults(dataverse: StandIn, client: httpx.Client) -> None:
    headers, url = bearer(dataverse, client), api_url(dataverse, "accounts")

    def once(kind: Kind, **more: Any) -> Callable[[], httpx.Response]:
        dataverse.faults.clear()
        dataverse.arm(Fault(kind, times=1, **more))
        return lambda: client.post(url, json={"name": "x"}, headers=headers)

    def count() -> int:
        return len(dataverse.environment().ids("account"))

    assert once(Kind.UNAVAILABLE, retry_after="3")().headers["retry-after"] == "3"
    gateway = once(Kind.GATEWAY_TIMEOUT)()
    assert (gateway.status_code, gateway.headers["content-type"]) == (504, "text/html")
    error = once(Kind.ERROR, status=500, code="0x1", message="boom")()
    assert (error.status_code, error.json()["error"]["message"]) == (500, "boom")
    assert count() == 12
    with pytest.raises(httpx.ReadError):
        once(Kind.RESET)()
    assert count() == 12
    with pytest.raises(httpx.ReadError):
        once(Kind.LOST)()
    assert count() == 13
    assert dataverse.requests("accounts")[-1].status is None
    started = time.monotonic()
    assert once(Kind.SLOW, delay=0.2)().status_code == 204
    assert time.monotonic() - started >= 0.2
    assert once(Kind.EXPIRED)().status_code == 401


def test_faults_pick_their_requests(dataverse: StandIn, client: httpx.Client) -> None:
    headers = bearer(dataverse, client)
    dataverse.arm(Fault(Kind.UNAVAILABLE, path=r"\$top=1$", method="GET"))
    dataverse.arm(Fault(Kind.UNAVAILABLE, path="/oauth2/", times=1))
    assert client.get(api_url(dataverse, "accounts?$top=1"), headers=headers).status_code == 503
    assert client.get(api_url(dataverse, "accounts?$top=2"), headers=headers).status_code == 200
    assert [token(dataverse, client).status_code for _ in range(2)] == [503, 200]

    def pattern() -> list[int]:
        dataverse.faults.clear()
        dataverse.arm(Fault(Kind.UNAVAILABLE, probability=0.5, seed=7))
        return [client.get(api_url(dataverse, "WhoAmI"), headers=headers).status_code for _ in range(20)]

    first = pattern()
    assert set(first) == {200, 503}
    assert pattern() == first


def test_control_api(dataverse: StandIn, client: httpx.Client) -> None:
    base, headers = f"{dataverse.url()}/_stand-in", bearer(dataverse, client)
    assert (
        client.post(f"{base}/faults", json={"kind": "throttled", "nth": 1, "retry_after": 2}).status_code == 201
    )
    assert client.get(api_url(dataverse, "WhoAmI"), headers=headers).headers["retry-after"] == "2"
    assert client.get(f"{base}/faults").json() == [{"kind": "throttled", "seen": 1, "struck": 1}]
    assert client.delete(f"{base}/faults").status_code == 204
    assert client.post(f"{base}/tokens/expire", json={}).status_code == 204
    assert client.get(api_url(dataverse, "WhoAmI"), headers=headers).status_code == 401
    assert [one["status"] for one in client.get(f"{base}/requests").json()] == [200, 429, 401]
    assert client.delete(f"{base}/requests").status_code == 204
    assert client.get(f"{base}/requests").json() == []
    assert client.post(f"{base}/faults", content="{}").status_code == 415
    for bad in ({}, {"kind": "nope"}, {"kind": "slow", "nope": 1}, {"kind": "slow", "path": "("}):
        assert client.post(f"{base}/faults", json=bad).status_code == 400
    assert client.get(f"{base}/nope").status_code == 404


def test_the_log_has_no_secrets(dataverse: StandIn, client: httpx.Client) -> None:
    granted = token(dataverse, client).json()["access_token"]
    headers = {"authorization": f"Bearer {granted}", "x-custom": "seen"}
    client.post(api_url(dataverse, "accounts?$select=name"), json={"name": "x"}, headers=headers)
    text = client.get(f"{dataverse.url()}/_stand-in/requests").text
    assert granted not in text
    assert dataverse.app.secret not in text
    assert dataverse.app.secret not in repr(dataverse.app)
    entry = dataverse.requests("accounts", "POST")[0]
    assert entry.json() == {"name": "x"}
    assert entry.query == {"$select": "name"}
    assert entry.headers["x-custom"] == "seen"
    assert (entry.app, entry.token, entry.status) == (dataverse.app.client_id, 1, 204)
    assert "client_secret=(removed)" in dataverse.requests()[0].body


def test_what_is_refused_before_the_request(dataverse: StandIn, client: httpx.Client) -> None:
    headers = bearer(dataverse, client)
    long = client.get(api_url(dataverse, "accounts"), params={"$filter": "x" * 33_000}, headers=headers)
    assert long.status_code == 414
    text = client.post(
        api_url(dataverse, "accounts"), content="x", headers={**headers, "content-type": "text/plain"}
    )
    assert text.status_code == 415
    old = client.get(api_url(dataverse, "accounts"), headers={**headers, "odata-version": "3.0"})
    assert old.status_code == 400
    assert (
        client.get(api_url(dataverse, "accounts"), headers={**headers, "host": "evil.invalid"}).status_code
        == 421
    )
    assert client.get(f"{dataverse.url()}/nothing").status_code == 404


def test_power_platform(dataverse: StandIn, client: httpx.Client) -> None:
    base, headers = dataverse.power_platform_url, bearer(dataverse, client, POWER_PLATFORM)
    assert client.get(f"{base}/licensing/x").status_code == 401
    assert client.get(f"{base}/licensing/x", headers=bearer(dataverse, client)).status_code == 401
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        body = None if method == "GET" else {"a": 1}
        answer = client.request(
            method, f"{base}/powerapps/a/b?api-version=1", json=body, headers=headers
        ).json()
        assert answer == {
            "category": "powerapps",
            "method": method,
            "path": "a/b",
            "query": {"api-version": "1"},
            "body": body,
        }
    assert client.get(f"{base}/governance", headers=headers).json()["path"] == ""
    empty = client.post(f"{base}/dynamics/empty", headers=headers)
    assert (empty.status_code, empty.content) == (200, b"")
    assert client.delete(f"{base}/dynamics/no-content", headers=headers).status_code == 204
    assert client.get(f"{base}/dynamics/text", headers=headers).text == "plain text"
    assert client.get(f"{base}/dynamics/error", headers=headers).status_code == 400
    assert client.get(f"{base}/nope/x", headers=headers).status_code == 404
    dataverse.power_platform.answer("GET", "environmentmanagement/environments", {"value": []}, 202)
    scripted = client.get(f"{base}/environmentmanagement/environments", headers=headers)
    assert (scripted.status_code, scripted.json()) == (202, {"value": []})


def test_12000_rows_with_faults_midway(dataverse: StandIn, client: httpx.Client) -> None:
    environment = dataverse.environment()
    environment.clear("account")
    for number in range(12_000):
        environment.insert("account", {"name": f"n{number:05}"})
    dataverse.arm(Fault(Kind.THROTTLED, nth=(2, 3, 5), retry_after="0"))
    dataverse.arm(Fault(Kind.EXPIRED, nth=(4,)))
    headers, names = bearer(dataverse, client), []
    url = api_url(dataverse, "accounts?$select=name")
    while url:
        answer = client.get(url, headers={**headers, "prefer": "odata.maxpagesize=2000"})
        if answer.status_code == 401:
            headers = bearer(dataverse, client)
        elif answer.status_code == 200:
            names += [one["name"] for one in answer.json()["value"]]
            url = answer.json().get("@odata.nextLink", "")
    assert names == [f"n{number:05}" for number in range(12_000)]
    assert sorted(one.status or 0 for one in dataverse.requests("accounts")) == [200] * 6 + [401] + [429] * 3


def test_command_line(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "infra.local.dataverse", "--environments", "dev,uat", "--accounts", "3",
               "--ready-file", str(ready)]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        assert lines[3].startswith("Dataverse stand-in ready: https://127.0.0.1:")
        for _ in range(200):
            if ready.exists():
                break
            time.sleep(0.01)
        connection = json.loads(ready.read_text("utf-8"))["environments"]["uat"]
        assert ready.stat().st_mode & 0o077 == 0
        ca_file = Path(connection["caFile"])
        assert connection["clientSecret"] not in "".join(lines)
        with httpx.Client(verify=ssl.create_default_context(cafile=str(ca_file))) as client:
            assert client.get(f"{connection['url']}/api/data/v9.2/WhoAmI").status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()
    assert not ready.exists()
    assert not ca_file.exists()


def test_a_taken_port_is_told(dataverse: StandIn) -> None:
    port = dataverse.url().rpartition(":")[2]
    command = [sys.executable, "-m", "infra.local.dataverse", "--port", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "cannot start" in done.stderr


def test_it_stops_at_once_with_clients_connected() -> None:
    stand_in = StandIn.start()
    with client_of(stand_in) as client:
        client.get(stand_in.url())
        started = time.monotonic()
        stand_in.stop()
        assert time.monotonic() - started < 1
