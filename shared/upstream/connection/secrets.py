"""What of a server's configuration must not appear in an error or a log: values of its env, headers and url."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from shared.redaction import Redactor, is_secret_key, secret_values

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig

#: A value of the environment that says nothing, however it is named.
_HARMLESS = frozenset({"localhost", "production", "development", "default", "enabled", "disabled", "python"})


def redactor(config: ServerConfig) -> Redactor:
    """Takes the configuration's secrets out of any text."""
    return Redactor([*_values(config)])


def _values(config: ServerConfig) -> Iterator[str]:
    for value in (config.environment() or {}).values():
        if value.lower() not in _HARMLESS:
            yield value
    yield from secret_values(config.config or {})
    for value in config.headers.values():
        yield value
        scheme, _, credential = value.partition(" ")
        if scheme and credential:
            yield credential.strip()
    yield from _in_arguments(config.args)
    yield from _in_url(config.url)


def _in_arguments(args: Sequence[str]) -> Iterator[str]:
    """`--api-key VALUE`, `--api-key=VALUE`, `NAME_TOKEN=VALUE`."""
    named = False
    for argument in args:
        name, equals, value = argument.partition("=")
        if named and not argument.startswith("-"):
            yield argument
        if equals and is_secret_key(name):
            yield value
        named = argument.startswith("-") and not equals and is_secret_key(argument)


def _in_url(url: str | None) -> Iterator[str]:
    if not url:
        return
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    for value in (parts.username, parts.password):
        if value:
            yield value
            yield unquote(value)
    for _, value in parse_qsl(parts.query):
        yield value
