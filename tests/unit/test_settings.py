from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from shared import settings
from shared.account import is_emulator
from shared.errors import SettingsError

EMULATOR = "UseDevelopmentStorage=true"
REAL = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a2V5;EndpointSuffix=core.windows.net"
KEY = base64.b64encode(bytes(range(32))).decode()


def test_defaults() -> None:
    found = settings.load({"AzureWebJobsStorage": EMULATOR})
    assert (found.max_timeout_ms, found.max_wait_ms, found.inline_timeout_ms) == (1_800_000, 50_000, 210_000)
    assert (found.lease_ms, found.lease_renew_ms) == (60_000, 20_000)
    assert found.owner_tokens == {}
    assert not found.require_token
    assert found.max_input_bytes == 64 * 1024 * 1024


def test_single_token_and_named_owners_come_together() -> None:
    found = settings.load(
        {
            "AzureWebJobsStorage": REAL,
            "MCP_AUTH_TOKEN": "first-one",
            "MCP_AUTH_TOKENS": json.dumps({"default": "new-one-", "ana": ["anas-one", "anas-two"]}),
        }
    )
    assert found.owner_tokens == {"default": ("first-one", "new-one-"), "ana": ("anas-one", "anas-two")}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MCP_AUTH_TOKENS", "[1]", "JSON object"),
        ("MCP_AUTH_TOKENS", "{", "not JSON"),
        ("MCP_AUTH_TOKENS", '{"a b": "t"}', "owner's name"),
        ("MCP_AUTH_TOKENS", '{"ana": []}', "'ana'"),
        ("MCP_AUTH_TOKENS", '{"ana": 5}', "'ana'"),
        ("MCP_AUTH_TOKENS", '{"ana": ""}', "empty token"),
        ("MCP_AUTH_TOKENS", '{"ana": "the-same", "ben": "the-same"}', "share a token"),
        ("MCP_AUTH_TOKEN", "   ", "empty token"),
        ("MCP_AUTH_TOKEN", " padded", "blanks"),
        ("MCP_AUTH_TOKEN", "schlüssel", "ASCII"),
        ("MCP_AUTH_TOKEN", settings.PLACEHOLDER_TOKEN, "placeholder"),
        ("TOOLBOX_SEAL_KEY", settings.PLACEHOLDER_SEAL_KEY, "placeholder"),
        ("TOOLBOX_SEAL_KEY", "c2hvcnQ=", "32 random bytes"),
        ("TOOLBOX_SEAL_KEY", "not base64 at all", "32 random bytes"),
        ("TOOLBOX_SEAL_KEYS", f"{KEY}, c2hvcnQ=", "TOOLBOX_SEAL_KEYS"),
        ("TOOLBOX_MAX_WAIT_MS", "210001", "0 to 210000"),
        ("TOOLBOX_MAX_WAIT_MS", "5s", "whole number from 0 to 210000, not string of 2 characters"),
        ("TOOLBOX_MAX_INPUT_BYTES", "262143", "from 262144 to 104857600, not 262143"),
        ("TOOLBOX_MAX_INPUT_BYTES", "104857601", "from 262144 to 104857600"),
        ("MCP_AUTH_TOKEN", "seven77", "MCP_AUTH_TOKEN has fewer than 8 characters"),
        ("MCP_AUTH_TOKENS", '{"ana": ["long-enough", "seven77"]}', "'ana') has fewer than 8 characters"),
        ("TOOLBOX_MAX_TIMEOUT_MS", "-1", "whole number"),
        ("TOOLBOX_REQUIRE_TOKEN", "maybe", "1 or 0"),
        ("TOOLBOX_TRUST_EASYAUTH", "maybe", "1 or 0"),
        ("MCP_AUTH_TOKEN", "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/t)", "not resolve"),
        (
            "MCP_AUTH_TOKENS",
            "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/t)",
            "not resolve",
        ),
        ("TOOLBOX_SEAL_KEY", " @microsoft.keyvault(VaultName=v;SecretName=s)", "not resolve"),
        (
            "TOOLBOX_SEAL_KEYS",
            "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/t)",
            "not resolve",
        ),
        ("AzureWebJobsStorage", "some-account", "must be a connection string, like UseDevelopmentStorage=true"),
        ("AzureWebJobsStorage", "AccountKey=a2V5", "not another text of 15 characters"),
        ("AzureWebJobsStorage", "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/s)", "not resolve"),
    ],
)
def test_a_fault_names_its_setting(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load({"AzureWebJobsStorage": REAL, name: value})
    assert name in caught.value.message
    assert said in caught.value.message


@pytest.mark.parametrize("name", ["MCP_AUTH_TOKEN", "MCP_AUTH_TOKENS"])
def test_a_token_that_can_be_tried_out_is_accepted_with_the_emulator_only(name: str) -> None:
    def load(token: str, storage: str) -> settings.Settings:
        value = token if name == "MCP_AUTH_TOKEN" else json.dumps({"ana": token})
        return settings.load({"AzureWebJobsStorage": storage, name: value})

    (tokens,) = load("t", EMULATOR).owner_tokens.values()
    assert tokens == ("t",)
    (tokens,) = load("q" * 8, REAL).owner_tokens.values()
    assert tokens == ("q" * 8,)
    for storage in (REAL, ""):
        with pytest.raises(SettingsError, match="has fewer than 8 characters") as caught:
            load("sentine", storage)
        assert "sentine" not in caught.value.message


def test_all_faults_are_told_at_once_a_line_each() -> None:
    with pytest.raises(SettingsError) as caught:
        settings.load(
            {
                "AzureWebJobsStorage__accountName": "No Account",
                "TOOLBOX_SEAL_KEY": "c2hvcnQ=",
                "TOOLBOX_SEAL_KEYS": f"{KEY} c2hvcnQ=",
                "TOOLBOX_LEASE_MS": "x",
                "TOOLBOX_LEASE_RENEW_MS": "1",
                "TOOLBOX_REAPER_SCHEDULE": "* *",
                "TOOLBOX_BASE_URL": "ftp://x",
            }
        )
    told = [line.split(" ")[0] for line in caught.value.message.splitlines()]
    assert told == [
        "AzureWebJobsStorage__accountName",
        "TOOLBOX_SEAL_KEY",
        "TOOLBOX_SEAL_KEYS",
        "TOOLBOX_LEASE_MS",
        "TOOLBOX_LEASE_RENEW_MS",
        "TOOLBOX_REAPER_SCHEDULE",
        "TOOLBOX_BASE_URL",
    ]


def test_nothing_that_shows_settings_shows_a_secret() -> None:
    found = settings.load(
        {
            "AzureWebJobsStorage": REAL,
            "MCP_AUTH_TOKEN": "sentinel-of-a-token",
            "TOOLBOX_SEAL_KEY": KEY,
            "CONNECTIONS": "sentinel-of-a-connection",
        }
    )
    shown = f"{found} {found!r}"
    assert "max_timeout_ms=1800000" in shown
    for secret in ("sentinel", "a2V5", str(bytes(range(32)))[2:20]):
        assert secret not in shown


def test_placeholders_are_accepted_with_the_emulator() -> None:
    for storage in (EMULATOR, "AccountName=devstoreaccount1;AccountKey=x;BlobEndpoint=http://127.0.0.1:9/x"):
        found = settings.load(
            {
                "AzureWebJobsStorage": storage,
                "MCP_AUTH_TOKEN": settings.PLACEHOLDER_TOKEN,
                "TOOLBOX_SEAL_KEY": settings.PLACEHOLDER_SEAL_KEY,
            }
        )
        assert len(found.seal_keys[0]) == 32


def test_an_account_that_only_mentions_the_emulator_is_real() -> None:
    assert not is_emulator(REAL.replace("acme", "notdevstoreaccount1"))
    assert not is_emulator("UseDevelopmentStorage=false")
    assert not is_emulator("")


@pytest.mark.parametrize(
    ("function_timeout", "cap"),
    [
        ("00:35:00", 1_800_000),
        ("00:10:00", 540_000),
        ("1.00:00:00", 1_800_000),
        ("-1", 1_800_000),
        ("", 1_740_000),
        ("nonsense", 1_740_000),
    ],
)
def test_the_own_deadline_fires_before_the_hosts(tmp_path: Path, function_timeout: str, cap: int) -> None:
    host_json = tmp_path / "host.json"
    host_json.write_text(json.dumps({"functionTimeout": function_timeout} if function_timeout else {}))
    assert settings.load({}, host_json).max_timeout_ms == cap


def test_an_app_setting_wins_over_host_json(tmp_path: Path) -> None:
    host_json = tmp_path / "host.json"
    host_json.write_text('{"functionTimeout": "00:35:00"}')
    found = settings.load({"AzureFunctionsJobHost__functionTimeout": "00:02:00"}, host_json)
    assert found.max_timeout_ms == 60_000
    assert found.inline_timeout_ms == 60_000


def test_secrets_do_not_show() -> None:
    found = settings.load(
        {"AzureWebJobsStorage": REAL, "MCP_AUTH_TOKEN": "sesame-open", "TOOLBOX_SEAL_KEY": KEY}
    )
    assert "sesame" not in repr(found)
    assert "a2V5" not in repr(found)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"TOOLBOX_BASE_URL": "https://tools.example.com/"}, "https://tools.example.com"),
        ({"TOOLBOX_BASE_URL": "https://a.example/mcp/x/"}, "https://a.example/mcp/x"),
        ({"TOOLBOX_BASE_URL": "http://localhost:7071"}, "http://localhost:7071"),
        ({"WEBSITE_HOSTNAME": "app.azurewebsites.net"}, "https://app.azurewebsites.net"),
        ({"WEBSITE_HOSTNAME": "127.0.0.1:7071"}, "http://127.0.0.1:7071"),
        ({"WEBSITE_HOSTNAME": "a b"}, ""),
        ({}, ""),
    ],
)
def test_where_links_lead(given: dict[str, str], url: str) -> None:
    assert settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", **given}).base_url == url


@pytest.mark.parametrize(
    "text",
    [
        "http://tools.example.com",
        "tools.example.com",
        "https://a@b",
        "https://a/?x",
        "https://a/#x",
        "https://a b",
    ],
)
def test_addresses_that_are_none_stop_the_start(text: str) -> None:
    with pytest.raises(SettingsError, match="TOOLBOX_BASE_URL"):
        settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", "TOOLBOX_BASE_URL": text})
