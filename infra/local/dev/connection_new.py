"""What `dev.py connection add` was given, as a connection: by the app's own rules, and with no secret."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

from infra.local.dev.connection_options import NOT_HERE
from infra.local.dev.console import DevError
from shared.apis.connections import reading
from shared.apis.connections.auth import is_setting_name
from shared.apis.connections.model import Connection

#: Option (as argparse names it) -> the connection's key, and those of its `auth`.
_KEYS = {
    "name": "name",
    "url": "url",
    "environment": "environment",
    "category": "category",
    "power_platform_url": "powerPlatformUrl",
    "scope": "scopes",
    "owner": "owners",
    "tool": "tools",
}
_AUTH_KEYS = {
    "auth": "type",
    "tenant_id": "tenantId",
    "client_id": "clientId",
    "secret_setting": "secretSetting",
    "certificate_setting": "certificateSetting",
    "certificate_password_setting": "certificatePasswordSetting",
    "authority": "authority",
}
_SETTINGS = ("secret_setting", "certificate_setting", "certificate_password_setting")
#: A word of a name that is this long, with digits among its letters this often, was not thought of by a person.
_RANDOM_LENGTH = 16
_RANDOM_DIGITS = 3
_DIGITS_INSIDE = re.compile(r"[0-9]+(?=[A-Za-z])")


def new_connection(options: argparse.Namespace, settings: Mapping[str, str]) -> Connection:
    """Raises `DevError` with every fault, by option; it repeats nothing that may be a secret."""
    _refuse_secrets(options, settings)
    raw = {key: value for option, key in _KEYS.items() if (value := getattr(options, option)) is not None}
    raw["auth"] = {
        key: value for option, key in _AUTH_KEYS.items() if (value := getattr(options, option)) is not None
    }
    faults: list[str] = []
    connection = reading.read(raw, "$", faults)
    if connection is None:
        told = "; ".join(_by_option(fault) for fault in faults)
        raise DevError(f"The connection cannot be saved: {told}.", exit_code=2)
    return connection


def looks_like_a_secret(value: str) -> bool:
    """Whether the name of a setting is none that anybody would give: a secret was pasted."""
    if not is_setting_name(value):
        return True
    return any(
        len(word) >= _RANDOM_LENGTH and len(_DIGITS_INSIDE.findall(word)) >= _RANDOM_DIGITS
        for word in value.split("_")
    )


def _refuse_secrets(options: argparse.Namespace, settings: Mapping[str, str]) -> None:
    values = {value for value in settings.values() if value}
    for option in _SETTINGS:
        given = getattr(options, option)
        if given is None or (given in settings and is_setting_name(given)):
            continue
        if looks_like_a_secret(given) or given in values:
            raise DevError(
                f"{_shown(option)} takes the name of a setting, such as PROD_SECRET, and what was given looks "
                "like the secret itself. Nothing was saved.",
                NOT_HERE,
                exit_code=2,
            )


def _by_option(fault: str) -> str:
    """A fault with the option's name in the place of the JSON path."""
    path, _, text = fault.partition(": ")
    for option, key in {**{o: f"$.{k}" for o, k in _KEYS.items()}, **_auth_paths()}.items():
        if path == key:
            return f"{_shown(option)}: {text}"
    return fault


def _auth_paths() -> dict[str, str]:
    return {option: f"$.auth.{key}" for option, key in _AUTH_KEYS.items()}


def _shown(option: str) -> str:
    return "NAME" if option == "name" else f"--{option.replace('_', '-')}"
