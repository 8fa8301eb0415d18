"""What `dev.py run --dataverse` adds to the settings: beside the user's own, never instead of them."""

from __future__ import annotations

import json
import ssl
import stat
from pathlib import Path
from typing import Any

import certifi
import httpx
import pytest
import trustme

from infra.local.dev.console import DevError
from infra.local.dev.dataverse import Place
from infra.local.dev.dataverse_settings import ID, NAME, SECRET_SETTING, settings_for
from shared.apis.connections import reading
from shared.apis.connections.book import ConnectionBook
from shared.errors import ConnectionsError

SECRET = "sentinel-of-the-stand-in"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    ca_file = tmp_path / "stand-in.pem"
    trustme.CA().cert_pem.write_to_path(str(ca_file))
    return Place(
        url="https://127.0.0.1:4711",
        tenant_id="tenant",
        client_id="client",
        client_secret=SECRET,
        authority="https://127.0.0.1:4711",
        power_platform_url="https://127.0.0.1:4711/powerplatform",
        ca_file=ca_file,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "session"
    made.mkdir()
    return made


def entry(name: str = "Prod", **values: Any) -> dict[str, Any]:
    auth = {"type": "clientSecret", "tenantId": "t", "clientId": "c", "secretSetting": "PROD_SECRET"}
    return {"name": name, "url": "https://acme.crm.dynamics.com", "auth": auth, **values}


def _subjects(path: str) -> set[bytes]:
    """The certificates that a file makes trusted."""
    return set(ssl.create_default_context(cafile=path).get_ca_certs(binary_form=True))


def test_own_connections_stay_as_they_are(place: Place, folder: Path) -> None:
    own = json.dumps([entry(), entry("Other", owners=["ana"], tools=["x"], scopes=["s"], category="Sales")])
    added = settings_for(place, {"CONNECTIONS": own}, ["default", "ana"], folder)
    *kept, stand_in = reading.read_setting(added["CONNECTIONS"])
    assert kept == reading.read_setting(own)
    assert (stand_in.name, stand_in.url, stand_in.owners) == (NAME, place.url, ("default", "ana"))
    assert stand_in.power_platform_url == place.power_platform_url
    assert stand_in.auth.secret_setting == SECRET_SETTING
    assert stand_in.auth.authority == place.authority
    assert added[SECRET_SETTING] == SECRET


def test_the_connection_is_for_those_owners_only(place: Place, folder: Path) -> None:
    added = settings_for(place, {}, ["default"], folder)
    book = ConnectionBook(added["CONNECTIONS"])
    assert book.named([NAME.upper()], "default", "any")[0].id == ID
    with pytest.raises(ConnectionsError):
        book.named([NAME], "ana", "any")


def test_the_secret_is_in_no_file_and_the_files_are_private(place: Place, folder: Path) -> None:
    settings_for(place, {"CONNECTIONS": json.dumps([entry()])}, ["default"], folder)
    files = list(folder.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert not any(SECRET.encode() in file.read_bytes() for file in files)
    assert SECRET not in repr(place)


def test_own_connections_may_be_in_a_file(place: Place, folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps([entry("Mine")]), "utf-8")
    added = settings_for(place, {"CONNECTIONS": f"@{mine}"}, ["default"], folder)
    assert [one.name for one in reading.read_setting(added["CONNECTIONS"])] == ["Mine", NAME]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ([entry(f" {NAME.upper()} ")], f"already has a connection with the name '{NAME}'"),
        ([entry(id=ID)], f"already has a connection with the id '{ID}'"),
        ([entry(url="http://acme.crm.dynamics.com")], r"\$\[0\]\.url: must be like https"),
    ],
)
def test_connections_that_do_not_go_together(place: Place, folder: Path, own: Any, said: str) -> None:
    with pytest.raises(DevError, match=said) as raised:
        settings_for(place, {"CONNECTIONS": json.dumps(own)}, ["default"], folder)
    assert raised.value.hint
    assert list(folder.iterdir()) == []


def test_what_was_trusted_before_stays_trusted(place: Place, folder: Path, tmp_path: Path) -> None:
    added = settings_for(place, {}, ["default"], folder)
    expected = _subjects(certifi.where()) | _subjects(str(place.ca_file))
    assert _subjects(added["SSL_CERT_FILE"]) == expected
    assert _subjects(added["REQUESTS_CA_BUNDLE"]) == expected

    own, other = tmp_path / "own.pem", tmp_path / "certificates"
    trustme.CA().cert_pem.write_to_path(str(own))
    other.mkdir()
    trustme.CA().cert_pem.write_to_path(str(other / "a.pem"))
    (other / "README").write_text("no certificate")
    settings = {"SSL_CERT_DIR": str(other), "CURL_CA_BUNDLE": str(own)}
    added = settings_for(place, settings, ["default"], folder)
    assert _subjects(added["SSL_CERT_FILE"]) == _subjects(str(other / "a.pem")) | _subjects(str(place.ca_file))
    assert _subjects(added["REQUESTS_CA_BUNDLE"]) == _subjects(str(own)) | _subjects(str(place.ca_file))
    settings = {**settings, "SSL_CERT_FILE": str(own)}  # which wins over the folder
    added = settings_for(place, settings, ["default"], folder)
    assert _subjects(added["SSL_CERT_FILE"]) == _subjects(str(own)) | _subjects(str(place.ca_file))


def test_certificates_that_cannot_be_read_are_told_by_the_setting(place: Place, folder: Path) -> None:
    with pytest.raises(DevError, match=r"^REQUESTS_CA_BUNDLE names what cannot be read \(No such file"):
        settings_for(place, {"REQUESTS_CA_BUNDLE": "/no/such/file.pem"}, ["default"], folder)


@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "intranet.example"}, "intranet.example,127.0.0.1"),
        ({"no_proxy": "a.example", "NO_PROXY": "b.example"}, "a.example,127.0.0.1"),
        ({"no_proxy": "*"}, "*"),
    ],
)
def test_no_proxy_stands_between(
    place: Place, folder: Path, settings: dict[str, str], value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = settings_for(place, settings, ["default"], folder)
    assert (added["no_proxy"], added["NO_PROXY"]) == (value, value)
    for name, text in {"HTTPS_PROXY": "http://127.0.0.1:9", **added}.items():
        monkeypatch.setenv(name, text)
    proxies = httpx._utils.get_environment_proxies()
    patterns = [httpx._utils.URLPattern(pattern) for pattern, proxy in proxies.items() if proxy is None]
    assert value == "*" or any(pattern.matches(httpx.URL(place.url)) for pattern in patterns)
