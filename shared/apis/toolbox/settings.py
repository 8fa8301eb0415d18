"""`toolboxAPI.settings`: values that a tool keeps between its calls, per tool and owner.

One table row per tool and owner; every change names the version that was read, and is made again when somebody
else was quicker.

    partition key   SHA-256 of the owner, 32 hex digits
    row key         the tool's name
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from shared.apis import bridge
from shared.apis.launch import current
from shared.apis.ports import settings_store
from shared.apis.ports import use_store as use_store
from shared.apis.record import Record, wrap
from shared.apis.toolbox.events import happened
from shared.apis.toolbox.spelling import TwoSpellings
from shared.errors import LostLeaseError, ToolError
from shared.text import kind_of
from shared.tool.spec import JsonObject

TABLE: Final = "toolsettings"
#: UTF-16 units of all settings of one tool and owner as JSON: what a table property holds.
LIMIT: Final = 32_000
TRIES: Final = 10

_WHAT: Final = "toolboxAPI.settings"


class SettingsApi(TwoSpellings):
    """Values are JSON."""

    def get_all(self) -> Any:
        owner, tool = _whose()
        return bridge.blocking(lambda: Record(wrap(settings_store().read(owner, tool)[0])))

    def get(self, key: str) -> Any:
        """None when it was never set."""
        owner, tool = _whose()
        return bridge.blocking(lambda: wrap(settings_store().read(owner, tool)[0].get(str(key))))

    def set(self, key: str, value: Any) -> Any:
        return self._change({str(key): value}, replace=False)

    def set_all(self, values: Mapping[str, Any]) -> Any:
        """In the place of everything that was set before."""
        if not isinstance(values, Mapping):
            raise ToolError(f"{_WHAT}.setAll: expected an object of names and values, got {kind_of(values)}")
        return self._change(dict(values), replace=True)

    def _change(self, values: JsonObject, *, replace: bool) -> Any:
        context = current(_WHAT)

        def write() -> None:
            _merge(context.owner, context.tool_name, values, replace)
            for key, value in values.items():
                happened(context, "settings:updated", {"key": key, "value": value})

        return bridge.blocking(write)


def _merge(owner: str, tool: str, values: JsonObject, replace: bool) -> None:
    store = settings_store()
    for _ in range(TRIES):
        known, version = store.read(owner, tool)
        merged = values if replace else {**known, **values}
        try:
            text = json.dumps(merged, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ToolError(f"{_WHAT}: a value cannot be written as JSON ({error})") from None
        if len(text.encode("utf-16-le", "surrogatepass")) // 2 > LIMIT:
            raise ToolError(f"{_WHAT}: all settings of a tool together may have {LIMIT} characters as JSON")
        try:
            store.write(owner, tool, merged, version)
        except LostLeaseError:
            continue
        return
    raise ToolError(f"{_WHAT}: others change them too quickly; try again")


def _whose() -> tuple[str, str]:
    context = current(_WHAT)
    return context.owner, context.tool_name


def partition_of(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()[:32]
