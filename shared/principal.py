"""The owner that the platform's built-in authentication ("Easy Auth") names: `entra:{tenant id}:{object id}`.

The header holds base64 of JSON, `{"auth_typ": "aad", "claims": [{"typ": …, "val": …}, …], …}`. The platform
writes it after it has checked a sign-in, and removes any that a caller sends. So it means something only on an
app where built-in authentication is on: that is what TOOLBOX_TRUST_EASYAUTH says. Source: "Work with user
identities in App Service authentication".
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Container
from typing import Any, Final

PRINCIPAL_HEADER: Final = "X-MS-CLIENT-PRINCIPAL"
#: Microsoft Entra's. The claims of other providers are not checked for who may issue them.
_PROVIDER: Final = "aad"
_CLAIMS: Final = "http://schemas.microsoft.com/identity/claims/"
#: Both spellings occur: which one depends on whether the platform maps the names of claims.
_TENANT: Final = frozenset({"tid", f"{_CLAIMS}tenantid"})
_OBJECT: Final = frozenset({"oid", f"{_CLAIMS}objectidentifier"})
_GUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
#: A front end lets 16 KiB of headers through in all.
_LONGEST: Final = 32_768


def owner_of_principal(header: str | None) -> str | None:
    """The owner, or None when nobody has signed in or the header is not what the platform writes.

    Names, mail addresses and roles are not looked at: they can be given to somebody else later, an id cannot.
    """
    if not header or len(header) > _LONGEST:
        return None
    try:
        principal = json.loads(base64.b64decode(header, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return None
    if not isinstance(principal, dict) or principal.get("auth_typ") != _PROVIDER:
        return None
    claims = principal.get("claims")
    tenant, person = (_only(claims, names) for names in (_TENANT, _OBJECT))
    return f"entra:{tenant}:{person}" if tenant and person else None


def _only(claims: Any, names: Container[Any]) -> str | None:
    """The one id that these claims tell. Two different ones tell nothing."""
    if not isinstance(claims, list):
        return None
    values = {
        str(claim.get("val")).lower()
        for claim in claims
        if isinstance(claim, dict) and claim.get("typ") in names
    }
    value = values.pop() if len(values) == 1 else ""
    return value if _GUID.fullmatch(value) else None
