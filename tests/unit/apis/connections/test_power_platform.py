"""A connection's Power Platform API: the public cloud's, or another one's address and audience."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.apis.connections import reading
from shared.apis.connections.credentials import TokenSource
from shared.apis.connections.environments import Slot
from shared.apis.connections.model import Connection
from shared.apis.environment import PowerPlatform
from shared.apis.powerplatform import PowerPlatformApi
from shared.errors import SettingsError
from tests.support.dataverse import FakeEnvironment, Wire

OTHER = "https://api.gov.powerplatform.example"


def _read(**values: Any) -> Connection:
    entry = {"name": "Gov", "url": "https://acme.crm.dynamics.com", "auth": {"type": "managedIdentity"}}
    (connection,) = reading.read_setting(json.dumps([{**entry, **values}]))
    return connection


def _place(**values: Any) -> PowerPlatform:
    connection = _read(**values)
    return Slot(connection, TokenSource(connection), None).power_platform


def test_the_public_cloud_is_what_is_meant_without_a_word() -> None:
    public = PowerPlatform("https://api.powerplatform.com", "https://api.powerplatform.com/.default")
    assert _place() == public
    # What a person would be asked for is nothing that an app can sign in with.
    assert _place(scopes=["https://api.powerplatform.com/AppManagement.ApplicationPackages.Read"]) == public


def test_another_cloud_has_its_own_address_and_audience() -> None:
    found = _place(powerPlatformUrl=f"{OTHER}/", scopes=["x/Some.Read", f"{OTHER}/.default"])
    assert found == PowerPlatform(OTHER, f"{OTHER}/.default")


@pytest.mark.parametrize(
    "url", [OTHER, "https://127.0.0.1:4711/powerplatform", "https://gateway.example/a/b-c_1.2"]
)
def test_addresses(url: str) -> None:
    connection = _read(powerPlatformUrl=url)
    assert connection.power_platform_url == url
    assert reading.read(reading.to_json(connection), "$", []) == connection
    assert url not in json.dumps(connection.to_wire())


@pytest.mark.parametrize(
    "url",
    [
        "http://api.powerplatform.com", "api.powerplatform.com", "https://", "https:///x", "https://u:p@api.example",
        "https://api.example?x=1", "https://api.example/x?y", "https://api.example/#x", "https://api.example/../x",
        "https://api.example/a/./b", "https://api.example//x", "https://api.example/%2e%2e", "https://api.example:x",
        "https://api.example/a b",
    ],
)  # fmt: skip
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"\$\[0\]\.powerPlatformUrl: must be like https://api"):
        _read(powerPlatformUrl=url)


def test_calls_go_to_the_cloud_of_the_connection_in_the_slot() -> None:
    place = PowerPlatform("https://gateway.example/pp", f"{OTHER}/.default")
    wire = Wire(environment=FakeEnvironment(power_platform=place))
    PowerPlatformApi(wire._resolve, wire.hosts).Licensing.Get("reports?top=2")
    assert str(wire.request.url) == "https://gateway.example/pp/licensing/reports?top=2"
    assert wire.environment.asked == [(f"{OTHER}/.default", False)]
