"""Reads connections from JSON: the setting CONNECTIONS, a file that it names, or a row that an operator made.

    [{"name": "Prod", "url": "https://acme.crm.dynamics.com", "environment": "Production",
      "auth": {"type": "clientSecret", "tenantId": "…", "clientId": "…", "secretSetting": "PROD_SECRET"},
      "owners": ["ana"], "tools": ["dataverse_query"]}]

`secretSetting` names another setting, which the platform fills from Key Vault where it is a reference. A secret
itself is refused: it would be copied with every look at the setting.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from shared.apis.connections.model import REQUIRED, Auth, AuthType, Connection, EnvironmentKind, key_of
from shared.errors import SettingsError
from shared.settings import DEFAULT_OWNER
from shared.tool.spec import JsonObject
from shared.tool.validation import kind_of

SETTING: Final = "CONNECTIONS"

_FIELDS: Final = ("id", "name", "url", "environment", "category", "auth", "scopes", "owners", "tools")
_AUTH_FIELDS: Final = ("type", "tenantId", "clientId", "secretSetting", "certificateSetting", "authority")
#: Where a careless author would put a secret.
_SECRETS: Final = ("secret", "clientSecret", "password", "certificate", "key")
_SETTING_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: Ids of connections that name none: the same name gives the same id in every process.
_NAMESPACE: Final = uuid.UUID("6f0f5c3e-5c8b-5f0e-9a57-7f0f6d1f7c11")


def read_setting(text: str) -> list[Connection]:
    """The connections in the setting's text, or in the file of `@path`.

    Raises `SettingsError` with every fault.
    """
    source = SETTING
    if text.startswith("@"):
        path = Path(text[1:].strip())
        source = f"{SETTING} (the file {path.name})"
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, ValueError):
            raise SettingsError(f"{source} cannot be read.") from None
    if not text.strip():
        return []
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise SettingsError(f"{source} must be a JSON list of connections; it is not JSON.") from None
    if not isinstance(raw, list):
        raise SettingsError(f"{source} must be a JSON list of connections, not {kind_of(raw)}.")
    faults: list[str] = []
    found = [read(entry, f"$[{number}]", faults) for number, entry in enumerate(raw)]
    connections = [connection for connection in found if connection is not None]
    faults += _repeated(connections)
    if faults:
        raise SettingsError(f"{source}: {'; '.join(faults)}")
    return connections


def read(raw: Any, path: str, faults: list[str]) -> Connection | None:
    """One connection; None and faults with their JSON paths when it is none."""
    if not isinstance(raw, dict):
        faults.append(f"{path}: expected object, got {kind_of(raw)}")
        return None
    before = len(faults)
    _unknown(raw, _FIELDS, path, faults)
    name = _text(raw, "name", path, faults, required=True)
    url = _url(_text(raw, "url", path, faults, required=True), f"{path}.url", faults)
    kinds = [str(kind) for kind in EnvironmentKind]
    environment = raw.get("environment", kinds[0])
    if environment not in kinds:
        faults.append(f"{path}.environment: must be one of {', '.join(kinds)}")
    identifier = _text(raw, "id", path, faults) or str(uuid.uuid5(_NAMESPACE, key_of(name)))
    if not _ID.fullmatch(identifier):
        faults.append(f"{path}.id: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -")
    auth = _auth(raw.get("auth"), f"{path}.auth", faults)
    owners = _texts(raw, "owners", path, faults)
    tools = _texts(raw, "tools", path, faults)
    scopes = _texts(raw, "scopes", path, faults)
    category = _text(raw, "category", path, faults)
    if len(faults) > before or auth is None:
        return None
    return Connection(
        id=identifier,
        name=name.strip(),
        url=url,
        environment=EnvironmentKind(environment),
        auth=auth,
        category=category,
        scopes=scopes or (),
        owners=owners or (DEFAULT_OWNER,),
        tools=tools,
    )


def to_json(connection: Connection) -> JsonObject:
    """The inverse of `read`."""
    auth = connection.auth
    written: JsonObject = {
        "id": connection.id,
        "name": connection.name,
        "url": connection.url,
        "environment": str(connection.environment),
        "auth": {
            "type": str(auth.type),
            "tenantId": auth.tenant_id,
            "clientId": auth.client_id,
            "secretSetting": auth.secret_setting,
            "certificateSetting": auth.certificate_setting,
            "authority": auth.authority,
        },
        "owners": list(connection.owners),
    }
    written["auth"] = {name: value for name, value in written["auth"].items() if value}
    if connection.category:
        written["category"] = connection.category
    if connection.scopes:
        written["scopes"] = list(connection.scopes)
    if connection.tools is not None:
        written["tools"] = list(connection.tools)
    return written


def _auth(raw: Any, path: str, faults: list[str]) -> Auth | None:
    if not isinstance(raw, dict):
        faults.append(f"{path}: expected object, got {kind_of(raw)}")
        return None
    before = len(faults)
    advice = "a secret does not stand here: put it into a setting, and that one's name into secretSetting"
    faults += [f"{path}.{name}: {advice}" for name in _SECRETS if name in raw]
    _unknown(raw, (*_AUTH_FIELDS, *_SECRETS), path, faults)
    kinds = [str(kind) for kind in AuthType]
    if raw.get("type") not in kinds:
        faults.append(f"{path}.type: must be one of {', '.join(kinds)}")
        return None
    kind = AuthType(raw["type"])
    given = {name: _text(raw, name, path, faults, required=name in REQUIRED[kind]) for name in _AUTH_FIELDS[1:]}
    faults += [
        f"{path}.{name}: must be the name of a setting, like PROD_SECRET"
        for name in ("secretSetting", "certificateSetting")
        if given[name] and not _SETTING_NAME.fullmatch(given[name])
    ]
    authority = given["authority"] and _url(given["authority"], f"{path}.authority", faults)
    if len(faults) > before:
        return None
    return Auth(
        kind,
        given["tenantId"],
        given["clientId"],
        given["secretSetting"],
        given["certificateSetting"],
        authority,
    )


def _url(text: str, path: str, faults: list[str]) -> str:
    """The address of an environment: https, a host, nothing behind it."""
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
        plain = f"https://{parts.hostname}{port}" if parts.hostname else None
    except ValueError:
        plain = None
    if text.rstrip("/").lower() != plain:
        faults.append(f"{path}: must be like https://org.crm.dynamics.com, with nothing behind the host")
    return text.rstrip("/")


def _text(raw: JsonObject, name: str, path: str, faults: list[str], *, required: bool = False) -> str:
    value = raw.get(name)
    if value is None:
        if required:
            faults.append(f"{path}.{name}: required field is missing")
        return ""
    if not isinstance(value, str) or not value.strip() or len(value) > 500:
        faults.append(f"{path}.{name}: must be a text of 1 to 500 characters")
        return ""
    return value.strip()


def _texts(raw: JsonObject, name: str, path: str, faults: list[str]) -> tuple[str, ...] | None:
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
        faults.append(f"{path}.{name}: must be a list of one or more texts")
        return None
    return tuple(value)


def _unknown(raw: JsonObject, known: tuple[str, ...], path: str, faults: list[str]) -> None:
    faults += [
        f"{path}: unknown field '{name[:80]}'; known are {', '.join(known)}"
        for name in raw
        if name not in known
    ]


def _repeated(connections: Iterable[Connection]) -> list[str]:
    """Ids must differ. Names may not: which of two is meant is asked when one is used."""
    seen: set[str] = set()
    faults = []
    for connection in connections:
        if connection.id in seen:
            faults.append(f"two connections have the id '{connection.id}'")
        seen.add(connection.id)
    return faults
