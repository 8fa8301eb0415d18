"""Takes secrets out of text and data that is stored, logged or shown. The one place that does.

    by value   every secret known for this call: its authToken, the keys and tokens among its request headers
    by shape   what looks like a bearer token, a JWT, a shared access signature, an account key, a password in a
               URL or behind the word, whoever wrote it
    by key     what stands under a key that names a secret, in data (`author` and `tokenizer` name none)

Text is redacted by value and shape, data (an argument summary) by all three.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.text import clean_text

REDACTED: Final = "[redacted]"
#: A shorter value is no secret worth the name, and replacing it would tear ordinary words apart.
MIN_SECRET_LENGTH: Final = 6
#: Characters of an argument summary.
SUMMARY_LENGTH: Final = 200
#: A text in a summary is cut to this before it is looked at: the summary shows far less of it.
_LOOK_LENGTH: Final = 4_000

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
    | (?P<sig>[?&;]?\bsig=)[A-Za-z0-9%+/=]{8,}
    | (?P<key>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;\s"']+
    | (?P<user>://[^/\s:@]+:)[^/\s@]+(?=@)
    | (?P<word>\b(?:password|passwd|pwd|passphrase)(?:\s+is\s+|\s*[:=]\s*))[^\s;,"'}\]]+
    """,
    re.IGNORECASE | re.VERBOSE,
)

#: Words that name a secret wherever they stand among a key's words.
_SECRET_WORDS: Final = frozenset(
    [
        "password",
        "passwords",
        "passwd",
        "pwd",
        "passphrase",
        "pass",
        "passcode",
        "pin",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "cred",
        "creds",
        "auth",
        "authorization",
        "bearer",
        "jwt",
        "sas",
        "cookie",
        "cookies",
        "apikey",
        "otp",
        "пароль",
        "密码",
        "密碼",
        "contrasena",
        "kennwort",
        "passwort",
        "motdepasse",
    ]
)
#: The same, unless a word of counting stands beside them: `maxTokens` counts, `accessToken` opens.
_TOKEN_WORDS: Final = frozenset({"token", "tokens", "refreshtoken", "accesstoken"})
_COUNTING: Final = frozenset(
    [
        "max",
        "min",
        "count",
        "counts",
        "limit",
        "total",
        "usage",
        "used",
        "num",
        "number",
        "per",
        "size",
        "length",
        "budget",
        "type",
        "types",
        "rate",
    ]
)
#: Pairs of neighbouring words.
_SECRET_PAIRS: Final = frozenset(
    {
        ("api", "key"),
        ("private", "key"),
        ("account", "key"),
        ("signing", "key"),
        ("access", "key"),
        ("shared", "key"),
        ("function", "key"),
        ("functions", "key"),
        ("host", "key"),
        ("master", "key"),
        ("encryption", "key"),
        ("seal", "key"),
        ("connection", "string"),
        ("connection", "strings"),
        ("session", "id"),
        ("session", "key"),
    }
)
_WHOLE_KEYS: Final = frozenset({"session", "authtoken"})
#: Ends of keys written without any mark between their words.
_SECRET_ENDS: Final = ("password", "passwd", "secret", "token", "apikey", "credential", "credentials")
#: In an invocation's summary, connections are nobody else's business either.
_CONNECTION_KEYS: Final = frozenset(
    {
        ("connection", "name"),
        ("connection", "names"),
        ("connection", "id"),
        ("connection", "ids"),
        ("connection", "url"),
        ("connection", "urls"),
    }
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+", re.UNICODE)
_NAME_KEYS: Final = ("name", "key", "header")


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

    def __call__(self, text: str) -> str:
        values = self._values
        if values is not None:
            text = values.sub(REDACTED, text)
        return clean_text(_SHAPES.sub(_keep_label, text))

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

    def summary(self, arguments: Mapping[str, Any]) -> str:
        """What an invocation record shows of a call's arguments: their JSON, redacted, then cut."""
        text = json.dumps(self._summarised(arguments), ensure_ascii=False, separators=(",", ":"))
        return text if len(text) <= SUMMARY_LENGTH else f"{text[:SUMMARY_LENGTH]}..."

    def _summarised(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._summarised_text(value[:_LOOK_LENGTH])
        if isinstance(value, Mapping):
            named = any(isinstance(value.get(key), str) and is_secret_key(value[key]) for key in _NAME_KEYS)
            return {
                self(key): REDACTED
                if _hidden_in_summary(key) or (named and key == "value")
                else self._summarised(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            # Each item takes at least two characters of the summary.
            return [self._summarised(item) for item in value[:SUMMARY_LENGTH]]
        return value

    def _summarised_text(self, text: str) -> str:
        """A text, also one that is JSON itself."""
        if text[:1] in ("{", "["):
            try:
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self(text)
            return json.dumps(self._summarised(inner), ensure_ascii=False, separators=(",", ":"))
        return self(text)


@functools.lru_cache(maxsize=4_096)
def is_secret_key(key: str) -> bool:
    """Whether a key names a secret. Its words count, not its letters: `author` and `secretary` name none."""
    words = _words(key)
    joined = "".join(words)
    if not _SECRET_WORDS.isdisjoint(words) or joined in _SECRET_WORDS or joined in _WHOLE_KEYS:
        return True
    if any(pair in _SECRET_PAIRS for pair in itertools.pairwise(words)):
        return True
    if not _COUNTING.isdisjoint(words):
        return False
    return not _TOKEN_WORDS.isdisjoint(words) or joined.endswith(_SECRET_ENDS)


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


def _hidden_in_summary(key: str) -> bool:
    words = _words(key)
    return is_secret_key(key) or any(pair in _CONNECTION_KEYS for pair in itertools.pairwise(words))


def _words(key: str) -> tuple[str, ...]:
    """The words of a key in camelCase, snake_case or with hyphens; without case and accents."""
    plain = "".join(
        character for character in unicodedata.normalize("NFKD", key) if not unicodedata.combining(character)
    )
    return tuple(word.casefold() for word in _WORD.findall(unicodedata.normalize("NFC", plain)))


def _keep_label(match: re.Match[str]) -> str:
    label = next((text for text in match.groupdict().values() if text), "")
    return f"{label}{REDACTED}"
