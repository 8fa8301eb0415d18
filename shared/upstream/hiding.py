"""Keeps out of the lock what a server repeats of its own configuration: a token in a description, in a default.

The values are those of `connection.secrets`. A text loses them; what would get another meaning without them (a
schema's names and limits, an icon's address) is left out. The names that a server is called by stay, with a
note. What comes here was read off the wire, which is at most 200 levels deep: recursion is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shared.redaction import Redactor
from shared.tool.spec import JsonObject
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.secrets import redactor

#: Keywords of JSON Schema whose value is names -> schemas.
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
#: Keywords that only tell, and may lose some of their text.
_TEXTS: Final = frozenset({"title", "description", "$comment"})
#: Keywords that only tell, but by a value: part of it would be another one.
_VALUES: Final = frozenset({"default", "examples", "example"})
#: Words of JSON Schema itself, of a length that a configured value may have: they give no value away.
_WORDS: Final = frozenset(
    [
        *("object", "string", "number", "integer", "boolean"),
        *("properties", "patternProperties", "additionalProperties", "propertyNames", "required"),
        *("description", "examples", "example", "default", "deprecated", "readOnly", "writeOnly"),
        *("format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems", "prefixItems"),
        *("contains", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties"),
        *("minProperties", "maxProperties", "definitions", "dependentRequired", "dependentSchemas"),
        *("$schema", "$anchor", "$dynamicRef", "$dynamicAnchor", "$comment", "additionalItems"),
        *("contentEncoding", "contentMediaType", "contentSchema"),
    ]
)
_WHAT: Final = "a value of this server's configuration (env, headers, url, args)"


class Hiding:
    """One server's configured values, taken out of what it says of one tool or prompt.

    `notes`: gets a line for each place that was changed. None of them holds a value.
    """

    def __init__(self, config: ServerConfig, notes: list[str]) -> None:
        self._redact: Redactor = redactor(config)
        self._notes = notes

    def text(self, text: str, where: str) -> str:
        return str(self._told(text, where))

    def name(self, name: str, where: str) -> str:
        """The name for a message. The name itself cannot be changed: the server is called by it."""
        shown = str(self._redact.data(name))
        if shown != name:
            self._notes.append(f"{where}: it is {_WHAT}, or holds one, and is kept: the server is called by it")
        return shown

    def meta(self, meta: JsonObject) -> JsonObject:
        told: JsonObject = self._told(meta, "_meta")
        return told

    def icons(self, icons: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """Without those that hold a value: part of an address leads elsewhere."""
        kept = tuple(icon for icon in icons if not self._holds(icon))
        if len(kept) < len(icons):
            self._notes.append(f"icons: one is left out, since it held {_WHAT}")
        return kept

    def arguments(self, arguments: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """Of a prompt."""
        return tuple(self._argument(argument) for argument in arguments)

    def _argument(self, argument: JsonObject) -> JsonObject:
        shown = self.name(str(argument.get("name", "")), "an argument's name")
        more = {key: value for key, value in argument.items() if key != "name"}
        return {"name": argument["name"], **self._told(more, f"argument '{shown}'")}

    def schema[T](self, given: T, where: str, instead: T) -> T:
        """The schema without the values; `instead`, where a name or a limit of it holds one."""
        if not self._redact.knows_tokens:
            return given
        told: T = self._schema(given)
        if self._holds(told):
            self._notes.append(f"{where}: left out, since its names or limits hold {_WHAT}")
            return instead
        if told != given:
            self._notes.append(f"{where}: {_WHAT} was taken out of its texts")
        return told

    def _told(self, value: Any, where: str) -> Any:
        told = self._redact.data(value)
        if told != value:
            self._notes.append(f"{where}: {_WHAT} was taken out")
        return told

    def _schema(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._schema(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        told: JsonObject = {}
        for key, item in value.items():
            if key in _NAMED and isinstance(item, Mapping):
                told[key] = {name: self._schema(one) for name, one in item.items()}
            elif key in _TEXTS and isinstance(item, str):
                told[key] = self._redact.data(item)
            elif key not in _VALUES:
                told[key] = item if key in ("enum", "const") else self._schema(item)
            elif not self._holds(item):
                told[key] = item
        return told

    def _holds(self, value: Any) -> bool:
        if isinstance(value, str):
            return value not in _WORDS and self._redact.data(value) != value
        if isinstance(value, Mapping):
            return any(self._holds(key) or self._holds(item) for key, item in value.items())
        return isinstance(value, list) and any(self._holds(item) for item in value)
