"""Takes secrets out of text that is stored, logged or shown.

Two ways, both always on: by value (every secret known for this call: its authToken, the keys and tokens among
its request headers) and by shape (what looks like a bearer token, a JWT, a shared access signature or an
account key, whoever wrote it).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

REDACTED: Final = "[redacted]"
#: A shorter value is no secret worth the name, and replacing it would tear ordinary words apart.
MIN_SECRET_LENGTH: Final = 6

_SECRET_HEADERS: Final = frozenset(
    {
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-functions-key",
        "x-mcp-auth-token",
        "x-ms-client-principal",
        "x-ms-token-aad-access-token",
        "x-ms-token-aad-id-token",
    }
)
_SHAPES: Final = re.compile(
    r"""
      (?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    | (?P<sig>[?&;]?\bsig=)[A-Za-z0-9%+/=]{16,}
    | (?P<key>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;\s"']+
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Redactor:
    """Replaces the secrets of one call. Safe to share between threads.

    Most calls have nothing to redact, so making one costs nothing: the secrets are looked at when first used.
    """

    def __init__(self, secrets: Iterable[str | None] = (), headers: Mapping[str, object] | None = None) -> None:
        self._secrets = secrets
        self._headers = headers

    @functools.cached_property
    def _values(self) -> re.Pattern[str] | None:
        secrets = [*self._secrets, *header_secrets(self._headers or {})]
        known = {secret for secret in secrets if secret and len(secret) >= MIN_SECRET_LENGTH}
        # The longest first, so that a secret that contains another is replaced whole.
        ordered = sorted(known, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, ordered))) if ordered else None

    @property
    def knows_secrets(self) -> bool:
        return self._values is not None

    def data(self, value: Any) -> Any:
        """JSON data with the known values taken out of every text and key. Shapes stay: they may be wanted."""
        values = self._values
        if values is None:
            return value
        if isinstance(value, str):
            return values.sub(REDACTED, value)
        if isinstance(value, dict):
            return {values.sub(REDACTED, key): self.data(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.data(item) for item in value]
        return value

    def __call__(self, text: str) -> str:
        values = self._values
        if values is not None:
            text = values.sub(REDACTED, text)
        return _SHAPES.sub(_keep_label, text)


def header_secrets(headers: Mapping[str, object]) -> list[str]:
    """The values among request headers that must never be written anywhere."""
    found: list[str] = []
    for name, value in headers.items():
        if name.lower() in _SECRET_HEADERS and isinstance(value, str):
            found.append(value)
            scheme, _, credential = value.partition(" ")
            if credential and scheme.lower() in ("bearer", "basic"):
                found.append(credential.strip())
    return found


def _keep_label(match: re.Match[str]) -> str:
    label = match["scheme"] or match["sig"] or match["key"] or ""
    return f"{label}{REDACTED}"
