"""local.settings.json: made from the example, with secrets of its own, and read as the host reads it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from infra.local.dev.console import DevError

if TYPE_CHECKING:
    from pathlib import Path


def _token() -> str:
    return secrets.token_urlsafe(32)


def _seal_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


# The settings that must differ on each machine. The example's placeholders are public.
GENERATED: Dict[str, Callable[[], str]] = {
    "MCP_AUTH_TOKEN": _token,
    "TOOLBOX_SEAL_KEY": _seal_key,
    "MCP_EXTENSION_KEY": _token,
}


def create_settings(path: Path, example: Path) -> bool:
    """Write `path` from the example with fresh secrets, for the owner's eyes only, unless it is there.

    Two at a time must not do this: the caller holds a lock.
    """
    if os.path.lexists(path):
        return False
    settings = _read(example)
    settings["Values"] = {**settings["Values"], **{name: make() for name, make in GENERATED.items()}}
    text = json.dumps(settings, indent=2) + "\n"
    fresh = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()  # of a run that was killed, perhaps with another mode
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)
    return True


def effective_settings(path: Path, environ: Mapping[str, str]) -> Dict[str, str]:
    """The values of local.settings.json, with environment variables on top. Raises `DevError`."""
    values: Dict[str, str] = _read(path)["Values"]
    return {**values, **environ}


def demo_token(settings: Mapping[str, str]) -> Optional[str]:
    """A token to call and read with: of owner `default` if it has one, else of any owner."""
    if settings.get("MCP_AUTH_TOKEN"):
        return settings["MCP_AUTH_TOKEN"]
    try:
        owners: Dict[str, Any] = dict(json.loads(settings.get("MCP_AUTH_TOKENS") or "{}"))
    except (ValueError, TypeError):
        return None  # the app will say what is wrong with it
    for tokens in (owners.get("default"), *owners.values()):
        token = tokens[0] if isinstance(tokens, list) and tokens else tokens
        if isinstance(token, str) and token:
            return token
    return None


def _read(path: Path) -> Dict[str, Dict[str, str]]:
    hint = f"Correct {path.name}, or remove it: `python3 dev.py run` makes a new one from the example."
    try:
        settings = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise DevError(f"{path} cannot be read: {error}.", hint) from error
    values = settings.get("Values", {}) if isinstance(settings, dict) else None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise DevError(f'{path}: "Values" has to be an object whose values are all strings.', hint)
    return {**settings, "Values": values}
