"""local.settings.json and its example."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import pytest

from infra.local.dev import paths
from infra.local.dev.console import DevError
from infra.local.dev.settings import GENERATED, create_settings, demo_token, effective_settings

EXPECTED = {
    "FUNCTIONS_WORKER_RUNTIME": "python",
    "AzureWebJobsStorage": "UseDevelopmentStorage=true",
    "AzureWebJobsDisableHomepage": "true",
    "MCP_AUTH_TOKEN": "placeholder-token-for-the-emulator-only",
    "TOOLBOX_SEAL_KEY": "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI=",
    "TOOLBOX_MAX_TIMEOUT_MS": "1800000",
    "TOOLBOX_MAX_WAIT_MS": "50000",
}


def _values(path: Path) -> dict[str, str]:
    values: dict[str, str] = json.loads(path.read_text("utf-8"))["Values"]
    return values


def test_example_holds_the_settings_that_func_start_needs() -> None:
    document = json.loads(paths.EXAMPLE_SETTINGS.read_text("utf-8"))
    assert document["IsEncrypted"] is False
    assert document["Values"].items() >= EXPECTED.items()
    # The host puts values into the environment, so a number or a bool would stop its start.
    assert all(isinstance(value, str) for value in document["Values"].values())


def test_example_seal_key_has_the_right_length() -> None:
    assert len(base64.b64decode(EXPECTED["TOOLBOX_SEAL_KEY"], validate=True)) == 32


def test_created_settings_are_private_and_have_secrets_of_their_own(tmp_path: Path) -> None:
    paths_made = [tmp_path / "one.json", tmp_path / "two.json"]
    for path in paths_made:
        assert create_settings(path, paths.EXAMPLE_SETTINGS)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    one, two = map(_values, paths_made)
    example = _values(paths.EXAMPLE_SETTINGS)
    for name in GENERATED:
        assert one[name] not in ("", example.get(name), two[name])
    assert {name: one[name] for name in one if name not in GENERATED} == {
        name: value for name, value in example.items() if name not in GENERATED
    }
    assert len(base64.b64decode(one["TOOLBOX_SEAL_KEY"], validate=True)) == 32
    assert len(one["MCP_AUTH_TOKEN"]) >= 32
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "two.json"]


def test_existing_settings_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "local.settings.json"
    path.write_text("mine, even if it is not JSON")
    assert not create_settings(path, paths.EXAMPLE_SETTINGS)
    assert path.read_text() == "mine, even if it is not JSON"


def test_left_over_of_a_killed_run_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "settings.json.new").write_text("half")
    (tmp_path / "settings.json.new").chmod(0o644)
    assert create_settings(tmp_path / "settings.json", paths.EXAMPLE_SETTINGS)
    assert stat.S_IMODE((tmp_path / "settings.json").stat().st_mode) == 0o600


def test_environment_wins(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('\ufeff{"Values": {"A": "file", "B": "file"}}', "utf-8")
    assert effective_settings(path, {"A": "environment"}) == {"A": "environment", "B": "file"}


@pytest.mark.parametrize("text", ["{", "[]", '{"Values": []}', '{"Values": {"A": 1}}'])
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(DevError, match=r"settings\.json") as caught:
        effective_settings(path, {})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("settings", "token"),
    [
        ({"MCP_AUTH_TOKEN": "a", "MCP_AUTH_TOKENS": '{"default": "b"}'}, "a"),
        ({"MCP_AUTH_TOKENS": '{"default": "b"}'}, "b"),
        ({"MCP_AUTH_TOKENS": '{"default": ["c", "d"], "ann": "e"}'}, "c"),
        ({"MCP_AUTH_TOKENS": '{"ann": "e"}'}, "e"),
        ({"MCP_AUTH_TOKENS": "not JSON"}, None),
        ({"MCP_AUTH_TOKENS": "[]"}, None),
        ({}, None),
    ],
)
def test_token_of_the_demo(settings: dict[str, str], token: str | None) -> None:
    assert demo_token(settings) == token
