"""How a connection signs in, read from its JSON. Pure.

`secretSetting` and its like name another setting, which the platform fills from Key Vault where it is a
reference. A secret itself is refused: it would be copied with every look at the setting. So is a field that the
way to sign in makes no use of: whoever wrote it expects something that would not happen.
"""

from __future__ import annotations

import re
from typing import Any, Final

from shared.apis.connections import fields
from shared.apis.connections.model import Auth, AuthType
from shared.text import kind_of, shape_of
from shared.tool.spec import JsonObject

#: What each way to sign in needs.
REQUIRED: Final[dict[AuthType, tuple[str, ...]]] = {
    AuthType.CLIENT_SECRET: ("tenantId", "clientId", "secretSetting"),
    AuthType.CLIENT_CERTIFICATE: ("tenantId", "clientId", "certificateSetting"),
    AuthType.MANAGED_IDENTITY: (),
    AuthType.DEFAULT: (),
}
#: What it may have beside that.
OPTIONAL: Final[dict[AuthType, tuple[str, ...]]] = {
    AuthType.CLIENT_SECRET: ("authority",),
    AuthType.CLIENT_CERTIFICATE: ("certificatePasswordSetting", "authority"),
    AuthType.MANAGED_IDENTITY: ("clientId",),
    AuthType.DEFAULT: ("tenantId", "clientId", "authority"),
}
#: Those that hold names of settings.
SETTINGS: Final = ("secretSetting", "certificateSetting", "certificatePasswordSetting")

_FIELDS: Final = ("tenantId", "clientId", *SETTINGS, "authority")
#: Where a careless author would put a secret, and where its setting's name goes.
_SECRETS: Final = {
    "secret": "secretSetting",
    "clientSecret": "secretSetting",
    "key": "secretSetting",
    "password": "certificatePasswordSetting",
    "certificate": "certificateSetting",
    "certificatePassword": "certificatePasswordSetting",
}
_SETTING_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
#: GUIDs and domains; azure-identity takes nothing else.
_PLAIN: Final = re.compile(r"[A-Za-z0-9.-]+")


def read(raw: Any, path: str, faults: list[str]) -> Auth | None:
    """None and faults with their JSON paths when it is none."""
    if not isinstance(raw, dict):
        faults.append(f"{path}: expected object, got {kind_of(raw)}")
        return None
    before = len(faults)
    faults += [
        f"{path}.{name}: a secret does not stand here: put it into a setting, and that one's name into {field}"
        for name, field in _SECRETS.items()
        if name in raw
    ]
    fields.unknown({name: None for name in raw if name not in _SECRETS}, ("type", *_FIELDS), path, faults)
    kinds = [str(kind) for kind in AuthType]
    if raw.get("type") not in kinds:
        faults.append(f"{path}.type: must be one of {', '.join(kinds)}, not {shape_of(raw.get('type'))}")
        return None
    kind = AuthType(raw["type"])
    used = (*REQUIRED[kind], *OPTIONAL[kind])
    given = {name: fields.text(raw, name, path, faults, required=name in REQUIRED[kind]) for name in _FIELDS}
    faults += [
        f"{path}.{name}: is not used with {kind}, which takes {', '.join(used)}"
        for name in _FIELDS
        if raw.get(name) is not None and name not in used
    ]
    faults += _illegal(given, path)
    authority = fields.address(given["authority"], f"{path}.authority", faults)
    if len(faults) > before:
        return None
    return Auth(
        type=kind,
        tenant_id=given["tenantId"],
        client_id=given["clientId"],
        secret_setting=given["secretSetting"],
        certificate_setting=given["certificateSetting"],
        certificate_password_setting=given["certificatePasswordSetting"],
        authority=authority,
    )


def to_json(auth: Auth) -> JsonObject:
    """The inverse of `read`."""
    written = {
        "type": str(auth.type),
        "tenantId": auth.tenant_id,
        "clientId": auth.client_id,
        "secretSetting": auth.secret_setting,
        "certificateSetting": auth.certificate_setting,
        "certificatePasswordSetting": auth.certificate_password_setting,
        "authority": auth.authority,
    }
    return {name: value for name, value in written.items() if value}


def is_setting_name(text: str) -> bool:
    """Whether a setting can be called so: letters, digits and _, on Azure as in a shell."""
    return _SETTING_NAME.fullmatch(text) is not None


def _illegal(given: dict[str, str], path: str) -> list[str]:
    """Values that cannot be right. None of them is repeated: it may be a secret in the wrong place."""
    faults = [
        f"{path}.{name}: must be the name of a setting, like PROD_SECRET, and never the secret itself"
        for name in SETTINGS
        if given[name] and not is_setting_name(given[name])
    ]
    return faults + [
        f"{path}.{name}: must be a GUID{' or a domain' if name == 'tenantId' else ''}"
        for name in ("tenantId", "clientId")
        if given[name] and not _PLAIN.fullmatch(given[name])
    ]
