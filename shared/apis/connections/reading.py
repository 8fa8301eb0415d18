"""Reads connections from JSON: the setting CONNECTIONS, a file that it names, or a row that an operator made.

[{"name": "Prod", "url": "https://acme.crm.dynamics.com", "environment": "Production",
  "auth": {"type": "clientSecret", "tenantId": "…", "clientId": "…", "secretSetting": "PROD_SECRET"},
  "owners": ["ana"], "tools": ["dataverse_query"]}]
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from shared.apis.connections import auth, fields
from shared.apis.connections.model import Connection, EnvironmentKind, key_of
from shared.apis.connections.references import app_path, is_unresolved
from shared.errors import SettingsError
from shared.settings import DEFAULT_OWNER
from shared.text import kind_of, shape_of
from shared.tool.spec import JsonObject

SETTING: Final = "CONNECTIONS"

_FIELDS: Final = (
    "id", "name", "url", "environment", "category", "auth", "scopes", "powerPlatformUrl", "owners", "tools",
)  # fmt: skip
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: Ids of connections that name none: the same name gives the same id in every process.
_NAMESPACE: Final = uuid.UUID("6f0f5c3e-5c8b-5f0e-9a57-7f0f6d1f7c11")
#: Characters of an illegal entry's name that are shown.
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in a source: a connection, or what is wrong with it. It repeats no value but the name."""

    #: `$[0]`, the place in the source.
    path: str
    #: As far as it can be told.
    name: str
    connection: Connection | None
    faults: tuple[str, ...] = ()


def read_setting(text: str) -> list[Connection]:
    """The connections in the setting's text, or in the file of `@path`.

    Raises `SettingsError` with every fault: an app that came up without one of its connections would look well.
    """
    source, entries = setting_entries(text)
    faults = [fault for entry in entries for fault in entry.faults]
    if faults:
        raise SettingsError(f"{source}: {'; '.join(faults)}")
    return [entry.connection for entry in entries if entry.connection is not None]


def setting_entries(text: str) -> tuple[str, list[Entry]]:
    """(what to call the source, every entry). Raises `SettingsError` when it is no list that can be read."""
    source = SETTING
    if is_unresolved(text):
        raise SettingsError(
            f"{SETTING} is a reference that the platform could not resolve: check the vault's name and the "
            "app's access to it. Outside of Azure nothing resolves it."
        )
    if text.startswith("@"):
        path = app_path(text[1:])
        source = f"{SETTING} (the file {path.name})"
        try:
            text = path.read_text("utf-8-sig")
        except (OSError, ValueError):
            raise SettingsError(f"{source} cannot be read.") from None
    if not text.strip():
        return source, []
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise SettingsError(f"{source} must be a JSON list of connections; it is not JSON.") from None
    if not isinstance(raw, list):
        raise SettingsError(f"{source} must be a JSON list of connections, not {kind_of(raw)}.")
    return source, _unrepeated(entry_of(item, f"$[{number}]") for number, item in enumerate(raw))


def entry_of(raw: Any, path: str) -> Entry:
    """One entry of a source."""
    faults: list[str] = []
    connection = read(raw, path, faults)
    if connection is not None:
        return Entry(path, connection.name, connection)
    name = raw.get("name") if isinstance(raw, dict) else None
    shown = "".join(letter if letter.isprintable() else "?" for letter in str(name).strip()[:_SHOWN])
    return Entry(path, shown if isinstance(name, str) else "", None, tuple(faults))


def read(raw: Any, path: str, faults: list[str]) -> Connection | None:
    """One connection; None and faults with their JSON paths when it is none."""
    if not isinstance(raw, dict):
        faults.append(f"{path}: expected object, got {kind_of(raw)}")
        return None
    before = len(faults)
    fields.unknown(raw, _FIELDS, path, faults)
    name = fields.text(raw, "name", path, faults, required=True)
    url = fields.address(fields.text(raw, "url", path, faults, required=True), f"{path}.url", faults)
    kinds = [str(kind) for kind in EnvironmentKind]
    environment = raw.get("environment", kinds[0])
    if environment not in kinds:
        faults.append(f"{path}.environment: must be one of {', '.join(kinds)}, not {shape_of(environment)}")
    identifier = fields.text(raw, "id", path, faults) or id_of(name)
    if not _ID.fullmatch(identifier):
        faults.append(f"{path}.id: must be 1 to 64 of the characters A-Z a-z 0-9 _ . -, not another text")
    signing_in = auth.read(raw.get("auth"), f"{path}.auth", faults)
    owners = fields.texts(raw, "owners", path, faults)
    tools = fields.texts(raw, "tools", path, faults)
    scopes = fields.texts(raw, "scopes", path, faults)
    category = fields.text(raw, "category", path, faults)
    power_platform = fields.base(
        fields.text(raw, "powerPlatformUrl", path, faults), f"{path}.powerPlatformUrl", faults
    )
    if len(faults) > before or signing_in is None:
        return None
    return Connection(
        id=identifier,
        name=name,
        url=url,
        environment=EnvironmentKind(environment),
        auth=signing_in,
        category=category,
        scopes=scopes or (),
        power_platform_url=power_platform,
        owners=owners or (DEFAULT_OWNER,),
        tools=tools,
    )


def id_of(name: str) -> str:
    """The id of a connection that names none."""
    return str(uuid.uuid5(_NAMESPACE, key_of(name)))


def to_json(connection: Connection) -> JsonObject:
    """The inverse of `read`."""
    written: JsonObject = {
        "id": connection.id,
        "name": connection.name,
        "url": connection.url,
        "environment": str(connection.environment),
        "auth": auth.to_json(connection.auth),
        "owners": list(connection.owners),
    }
    if connection.category:
        written["category"] = connection.category
    if connection.scopes:
        written["scopes"] = list(connection.scopes)
    if connection.power_platform_url:
        written["powerPlatformUrl"] = connection.power_platform_url
    if connection.tools is not None:
        written["tools"] = list(connection.tools)
    return written


def _unrepeated(entries: Iterable[Entry]) -> list[Entry]:
    """Ids must differ. Names may not: which of two is meant is asked when one is used."""
    seen: dict[str, str] = {}
    found: list[Entry] = []
    for entry in entries:
        if (connection := entry.connection) is not None:
            first = seen.setdefault(connection.id, entry.path)
            if first != entry.path:
                fault = f"{entry.path}: two connections have the id '{connection.id}', this one and {first}"
                entry = replace(entry, connection=None, faults=(fault,))
        found.append(entry)
    return found
