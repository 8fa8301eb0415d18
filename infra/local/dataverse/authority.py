"""The token endpoint: client credentials (secret or certificate), managed identity; tokens that do expire."""

from __future__ import annotations

import base64
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.assertions import AssertionRefusedError, check_assertion
from infra.local.dataverse.call import Answer
from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.values import new_guid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

POWER_PLATFORM: Final = "https://api.powerplatform.com"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True, slots=True, repr=False)
class App:
    """An app registration. `certificates` are PEM texts of what it may sign with."""

    client_id: str
    secret: str
    tenant: str
    certificates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """An access token that was handed out; `serial` names it in the request log."""

    serial: int
    value: str
    tenant: str
    app: str
    audience: str
    expires: float  # of time.monotonic()


class Authority:
    """The apps of some tenants, and the tokens they hold.

    `lifetime` (seconds) counts for tokens from now on. `audiences` tells what resources there are.
    """

    def __init__(self, apps: tuple[App, ...], audiences: Callable[[], set[str]], lifetime: float) -> None:
        self.apps = {(app.tenant, app.client_id): app for app in apps}
        self.lifetime = lifetime
        self.identity: App | None = apps[0] if apps else None  # whose token managed identity gives out
        self.identity_header = secrets.token_urlsafe(16)
        self._audiences = audiences
        self._tokens: dict[str, Token] = {}
        self._serial = 0

    @property
    def issued(self) -> int:
        """How many tokens were handed out so far."""
        return self._serial

    def expire_tokens(self) -> None:
        """Let every token that is out be expired from now on."""
        now = time.monotonic()
        self._tokens = {
            value: Token(one.serial, value, one.tenant, one.app, one.audience, min(one.expires, now))
            for value, one in self._tokens.items()
        }

    def grant(self, tenant: str, form: Mapping[str, str], endpoint: str) -> Answer:
        """Answer a token request."""
        if not any(known == tenant for known, _ in self.apps):
            return _refusal(400, "invalid_request", 90002, f"Tenant '{tenant}' not found.")
        if form.get("grant_type") != "client_credentials":
            return _refusal(
                400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type."
            )
        app = self.apps.get((tenant, form.get("client_id", "")))
        if app is None:
            message = (
                f"Application with identifier '{form.get('client_id', '')}' was not found in the directory."
            )
            return _refusal(400, "unauthorized_client", 700016, message)
        if (refusal := self._authenticate(app, form, endpoint)) is not None:
            return refusal
        scope = form.get("scope", "")
        if not scope.endswith("/.default"):
            message = f"The provided value for the input parameter 'scope' is not valid: {scope}"
            return _refusal(400, "invalid_scope", 1002012, message)
        return self._issue(app, scope.removesuffix("/.default"))

    def grant_identity(self, query: Mapping[str, str], header: str | None) -> Answer:
        """Answer App Service's managed identity endpoint (api-version 2019-08-01)."""
        if header is None or not compare_digest(header, self.identity_header) or self.identity is None:
            return Answer(401, {"statusCode": 401, "message": "The X-IDENTITY-HEADER is missing or wrong."})
        answer = self._issue(self.identity, query.get("resource", ""))
        if answer.status == 200:
            answer.body["expires_on"] = str(int(time.time() + self.lifetime))
            answer.body["resource"] = query["resource"]
        return answer

    def check(self, header: str | None, tenant: str | None, audience: str, root: str) -> Token:
        """The token of an Authorization header, good for the audience. Raises ApiError (401)."""
        kind, _, value = (header or "").partition(" ")
        token = self._tokens.get(value.strip()) if kind.lower() == "bearer" else None
        problem = ""
        if token is None:
            problem = "The access token is missing or unknown."
        elif token.expires <= time.monotonic():
            problem = "The access token has expired."
        elif token.audience.rstrip("/") != audience or tenant not in {None, token.tenant}:
            problem = "The access token is for another audience or tenant."
        if token is None or problem:
            challenge = (
                f'Bearer error="invalid_token", error_description="{problem}", '
                f'authorization_uri="{root}/{tenant or "common"}/oauth2/authorize", resource_id="{audience}/"'
            )
            raise ApiError(401, "0x80040220", problem, {"WWW-Authenticate": challenge})
        return token

    def _authenticate(self, app: App, form: Mapping[str, str], endpoint: str) -> Answer | None:
        if form.get("client_assertion_type") == _ASSERTION:
            try:
                check_assertion(form.get("client_assertion", ""), app.client_id, endpoint, app.certificates)
            except AssertionRefusedError as error:
                return _refusal(401, "invalid_client", 700027, f"Client assertion failed validation. {error}")
            return None
        if not compare_digest(form.get("client_secret", "").encode(), app.secret.encode()):
            return _refusal(401, "invalid_client", 7000215, "Invalid client secret provided.")
        return None

    def _issue(self, app: App, audience: str) -> Answer:
        if audience.rstrip("/") not in self._audiences():
            message = f"The resource principal named {audience} was not found in the tenant."
            return _refusal(400, "invalid_resource", 500011, message)
        self._serial += 1
        claims = {"aud": audience, "appid": app.client_id, "tid": app.tenant, "jti": self._serial,
                  "exp": int(time.time() + self.lifetime)}  # fmt: skip
        parts = [_encoded({"alg": "none", "typ": "JWT"}), _encoded(claims), secrets.token_urlsafe(24)]
        value = ".".join(parts)
        expires = time.monotonic() + self.lifetime
        self._tokens[value] = Token(self._serial, value, app.tenant, app.client_id, audience, expires)
        seconds = int(self.lifetime)
        body = {"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": value}
        return Answer(200, body, {"Cache-Control": "no-store"}, "application/json; charset=utf-8")


def discovery(root: str, tenant: str) -> dict[str, Any]:
    """The OpenID configuration that client libraries read first."""
    base = f"{root}/{tenant}"
    return {
        "token_endpoint": f"{base}/oauth2/v2.0/token", "issuer": f"{base}/v2.0",
        "authorization_endpoint": f"{base}/oauth2/v2.0/authorize", "jwks_uri": f"{base}/discovery/v2.0/keys",
        "response_types_supported": ["code"], "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }  # fmt: skip


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _refusal(status: int, error: str, code: int, message: str) -> Answer:
    body = {
        "error": error, "error_description": f"AADSTS{code}: {message}", "error_codes": [code],
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ"), "trace_id": new_guid(),
        "correlation_id": new_guid(),
    }  # fmt: skip
    return Answer(status, body, media="application/json; charset=utf-8")
