"""Settings whose value stands elsewhere: in Key Vault, which the platform asks, or in a file of the app's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: Where relative paths of settings begin: the folder of host.json, whatever the process's own folder is.
APP_ROOT: Final = Path(__file__).resolve().parents[3]
#: What the platform replaces by a value before the app starts, when it can.
_REFERENCES: Final = ("@microsoft.keyvault(", "@microsoft.appconfiguration(")


def is_unresolved(value: str) -> bool:
    """Whether it is a reference that the platform has left as it is: it could not resolve it."""
    return value.strip().casefold().startswith(_REFERENCES)


def app_path(text: str) -> Path:
    """The path of a file that a setting names."""
    return APP_ROOT / text.strip()
