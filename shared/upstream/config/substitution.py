"""`${VAR}` in an entry's values, replaced by settings of the app (its process environment).

NAME is a letter or underscore, then letters, digits and underscores, ASCII; case matters; what a variable
holds is not looked at again; set but empty is fine. A form of other hosts (`${VAR:-default}`, `${env:VAR}`,
`${input:x}`) is an error: left as it stands it would be sent to a server as a key. `$VAR`, `%VAR%` and an
unclosed `${` are text. There is no way to write a literal `${VAR}`. Source:
vectors/holodeck/holodeck-env.json.

The app's own secrets are not given out: an entry that names one would send it to somebody else's server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from shared.errors import ConfigError, MCPConfigError

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: Settings that open this app or its storage, or hold the secrets of others.
OWN_SECRETS: Final = frozenset(
    {
        "AZUREWEBJOBSSTORAGE",
        "CONNECTIONS",
        "MCP_AUTH_TOKEN",
        "MCP_AUTH_TOKENS",
        "MCP_EXTENSION_KEY",
        "MCP_SERVERS",
        "TOOLBOX_SEAL_KEY",
        "TOOLBOX_SEAL_KEYS",
    }
)


def substitute(text: str, environ: Mapping[str, str], place: str) -> str:
    """The text with its variables replaced. `place`: where it stands, for the message (`env.TOKEN`).

    Raises `ConfigError` whose field is the variable, or `MCPConfigError` for a form that is not supported.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if not _NAME.fullmatch(name):
            raise MCPConfigError(
                place, "holds a form of ${…} that is not supported; write ${NAME} with the name of a setting"
            )
        if name.upper() in OWN_SECRETS:
            raise ConfigError(
                name, f"'{name}' is a secret of this app and is not given to servers. It is used in {place}."
            )
        found = environ.get(name)
        if found is None:
            raise ConfigError(
                name,
                f"Environment variable '{name}' not found. Please set it and try again. It is used in {place}.",
            )
        return found

    return _REFERENCE.sub(value_of, text)


def substitute_all(value: Any, environ: Mapping[str, str], place: str) -> tuple[Any, list[ConfigError]]:
    """(the value with the variables in all its texts replaced, what is wrong); keys of mappings stay as they
    are.
    """
    errors: list[ConfigError] = []

    def walk(value: Any, place: str) -> Any:
        if isinstance(value, str):
            try:
                return substitute(value, environ, place)
            except ConfigError as error:
                errors.append(error)
                return ""
        if isinstance(value, dict):
            return {key: walk(item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, f"{place}.{index}") for index, item in enumerate(value)]
        return value

    return walk(value, place), errors
