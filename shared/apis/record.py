"""What the APIs answer with: dictionaries whose items are attributes too, as in the original's language.

    account = await dataverseAPI.retrieve("account", account_id, ["name"])
    account["name"] == account.name

They are plain dictionaries to `json`, `isinstance` and schemas. An item that is named like a method of `dict`
(`items`, `keys`, `values`, `get`, `pop`, `popitem`, `update`, `copy`, `clear`, `setdefault`, `fromkeys`), and
one whose name is no identifier (`@odata.etag`), is reachable as an item only.
"""

from __future__ import annotations

import json
from typing import Any, Final, Self

from shared.apis.naming import near

_METHODS: Final = frozenset(dir(dict))


class Record(dict[str, Any]):
    """A JSON object. Made by `load`, nested objects are records as well."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no '{name}'{near(name, self)}", name=name, obj=self) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _METHODS:
            raise AttributeError(f"'{name}' is a method of every record: write record[{name!r}] = …")
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"the record has no '{name}'{near(name, self)}") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self if name.isidentifier())})

    def copy(self) -> Self:
        return type(self)(self)


def load(text: str | bytes) -> Any:
    """The JSON value that `text` holds, with a `Record` for every object. Raises `ValueError`."""
    return json.loads(text, object_hook=Record)


def wrap(value: Any) -> Any:
    """The same value with a `Record` for every dictionary in it."""
    if isinstance(value, dict):
        return Record({key: wrap(item) for key, item in value.items()})
    if isinstance(value, list):
        return [wrap(item) for item in value]
    return value
