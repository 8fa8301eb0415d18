"""local.settings.json, app settings and ``%NAME%`` expressions.

The process environment is where the app reads its settings, so ``Values`` are written into it; a variable
that is already set wins.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from infra.local.host.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from pathlib import Path

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_SETTING = re.compile(r"%([^%]+)%")
_TRUE = frozenset({"1", "true"})

DEVELOPMENT_STORAGE = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
    "QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)  # the emulator's published account: not a secret


def load_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file that may carry comments and a byte order mark, as the real host reads them.

    Raises HostError naming the file, and the line where it stops being JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = json.loads(_COMMENT.sub(lambda match: match[1] or "", text))
    except OSError as error:
        raise HostError(f"{path.name} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise HostError(f"{path.name} is not valid JSON: {error}.") from None
    if not isinstance(data, dict):
        raise HostError(f"{path.name} must hold a JSON object.")
    return data


def read_values(path: Path) -> dict[str, str]:
    """The ``Values`` of a local.settings.json, as strings."""
    data = load_json(path)
    if data.get("IsEncrypted"):
        raise HostError(f"{path.name} is encrypted; run `func settings decrypt` first.")
    values = data.get("Values") or {}
    if not isinstance(values, dict):
        raise HostError(f"Values in {path.name} must be an object.")
    result = {}
    for name, value in values.items():
        if isinstance(value, dict | list):
            raise HostError(f"Values.{name} in {path.name} must be a string.")
        if value is not None:
            result[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return result


def apply_values(values: Mapping[str, str], environment: MutableMapping[str, str]) -> None:
    """Write settings into ``environment`` unless they are there already."""
    for name, value in values.items():
        environment.setdefault(name, value)


def resolve(text: str, environment: Mapping[str, str], where: str) -> str:
    """``text`` with every ``%NAME%`` replaced by that setting.

    ``where`` names the place in the error, for instance ``queueName of function 'work'``.
    """

    def value(match: re.Match[str]) -> str:
        found = environment.get(match[1])
        if found is None:
            raise HostError(
                f"'%{match[1]}%' does not resolve to a value: {where} needs the setting {match[1]}."
            )
        return found

    return _SETTING.sub(value, text)


def connection_string(name: str, environment: Mapping[str, str], where: str) -> str:
    """The storage connection string that a binding's ``connection`` names.

    As in the real host an empty name means AzureWebJobsStorage and ``X`` may also be called ``AzureWebJobsX``.
    """
    name = name or "AzureWebJobsStorage"
    found = environment.get(name) or environment.get(f"AzureWebJobs{name}")
    if not found:
        hint = ""
        if any(setting.startswith(f"{name}__") for setting in environment):
            hint = " Identity-based connections are not supported by this host."
        raise HostError(f"{where} needs a storage connection string in the setting {name}.{hint}")
    if found.strip().rstrip(";").replace(" ", "").lower() == "usedevelopmentstorage=true":
        return DEVELOPMENT_STORAGE
    return found


def is_disabled(function: str, environment: Mapping[str, str]) -> bool:
    """Whether a setting switches a function off (``AzureWebJobs.NAME.Disabled`` or with underscores)."""
    values = (environment.get(f"AzureWebJobs{mark}{function}{mark}Disabled", "") for mark in "._")
    return any(value.strip().lower() in _TRUE for value in values)
