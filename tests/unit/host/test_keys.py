"""Which key opens what."""

from __future__ import annotations

import pytest

from infra.local.host.keys import AuthLevel, Keys, Verdict

SETTINGS = {
    "MCP_EXTENSION_KEY": "system",
    "HOST_MASTER_KEY": "master",
    "HOST_FUNCTION_KEY": "host",
    "HOST_FUNCTION_KEY__Mine": "mine",
}
KEYS = Keys.from_settings(SETTINGS, enforce=True)
EVERY_KEY = [None, "", "wrong", "ü", *SETTINGS.values()]


@pytest.mark.parametrize("key", EVERY_KEY)
def test_mcp(key: str | None) -> None:
    wanted = {"system": Verdict.ALLOWED, "master": Verdict.ALLOWED} | dict.fromkeys(
        ("host", "mine"), Verdict.FORBIDDEN
    )
    assert KEYS.for_mcp(key) is wanted.get(key or "", Verdict.UNAUTHORIZED)


@pytest.mark.parametrize("key", EVERY_KEY)
@pytest.mark.parametrize(
    ("level", "openers"),
    [
        (AuthLevel.ANONYMOUS, set(EVERY_KEY)),
        (AuthLevel.FUNCTION, {"master", "host", "mine"}),
        (AuthLevel.ADMIN, {"master"}),
    ],
)
def test_functions(key: str | None, level: AuthLevel, openers: set[str | None]) -> None:
    allowed = KEYS.for_function("MINE", level, key) is Verdict.ALLOWED
    assert allowed is (key in openers)
    assert KEYS.for_function("other", AuthLevel.FUNCTION, "mine") is Verdict.UNAUTHORIZED


@pytest.mark.parametrize("key", EVERY_KEY)
def test_admin(key: str | None) -> None:
    assert (KEYS.for_admin(key) is Verdict.ALLOWED) is (key == "master")


@pytest.mark.parametrize("key", [None, "", "x"])
def test_a_key_that_is_not_configured_opens_nothing(key: str | None) -> None:
    keys = Keys.from_settings({}, enforce=True)
    assert keys.for_mcp(key) is Verdict.UNAUTHORIZED
    assert keys.for_function("f", AuthLevel.FUNCTION, key) is Verdict.UNAUTHORIZED
    assert keys.for_admin(key) is Verdict.UNAUTHORIZED


def test_nothing_is_checked_without_enforcement() -> None:
    keys = Keys.from_settings(SETTINGS, enforce=False)
    assert keys.for_mcp("wrong") is Verdict.ALLOWED
    assert keys.for_function("f", AuthLevel.ADMIN, None) is Verdict.ALLOWED
    assert keys.for_admin(None) is Verdict.ALLOWED


def test_keys_do_not_show_in_logs() -> None:
    assert "master" not in repr(KEYS).replace("HOST_MASTER_KEY", "")
    assert "system" not in repr(KEYS)
