"""Files of environment variables: `NAME=value`, one a line.

Not python-dotenv: it cuts values at ` #` and expands variables, while HoloDeck, whose files these are, does
neither (vectors/holodeck/holodeck-env.json). Beyond HoloDeck: a pair of quotes around a value goes, `export `
before a name too, and what no process could be given is refused with its line.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.errors import ConfigError

MAX_BYTES: Final = 65_536
#: A print tells whether two files are equal and nothing else: they hold secrets.
_PRINT_KEY: Final = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class _Content:
    """What a file held when it was read; `fault`: why it could not be."""

    data: bytes = b""
    fault: str = ""

    def text(self) -> str:
        """Raises `ConfigError`."""
        fault, text = self.fault, ""
        if not fault and len(self.data) > MAX_BYTES:
            fault = f"it has more than {MAX_BYTES} bytes"
        if not fault:
            try:
                text = self.data.decode("utf-8-sig")
            except UnicodeDecodeError:
                fault = "it is not UTF-8"
        if fault:
            raise ConfigError("env_file", f"Cannot read environment file: {fault}")
        return text

    def print(self) -> str:
        return hashlib.blake2b(self.data + b"\0" + self.fault.encode(), key=_PRINT_KEY).hexdigest()


class EnvFiles:
    """Reads the files that one configuration names, and keeps a print of what each of them held then."""

    def __init__(self) -> None:
        self.prints: dict[Path, str] = {}

    def read(self, path: Path) -> dict[str, str]:
        """The variables of a file; the last line of a name counts. Raises `ConfigError` on `env_file`."""
        content = _content(path)
        # Of a file that changes while two entries read it the older print stays, so that the change is seen.
        self.prints.setdefault(path, content.print())
        return parse_env_text(content.text())


def print_of(path: Path) -> str:
    """Another one when the file holds something else, cannot be read any more, or can be again."""
    return _content(path).print()


def _content(path: Path) -> _Content:
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            return _Content(fault="it is no ordinary file")  # a pipe would be waited for
        with path.open("rb") as file:
            return _Content(file.read(MAX_BYTES + 1))
    except (OSError, ValueError) as error:
        return _Content(fault=getattr(error, "strerror", None) or "the name is not legal")


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
