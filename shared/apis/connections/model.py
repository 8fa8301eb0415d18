"""A saved connection: an environment, how to sign in to it, and who may use it. Pure.

It never holds a secret, only the names of the settings that do: nothing that shows a connection can show one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shared.settings import DEFAULT_OWNER
from shared.tool.spec import JsonObject


class AuthType(StrEnum):
    CLIENT_SECRET = "clientSecret"  # noqa: S105 - a way to sign in
    CLIENT_CERTIFICATE = "clientCertificate"
    MANAGED_IDENTITY = "managedIdentity"
    #: What the environment offers: workload identity, a developer's own sign-in, …
    DEFAULT = "default"


class EnvironmentKind(StrEnum):
    DEV = "Dev"
    TEST = "Test"
    UAT = "UAT"
    PRODUCTION = "Production"


#: What each way to sign in needs.
REQUIRED: Final[dict[AuthType, tuple[str, ...]]] = {
    AuthType.CLIENT_SECRET: ("tenantId", "clientId", "secretSetting"),
    AuthType.CLIENT_CERTIFICATE: ("tenantId", "clientId", "certificateSetting"),
    AuthType.MANAGED_IDENTITY: (),
    AuthType.DEFAULT: (),
}


@dataclass(frozen=True, slots=True)
class Auth:
    """How to sign in."""

    type: AuthType
    tenant_id: str = ""
    client_id: str = ""
    #: Name of the setting with the client secret.
    secret_setting: str = ""
    #: Name of the setting with the certificate: PEM or base64 PFX, or the path of a file of either kind.
    certificate_setting: str = ""
    #: Another sign-in host than the public cloud's.
    authority: str = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """One saved connection."""

    id: str
    name: str
    #: `https://org.crm.dynamics.com`, without a slash at its end.
    url: str
    environment: EnvironmentKind
    auth: Auth = field(repr=False)
    category: str = ""
    #: Scopes for the Power Platform API; empty: its default one.
    scopes: tuple[str, ...] = ()
    #: Who may use it.
    owners: tuple[str, ...] = (DEFAULT_OWNER,)
    #: Names of the tools that may; None: all.
    tools: tuple[str, ...] | None = None

    def open_to(self, owner: str, tool: str) -> bool:
        return owner in self.owners and (self.tools is None or tool in self.tools)

    @property
    def key(self) -> str:
        """What its name is compared by."""
        return key_of(self.name)

    def to_wire(self) -> JsonObject:
        """What tools see: no way to sign in."""
        wire: JsonObject = {
            "id": self.id,
            "name": self.name,
            "url": self.url,
            "environment": str(self.environment),
        }
        if self.category:
            wire["category"] = self.category
        if self.scopes:
            wire["scopesForPowerPlatformAPI"] = list(self.scopes)
        return wire


def key_of(name: str) -> str:
    return name.strip().casefold()
