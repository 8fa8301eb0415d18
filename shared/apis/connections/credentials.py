"""Access tokens for connections: fetched when needed, kept until a minute before they expire.

azure-identity is loaded at the first token. Its credentials have a cache of their own; this one is what several
threads wait at, so that a token is asked for once and not by every one of them.
"""

from __future__ import annotations

import base64
import binascii
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from shared.apis.connections.model import AuthType, Connection
from shared.errors import ConnectionsError

#: Seconds before its end at which a token is not used any more.
MARGIN: Final = 60.0


class Credential(Protocol):
    """What azure-identity's credentials have in common."""

    def get_token(self, *scopes: str) -> Any:
        """An object with `token` and `expires_on` (seconds since 1970)."""


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    expires_on: float


class TokenSource:
    """Tokens of one connection, by scope. Thread-safe."""

    def __init__(
        self,
        connection: Connection,
        environ: Mapping[str, str] = os.environ,
        make: Callable[[Connection, Mapping[str, str]], Credential] | None = None,
    ) -> None:
        self._connection = connection
        self._environ = environ
        self._make = make or credential
        self._credential: Credential | None = None
        self._tokens: dict[str, Token] = {}
        # One refresh at a time: whoever comes meanwhile waits and gets the same token.
        self._lock = threading.Lock()

    def kept(self, scope: str, *, rejected: str | None = None) -> str | None:
        """The token that `get` would give without asking for one, if there is one. Never waits."""
        known = self._tokens.get(scope)
        good = known is not None and known.value != rejected and time.time() < known.expires_on - MARGIN
        return known.value if known is not None and good else None

    def get(self, scope: str, *, rejected: str | None = None) -> str:
        """A token that is good for another minute. `rejected`: one that the service has refused. Blocks.

        Raises `ConnectionsError`, which holds no secret and no answer of the sign-in service.
        """
        with self._lock:
            if (known := self.kept(scope, rejected=rejected)) is not None:
                return known
            if self._credential is None or rejected is not None:
                self._credential = self._make(self._connection, self._environ)
            try:
                got = self._credential.get_token(scope)
            except Exception as error:
                name, kind = self._connection.name, type(error).__name__
                raise ConnectionsError(f"Signing in for the connection '{name}' failed ({kind}).") from error
            self._tokens[scope] = Token(str(got.token), float(got.expires_on))
            return str(got.token)


def credential(connection: Connection, environ: Mapping[str, str]) -> Credential:
    """azure-identity's credential for a connection. Raises `ConnectionsError` that names a missing setting."""
    import azure.identity as identity

    auth = connection.auth
    options: dict[str, Any] = {}
    if auth.authority:
        options["authority"] = auth.authority
        # A sign-in host of one's own is in no public list of them.
        options["disable_instance_discovery"] = True
    made: Credential
    match auth.type:
        case AuthType.CLIENT_SECRET:
            secret = _setting(auth.secret_setting, connection, environ)
            made = identity.ClientSecretCredential(auth.tenant_id, auth.client_id, secret, **options)
        case AuthType.CLIENT_CERTIFICATE:
            data = _certificate(_setting(auth.certificate_setting, connection, environ))
            made = identity.CertificateCredential(
                auth.tenant_id, auth.client_id, certificate_data=data, **options
            )
        case AuthType.MANAGED_IDENTITY:
            made = identity.ManagedIdentityCredential(client_id=auth.client_id or None)
        case AuthType.DEFAULT:
            made = identity.DefaultAzureCredential(managed_identity_client_id=auth.client_id or None, **options)
    return made


def _setting(name: str, connection: Connection, environ: Mapping[str, str]) -> str:
    value = environ.get(name, "")
    if not value:
        raise ConnectionsError(
            f"The connection '{connection.name}' needs the setting {name}, which is not set."
        )
    if value.startswith("@Microsoft.KeyVault("):
        raise ConnectionsError(
            f"The setting {name} of the connection '{connection.name}' is a Key Vault reference that the "
            "platform could not resolve: check the vault's name and the app's access to it."
        )
    return value


def _certificate(text: str) -> bytes:
    """PEM as it is, a base64 PFX decoded, or the content of a file of either kind."""
    if "-----BEGIN" in text:
        return text.replace("\\n", "\n").encode()
    if len(text) < 1_000:
        try:
            return Path(text).read_bytes()
        except (OSError, ValueError):
            raise ConnectionsError("The certificate's setting names a file that cannot be read.") from None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConnectionsError("The certificate's setting is neither PEM nor a base64 PFX.") from None
