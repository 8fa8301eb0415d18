"""Files of environment variables: `NAME=value`, one a line.

Not python-dotenv: it cuts values at ` #` and expands variables, while HoloDeck, whose files these are, does
neither (vectors/holodeck/holodeck-env.json). Beyond HoloDeck: a pair of quotes around a value goes, `export `
before a name too, and what no process could be given is refused with its line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from shared.errors import ConfigError

MAX_BYTES: Final = 65_536


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file; the last line of a name counts. Raises `ConfigError` on `env_file`."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            # A pipe would be waited for.
            raise ConfigError("env_file", "Cannot read environment file: it is no ordinary file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not legal"
        raise ConfigError("env_file", f"Cannot read environment file: {reason}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError("env_file", f"Cannot read environment file: it has more than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("env_file", "Cannot read environment file: it is not UTF-8") from None
    return parse_env_text(text)


def parse_env_text(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#") or "=" not in stripped:
            continue
        name, _, value = stripped.partition("=")
        name = name.strip()
        if name.startswith("export "):
            name = name.removeprefix("export ").strip()
        if not name:
            raise ConfigError("env_file", f"line {number}: there is no name before the =")
        if "\0" in stripped:
            raise ConfigError("env_file", f"line {number}: a NUL character cannot be passed on")
        found[name] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
