"""Access tokens for connections: fetched when needed, kept until a minute before they expire.

azure-identity is loaded at the first token. Its credentials have a cache of their own; this one is what several
threads wait at, so that a token is asked for once and not by every one of them.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from shared import redaction
from shared.apis.connections.model import AuthType, Connection
from shared.apis.connections.reasons import reason_of
from shared.apis.connections.references import app_path, is_unresolved
from shared.errors import ConnectionsError

_LOG = logging.getLogger(__name__)

#: Seconds before its end at which a token is not used any more.
MARGIN: Final = 60.0
#: Seconds, and repeats. azure-identity's own would let a call hang for minutes at a host that does not answer.
CONNECT_TIMEOUT: Final = 10
READ_TIMEOUT: Final = 30
RETRIES: Final = 2


class Credential(Protocol):
    """What azure-identity's credentials have in common."""

    def get_token(self, *scopes: str) -> Any:
        """An object with `token` and `expires_on` (seconds since 1970)."""


@dataclass(frozen=True, slots=True)
class Token:
    value: str = field(repr=False)
    #: Seconds since 1970.
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

    def expires_on(self, scope: str) -> float | None:
        """When the newest token for `scope` ends, in seconds since 1970; None: none was fetched."""
        known = self._tokens.get(scope)
        return None if known is None else known.expires_on

    def get(self, scope: str, *, rejected: str | None = None) -> str:
        """A token that is good for another minute. `rejected`: one that the service has refused. Blocks.

        Raises `ConnectionsError`, which holds no secret and no answer of the sign-in service. Why it was
        refused is told in the app's log, for its operator.
        """
        with self._lock:
            if (known := self.kept(scope, rejected=rejected)) is not None:
                return known
            if self._credential is None or rejected is not None:
                self._credential = self._made()
            try:
                got = self._credential.get_token(scope)
            except Exception as error:
                self._credential = None  # its secret or its certificate's file may be another one next time
                raise self._failure(error) from error
            self._tokens[scope] = Token(str(got.token), float(got.expires_on))
            return str(got.token)

    def _made(self) -> Credential:
        try:
            return self._make(self._connection, self._environ)
        except ConnectionsError:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ConnectionsError:
        name, kind = self._connection.name, type(error).__name__
        _LOG.warning("signing in for the connection '%s' failed: %s", name, reason_of(error).text)
        return ConnectionsError(f"Signing in for the connection '{name}' failed ({kind}).")


def credential(connection: Connection, environ: Mapping[str, str]) -> Credential:
    """azure-identity's credential for a connection. Raises `ConnectionsError` that names a missing setting.

    azure-identity's own errors (a password that does not open the certificate, …) go through as they are.
    """
    import azure.identity as identity

    auth = connection.auth
    bounds: dict[str, Any] = {"connection_timeout": CONNECT_TIMEOUT, "read_timeout": READ_TIMEOUT}
    options: dict[str, Any] = {**bounds}
    if auth.authority:
        options["authority"] = auth.authority
        # A sign-in host of one's own is in no public list of them.
        options["disable_instance_discovery"] = True
    made: Credential
    match auth.type:
        case AuthType.CLIENT_SECRET:
            secret = _setting(auth.secret_setting, connection, environ)
            redaction.remember(secret)
            made = identity.ClientSecretCredential(
                auth.tenant_id, auth.client_id, secret, retry_total=RETRIES, **options
            )
        case AuthType.CLIENT_CERTIFICATE:
            name = auth.certificate_setting
            data = _certificate(_setting(name, connection, environ), name, connection)
            if auth.certificate_password_setting:
                password = _setting(auth.certificate_password_setting, connection, environ)
                redaction.remember(password)
                options["password"] = password
            made = identity.CertificateCredential(
                auth.tenant_id, auth.client_id, certificate_data=data, retry_total=RETRIES, **options
            )
        case AuthType.MANAGED_IDENTITY:
            made = identity.ManagedIdentityCredential(client_id=auth.client_id or None, **bounds)
        case AuthType.DEFAULT:
            if auth.client_id:
                options["managed_identity_client_id"] = auth.client_id  # workload identity's too
            if auth.tenant_id:
                options["workload_identity_tenant_id"] = auth.tenant_id
            made = identity.DefaultAzureCredential(**options)
    return made


def _setting(name: str, connection: Connection, environ: Mapping[str, str]) -> str:
    value = environ.get(name, "")
    if not value.strip():
        raise ConnectionsError(
            f"The connection '{connection.name}' needs the setting {name}, which is not set."
        )
    if is_unresolved(value):
        raise ConnectionsError(
            f"The setting {name} of the connection '{connection.name}' is a Key Vault reference that the "
            "platform could not resolve: check the vault's name and the app's access to it."
        )
    return value


def _certificate(text: str, name: str, connection: Connection) -> bytes:
    """PEM as it is, a base64 PFX decoded, or the content of a file of either kind."""
    if "-----BEGIN" in text:
        return text.replace("\\n", "\n").encode()
    try:
        found = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if found[:1] == b"\x30":  # how a PFX begins; a path that happens to be base64 does not decode to that
        return found
    try:
        return app_path(text).read_bytes()
    except (OSError, ValueError):
        raise ConnectionsError(
            f"The setting {name} of the connection '{connection.name}' must be a certificate (PEM, or PFX as "
            "base64) or the path of a file that can be read."
        ) from None
