"""Who is calling: an access token names an owner; so does the platform's sign-in where settings trust it.

Tokens are compared in constant time, and every configured token is compared on every call, so that neither the
time nor the answer tells which owners exist.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from shared.errors import AuthenticationError, SettingsError
from shared.principal import PRINCIPAL_HEADER, owner_of_principal
from shared.settings import DEFAULT_OWNER, Settings

TOKEN_HEADER: Final = "X-MCP-Auth-Token"  # noqa: S105 - a header's name
UNCONFIGURED_MESSAGE: Final = (
    "No access token is configured on this server. Set MCP_AUTH_TOKEN or MCP_AUTH_TOKENS."
)


class TokenState(Enum):
    """What an HTTP request's token means, before anything else is looked at."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    #: Nobody could be let in: answered 503, never 200.
    UNCONFIGURED = "unconfigured"


def owner_of(token: str, owner_tokens: Mapping[str, tuple[str, ...]]) -> str | None:
    """The owner that `token` names, or None. Always compares with every token."""
    presented = token.encode("utf-8", "surrogateescape")
    found: str | None = None
    for owner, tokens in owner_tokens.items():
        for known in tokens:
            if hmac.compare_digest(presented, known.encode("utf-8", "surrogateescape")):
                found = owner
    return found if presented else None


def check_http(headers: Mapping[str, str], settings: Settings) -> tuple[TokenState, str]:
    """(state, owner) of an HTTP request. The owner is empty unless the state is ACCEPTED."""
    if not settings.owner_tokens and not settings.trust_easyauth:
        return TokenState.UNCONFIGURED, ""
    presented = _header(headers.items(), TOKEN_HEADER)
    if presented is None and settings.trust_easyauth:
        owner = owner_of_principal(_header(headers.items(), PRINCIPAL_HEADER))
    else:
        owner = owner_of(presented or "", settings.owner_tokens)
    return (TokenState.REFUSED, "") if owner is None else (TokenState.ACCEPTED, owner)


def owner_of_call(headers: Mapping[str, object], settings: Settings) -> str:
    """The owner of an MCP call, from the request headers in the trigger's payload.

    A caller without the header has still shown the MCP key to the host, so it is owner `default`, unless the
    app has only named owners or TOOLBOX_REQUIRE_TOKEN is set. A header that is there must be right: wrong,
    empty and repeated ones are refused, never taken for an absent one.

    With TOOLBOX_TRUST_EASYAUTH the caller has signed in instead and may have shown no key at all, so one that
    has neither a token nor a principal is refused, never owner `default`.

    Raises `AuthenticationError`; `SettingsError` when a token came and none is configured.
    """
    presented = _header(headers.items(), TOKEN_HEADER)
    if presented is None and settings.trust_easyauth:
        signed_in = owner_of_principal(_header(headers.items(), PRINCIPAL_HEADER))
        if signed_in is None:
            raise AuthenticationError(
                f"{AuthenticationError.default}: sign in, or send the header {TOKEN_HEADER}."
            )
        return signed_in
    if presented is None:
        named_only = bool(settings.owner_tokens) and DEFAULT_OWNER not in settings.owner_tokens
        if settings.require_token or named_only:
            raise AuthenticationError(f"{AuthenticationError.default}: send the header {TOKEN_HEADER}.")
        return DEFAULT_OWNER
    if not settings.owner_tokens:
        raise SettingsError(UNCONFIGURED_MESSAGE)
    owner = owner_of(presented, settings.owner_tokens)
    if owner is None:
        raise AuthenticationError
    return owner


def _header(items: Iterable[tuple[str, object]], wanted: str) -> str | None:
    """A header's value; None when absent. A repeated one is empty, which names nobody.

    The host joins repeated headers with a comma. Two spellings of the name count as repeated too.
    """
    length, lower = len(wanted), wanted.lower()
    # The length first: this is done for every header of every call.
    found = [value for name, value in items if len(name) == length and name.lower() == lower]
    if not found:
        return None
    if len(found) > 1 or not isinstance(found[0], str):
        return ""
    return found[0].strip()
