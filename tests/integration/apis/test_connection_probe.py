"""Each way to sign in, and each way to fail at it, against a real token endpoint."""

from __future__ import annotations

import base64
import logging
import socket
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from infra.local.dataverse.authority import App
from infra.local.dataverse.faults import Fault, Kind
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, EnvironmentSpec, StandIn
from infra.local.dev.connection_probe import Outcome, probe
from shared import redaction
from shared.apis.connections import reading

pytestmark = pytest.mark.integration

SECRET = "sentinel-9b2e-of-the-app"
PASSWORD = "sentinel-9b2e-of-the-certificate"
STRANGER = "0d7e6f1a-93a5-4a53-8f0c-52f3f3a9b001"

_KEY = rsa.generate_private_key(65537, 2048)
_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "app")])
_CERTIFICATE = (
    x509.CertificateBuilder()
    .subject_name(_NAME)
    .issuer_name(_NAME)
    .public_key(_KEY.public_key())
    .serial_number(1)
    .not_valid_before(datetime.now(UTC) - timedelta(days=1))
    .not_valid_after(datetime.now(UTC) + timedelta(days=1))
    .sign(_KEY, hashes.SHA256())
)
PUBLIC = _CERTIFICATE.public_bytes(serialization.Encoding.PEM)


def pem(password: str = "") -> str:
    locked = serialization.BestAvailableEncryption(password.encode()) if password else None
    private = _KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        locked or serialization.NoEncryption(),
    )
    return (private + PUBLIC).decode()


def pfx(password: str) -> bytes:
    locked = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"app", _KEY, _CERTIFICATE, None, locked)


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    apps = [App(CLIENT_ID, SECRET, TENANT, (PUBLIC.decode(),))]
    specs = [EnvironmentSpec("dev"), EnvironmentSpec("foreign", apps=(STRANGER,))]
    with StandIn.start(specs, apps) as stand_in:
        yield stand_in


class Bench:
    def __init__(self, dataverse: StandIn) -> None:
        self.dataverse = dataverse

    def try_out(
        self,
        settings: dict[str, str] | None = None,
        *,
        url: str | None = None,
        timeout: float = 20.0,
        **changed: str | None,
    ) -> Outcome:
        to = self.dataverse.connection("dev")
        auth: dict[str, Any] = {"type": "clientSecret", "tenantId": to["tenantId"], "clientId": to["clientId"]}
        auth |= {"secretSetting": "APP_SECRET", "authority": to["authority"], **changed}
        auth = {name: value for name, value in auth.items() if value is not None}
        faults: list[str] = []
        connection = reading.read({"name": "Dev", "url": url or to["url"], "auth": auth}, "$", faults)
        assert connection is not None, faults
        return probe(connection, {"APP_SECRET": SECRET} if settings is None else settings, timeout)

    def certificate(self, **settings: str) -> Outcome:
        names: dict[str, Any] = {"certificateSetting": "CERTIFICATE", "secretSetting": None}
        if "PASSWORD" in settings:
            names["certificatePasswordSetting"] = "PASSWORD"
        return self.try_out(settings, type="clientCertificate", **names)


@pytest.fixture
def bench(
    dataverse: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Bench]:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(dataverse.ca_file))
    monkeypatch.setenv("SSL_CERT_FILE", str(dataverse.ca_file))
    dataverse.clear_requests()
    yield Bench(dataverse)
    dataverse.faults.clear()
    for secret in (SECRET, PASSWORD, *dataverse.authority._tokens):
        assert secret not in caplog.text


def test_a_secret_signs_in(bench: Bench) -> None:
    outcome = bench.try_out()
    assert outcome.ok
    assert outcome.organization_id == bench.dataverse.environment("dev").organization_id
    assert outcome.user_id == bench.dataverse.environment("dev").user_of(CLIENT_ID)
    assert 3500 < (outcome.token_seconds or 0) <= 3600
    assert [request.resource for request in bench.dataverse.requests("WhoAmI")] == ["WhoAmI()"]


def test_a_certificate_signs_in_as_text_as_file_and_with_a_password(bench: Bench, tmp_path: Path) -> None:
    assert bench.certificate(CERTIFICATE=pem()).ok
    # As a setting holds it that cannot hold line ends.
    assert bench.certificate(CERTIFICATE=pem().replace("\n", "\\n")).ok
    assert bench.certificate(CERTIFICATE=pem(PASSWORD), PASSWORD=PASSWORD).ok
    encoded = base64.encodebytes(pfx(PASSWORD)).decode()
    assert bench.certificate(CERTIFICATE=encoded, PASSWORD=PASSWORD).ok
    for name, content in (("app.pem", pem().encode()), ("app.pfx", pfx(PASSWORD))):
        (tmp_path / name).write_bytes(content)
    assert bench.certificate(CERTIFICATE=str(tmp_path / "app.pem")).ok
    assert bench.certificate(CERTIFICATE=str(tmp_path / "app.pfx"), PASSWORD=PASSWORD).ok


@pytest.mark.parametrize("with_it", ["the right key", "another key"])
def test_a_certificates_password_is_told_to_nobody(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, with_it: str
) -> None:
    """Also where it does not open the certificate: then most of all it is looked at in logs."""
    monkeypatch.setattr(redaction, "_remembered", deque(maxlen=200))
    password = "sentinel-7c21-of-a-certificate"
    held = pem(password if with_it == "the right key" else PASSWORD)
    assert bench.certificate(CERTIFICATE=held, PASSWORD=password).ok is (with_it == "the right key")
    assert redaction.Redactor()(f"opened with {password}.") == "opened with [redacted]."


def test_a_certificate_that_cannot_be_opened_says_so(bench: Bench, tmp_path: Path) -> None:
    for settings in (
        {"CERTIFICATE": pem(PASSWORD)},
        {"CERTIFICATE": pem(PASSWORD), "PASSWORD": "another"},
        {"CERTIFICATE": base64.b64encode(pfx(PASSWORD)).decode(), "PASSWORD": "another"},
        {"CERTIFICATE": PUBLIC.decode()},
    ):
        outcome = bench.certificate(**settings)
        assert outcome.reason is not None
        assert (outcome.reason.kind, outcome.signed_in) == ("secret", False)
        assert "the certificate cannot be opened" in outcome.reason.text
    outcome = bench.certificate(CERTIFICATE=str(tmp_path / "nowhere.pem"))
    assert outcome.reason is not None
    assert outcome.reason.kind == "setting"
    assert "must be a certificate (PEM, or PFX as base64) or the path of a file" in outcome.reason.text
    assert str(tmp_path) not in outcome.reason.text


def test_a_managed_identity_signs_in_with_its_client_id(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{bench.dataverse.url()}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", bench.dataverse.authority.identity_header)
    nothing: dict[str, Any] = {"tenantId": None, "secretSetting": None, "authority": None}
    assert bench.try_out({}, type="managedIdentity", **nothing).ok
    assert bench.try_out({}, type="default", **{**nothing, "clientId": None}).ok
    asked = [request.query.get("client_id") for request in bench.dataverse.requests("/msi/token")]
    assert asked == [CLIENT_ID, None]


@pytest.mark.parametrize(
    ("kind", "said", "given"),
    [
        ("secret", "AADSTS7000215", {"settings": {"APP_SECRET": "sentinel-9b2e-of-nobody"}}),
        ("setting", "needs the setting APP_SECRET, which is not set", {"settings": {}}),
        ("setting", "Key Vault reference", {"settings": {"APP_SECRET": "@Microsoft.KeyVault(SecretUri=x)"}}),
        ("sign_in", "no app with this clientId", {"clientId": STRANGER}),
        ("sign_in", "no tenant with this tenantId", {"tenantId": STRANGER}),
        ("url", "AADSTS500011", {"url": "https://acme.crm.dynamics.com"}),
        (
            "sign_in",
            "Azure only",
            {"type": "default", "secretSetting": None, "clientId": None, "tenantId": None},
        ),
    ],
)
def test_what_is_wrong_is_told(bench: Bench, kind: str, said: str, given: dict[str, Any]) -> None:
    outcome = bench.try_out(**given)
    assert outcome.reason is not None
    assert (outcome.reason.kind, outcome.signed_in) == (kind, False), outcome.reason
    assert said in outcome.reason.text


def test_an_app_without_a_user_there_is_refused(bench: Bench) -> None:
    outcome = bench.try_out(url=bench.dataverse.url("foreign"))
    assert outcome.reason is not None
    assert (outcome.reason.kind, outcome.signed_in) == ("refused", True)
    assert "no application user" in outcome.reason.text


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_certificate_nobody_knows_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv(variable)
    outcome = bench.try_out(timeout=10)
    assert outcome.reason is not None
    assert (outcome.reason.kind, outcome.signed_in) == ("tls", variable == "SSL_CERT_FILE")


def test_nobody_there_is_told(bench: Bench) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, and nobody listens
        outcome = bench.try_out(authority=f"https://127.0.0.1:{closed.getsockname()[1]}")
    assert outcome.reason is not None
    assert outcome.reason.kind == "unreachable"


@pytest.mark.parametrize("path", ["/oauth2/", "/api/data/"])
def test_the_time_is_bounded(bench: Bench, path: str) -> None:
    bench.dataverse.arm(Fault(Kind.SLOW, path=path, delay=4.0))
    outcome = bench.try_out(timeout=1)
    assert outcome.reason is not None
    assert outcome.reason.kind == "timeout"
    assert outcome.seconds < 3


def test_what_is_no_dataverse_is_told(bench: Bench) -> None:
    bench.dataverse.arm(Fault(Kind.ERROR, path="WhoAmI", status=404))
    outcome = bench.try_out()
    assert outcome.reason is not None
    assert (outcome.reason.kind, outcome.reason.text) == (
        "url",
        "what answers at this url is no Dataverse environment",
    )
