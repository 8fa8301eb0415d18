"""A saved connection: an environment, how to sign in to it, and who may use it. Pure.

It never holds a secret, only the names of the settings that do: nothing that shows a connection can show one.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum

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
    #: Name of the setting with the certificate's password.
    certificate_password_setting: str = ""
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
    #: Where the Power Platform API is, without a slash at its end; empty: the public cloud's.
    power_platform_url: str = ""
    #: Who may use it.
    owners: tuple[str, ...] = (DEFAULT_OWNER,)
    #: Names of the tools that may; None: all.
    tools: tuple[str, ...] | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the settings that signing in needs."""
        auth = self.auth
        named = (auth.secret_setting, auth.certificate_setting, auth.certificate_password_setting)
        return tuple(name for name in named if name)

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
    """Names that differ in case, in blanks around them, or in how an accent is written, are the same."""
    return unicodedata.normalize("NFC", name.strip().casefold())
