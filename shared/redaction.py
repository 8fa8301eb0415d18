"""Takes secrets out of text and data that is stored, logged or shown. The one place that does.

    by value   every secret known for this call: its authToken, the keys and tokens among its request headers;
               in text, also what its arguments hold under a key that names a secret
    by shape   what looks like a bearer token, a JWT, a shared access signature, an account key, a password in a
               URL or behind the word, whoever wrote it
    by key     what stands under a key that names a secret, in data (`author` and `tokenizer` name none)

Text is redacted by value and shape, an argument summary by all three. A result is the tool's own business: only
the call's tokens are taken out of it.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from shared.text import clean_text

REDACTED: Final = "[redacted]"
#: A shorter value is no secret worth the name, and replacing it would tear ordinary words apart.
MIN_SECRET_LENGTH: Final = 6
#: Characters of an argument summary.
SUMMARY_LENGTH: Final = 200
#: A text in a summary is cut to this before it is looked at: the summary shows far less of it.
_LOOK_LENGTH: Final = 4_000
#: Values that are looked for among a call's arguments; a longer one is no password.
_MOST_VALUES: Final = 200
_LONGEST_VALUE: Final = 20_000

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
#: Names a conversation and opens nothing: tools are told of it.
_SESSION_HEADER: Final = "mcp-session-id"
_SHAPES: Final = re.compile(
    r"""
      (?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?
    | (?P<sig>[?&;]?\bsig=)[A-Za-z0-9%+/=]{8,}
    | (?P<key>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^;\s"']+
    | (?P<user>://[^/\s:@]+:)[^/\s@]+(?=@)
    | (?P<word>\b(?:password|passwd|pwd|passphrase)(?:\s+is\s+|\s*[:=]\s*))[^\s;,"'}\]]+
    | (?P<json>["'](?:password|passwd|pwd|passphrase|client_?secret|api_?key)["']\s*:\s*["'])[^"']+
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
        ("conn", "str"),
        ("conn", "string"),
        ("subscription", "key"),
        ("storage", "key"),
        ("session", "id"),
        ("session", "key"),
    }
)
_WHOLE_KEYS: Final = frozenset({"session", "authtoken"})
#: Ends of keys written without any mark between their words.
_SECRET_ENDS: Final = (
    *("password", "passwd", "secret", "token", "apikey", "credential", "credentials"),
    *("connectionstring", "accountkey", "accesskey", "privatekey", "subscriptionkey", "storagekey"),
)
#: In an invocation's summary, connections are nobody else's business either.
_CONNECTION_KEYS: Final = frozenset(
    {
        ("connection", "name"),
        ("connection", "names"),
        ("connection", "id"),
        ("connection", "ids"),
        ("connection", "url"),
        ("connection", "urls"),
        ("environment", "url"),
        ("org", "url"),
    }
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+", re.UNICODE)
_NAME_KEYS: Final = ("name", "key", "header")
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


#: Tokens that this process got for connections: whichever call they came up in, they are nobody's to read.
_remembered: deque[str] = deque(maxlen=200)


def remember(secret: str) -> None:
    """From now on every redactor of this process knows the secret; the newest 200 are kept."""
    if len(secret) >= MIN_SECRET_LENGTH and secret not in _remembered:
        _remembered.append(secret)


def remembered_in(text: str) -> list[str]:
    """Which of the remembered secrets stand in a text."""
    return [secret for secret in tuple(_remembered) if secret in text]


class Redactor:
    """Replaces the secrets of one call. Safe to share between threads.

    Most calls have nothing to redact, so making one costs nothing: the secrets are looked at when first used.
    """

    def __init__(
        self,
        secrets: Iterable[str | None] = (),
        headers: Mapping[str, object] | None = None,
        arguments: Callable[[], object] | None = None,
    ) -> None:
        """`arguments`: gives the call's arguments when they are first needed."""
        self._secrets = secrets
        self._headers = headers
        self._arguments = arguments

    @functools.cached_property
    def _tokens(self) -> frozenset[str]:
        secrets = [*self._secrets, *header_secrets(self._headers or {})]
        return frozenset(secret for secret in secrets if secret and len(secret) >= MIN_SECRET_LENGTH)

    @functools.cached_property
    def _in_data(self) -> tuple[str, ...]:
        return _written(self._tokens)

    @functools.cached_property
    def _in_text(self) -> tuple[str, ...]:
        given = secret_values(self._arguments()) if self._arguments is not None else ()
        return _written(self._tokens.union(given)) if given else self._in_data

    def __call__(self, text: str) -> str:
        text = _without(_without(text, self._in_text), tuple(_remembered))
        return clean_text(_SHAPES.sub(_keep_label, text))

    @property
    def knows_tokens(self) -> bool:
        return bool(self._in_data or _remembered)

    def data(self, value: Any) -> Any:
        """JSON data with the call's tokens taken out of every text and key. Shapes stay: they may be wanted."""
        known = (*self._in_data, *_remembered)
        if not known:
            return value
        return self._clean(value, known)

    def _clean(self, value: Any, known: tuple[str, ...]) -> Any:
        if isinstance(value, str):
            return _without(value, known)
        if isinstance(value, dict):
            return {_without(key, known): self._clean(item, known) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item, known) for item in value]
        return value

    def summary(self, arguments: Mapping[str, Any]) -> str:
        """What an invocation record shows of a call's arguments: their JSON, redacted, then cut."""
        try:
            text = _compact(self._summarised(arguments))
        except RecursionError:
            return "[nested too deeply]"
        return text if len(text) <= SUMMARY_LENGTH else f"{text[:SUMMARY_LENGTH]}..."

    def _summarised(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._summarised_text(value[:_LOOK_LENGTH])
        if isinstance(value, Mapping):
            named = _names_a_secret(value)
            return {
                self(key): REDACTED
                if _hidden_in_summary(key) or (named and key == "value")
                else self._summarised(item)
                for key, item in itertools.islice(value.items(), SUMMARY_LENGTH)
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
            return _compact(self._summarised(inner))
        return self(text)


def without_names(text: str, names: Iterable[str]) -> str:
    """The text without words that are no secrets, but nobody else's business."""
    for name in sorted(filter(None, set(names)), key=len, reverse=True):
        text = text.replace(name, REDACTED)
    return text


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
        lower = name.lower()
        if not isinstance(value, str) or lower == _SESSION_HEADER:
            continue
        if lower in _SECRET_HEADERS or is_secret_key(name):
            found.append(value)
            scheme, _, credential = value.partition(" ")
            if credential and scheme.lower() in ("bearer", "basic"):
                found.append(credential.strip())
    return found


def secret_values(data: object) -> set[str]:
    """The texts (and numbers, as text) that stand under keys that name a secret, anywhere in JSON data."""
    values = itertools.islice(_secret_leaves(data), _MOST_VALUES)
    return {value for value in values if MIN_SECRET_LENGTH <= len(value) <= _LONGEST_VALUE}


def _secret_leaves(data: object) -> Iterator[str]:
    # No recursion: how deep arguments are nested is the caller's choice.
    waiting: list[tuple[object, bool]] = [(data, False)]
    while waiting:
        value, named = waiting.pop()
        if isinstance(value, Mapping):
            is_header = _names_a_secret(value)
            waiting += (
                (item, named or is_secret_key(key) or (is_header and key == "value"))
                for key, item in value.items()
            )
        elif isinstance(value, list):
            waiting += ((item, named) for item in value)
        elif named and isinstance(value, str | int | float) and not isinstance(value, bool):
            yield str(value)


def _names_a_secret(value: Mapping[str, Any]) -> bool:
    """`{"name": "Authorization", "value": …}`: an entry whose key stands in a field of its own."""
    return any(isinstance(value.get(key), str) and is_secret_key(value[key]) for key in _NAME_KEYS)


def _written(secrets: Iterable[str]) -> tuple[str, ...]:
    """The secrets as they are, and as JSON or Python would write them inside a text."""
    forms = {form for secret in secrets for form in _forms(secret)}
    # The longest first, so that a secret that contains another is replaced whole.
    return tuple(sorted(forms, key=len, reverse=True))


def _without(text: str, secrets: tuple[str, ...]) -> str:
    # One by one: secrets differ from call to call, and making a pattern of them takes longer than using it.
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return text


def _forms(secret: str) -> Iterator[str]:
    yield secret
    if not secret.isalnum() or not secret.isascii():
        yield json.dumps(secret)[1:-1]
        yield json.dumps(secret, ensure_ascii=False)[1:-1]
        yield repr(secret)[1:-1]


@functools.lru_cache(maxsize=4_096)
def _hidden_in_summary(key: str) -> bool:
    words = _words(key)
    if words in (("connection",), ("connections",)):
        return True
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
