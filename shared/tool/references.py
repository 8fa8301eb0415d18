"""References (`$ref`) inside a JSON Schema, and how they keep their meaning when it becomes part of another.

A published schema often is a tool's own in an outer one: under `result`, or beside the acceptance of a job. A
reference counts from the root of its document (JSON Schema 2020-12, section 8.2), so `#` or `#/properties/a`
would point at the wrong place there. References never leave the schema: nothing is ever fetched for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote, urljoin

from shared.tool.spec import RESULT_KEY, JsonObject

type Steps = tuple[str | int, ...]

_DEFS: Final = "$defs"
_ONE_SCHEMA: Final = (
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_SCHEMA_MAPS: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_SCHEMA_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
#: Keywords whose schemas describe the same value as the schema that they stand in.
_IN_PLACE: Final = ("allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then")


@dataclass(frozen=True, slots=True)
class _Node:
    """A schema in a document: where it stands, and the uri that its references count from."""

    schema: JsonObject
    steps: Steps
    base: str


@dataclass(slots=True)
class _Document:
    """A schema with everything that a reference in it can point at."""

    root: Any
    #: By the identity of the node's schema.
    nodes: dict[int, _Node] = field(default_factory=dict)
    #: Uri -> the schema with that `$id`; the root has "" without one.
    resources: dict[str, _Node] = field(default_factory=dict)
    anchors: dict[tuple[str, str], _Node] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: JsonObject) -> _Document:
        document = cls(schema)
        document._add(schema, (), "")
        # A target may stand where no schema is expected, such as under a keyword of one's own.
        waiting = list(document.nodes.values())
        while waiting:
            node = waiting.pop()
            found = document.target(node)
            if found is not None and isinstance(found[1], dict) and id(found[1]) not in document.nodes:
                before = set(document.nodes)
                document._add(found[1], found[0], node.base)
                waiting += [new for key, new in document.nodes.items() if key not in before]
        return document

    def _add(self, schema: Any, steps: Steps, base: str) -> None:
        if not isinstance(schema, dict) or id(schema) in self.nodes:
            return
        identity = schema.get("$id")
        if isinstance(identity, str):
            base = urljoin(base, identity).removesuffix("#")
        node = self.nodes[id(schema)] = _Node(schema, steps, base)
        if isinstance(identity, str) or not steps:
            self.resources.setdefault(base, node)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(keyword), str):
                self.anchors.setdefault((base, schema[keyword]), node)
        for inner, child in _children(schema):
            self._add(child, (*steps, *inner), base)

    def target(self, node: _Node) -> tuple[Steps, Any] | None:
        """Where a node's `$ref` points, and the schema there. None: nowhere in this document, or no `$ref`."""
        reference = node.schema.get("$ref")
        if not isinstance(reference, str):
            return None
        # `urljoin` does not know schemes such as urn:.
        whole = node.base + reference if reference.startswith("#") else urljoin(node.base, reference)
        uri, _, fragment = whole.partition("#")
        fragment = unquote(fragment)
        resource = self.resources.get(uri)
        if resource is None:
            return None
        if fragment and not fragment.startswith("/"):
            named = self.anchors.get((uri, fragment))
            return None if named is None else (named.steps, named.schema)
        steps, place = resource.steps, resource.schema
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            inner = _entry(place, key)
            if inner is None:
                return None
            place, steps = inner[1], (*steps, inner[0])
        return (steps, place) if isinstance(place, dict | bool) else None


def enclosed(schema: JsonObject, around: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """`around(the schema)`, with its `$defs` at the new root and its references pointing where they did.

    A schema that refers to parts of itself outside of `$defs` moves there as a whole.
    """
    document = _Document.of(schema)
    targets = {key: document.target(node) for key, node in document.nodes.items()}
    named = any("$id" in node.schema for node in document.nodes.values())
    moves = any(found is not None and found[0][:1] != (_DEFS,) for found in targets.values())
    definitions = dict(schema.get(_DEFS) or {}) if isinstance(schema.get(_DEFS), dict) else {}
    own = {key: value for key, value in schema.items() if key not in (_DEFS, "$schema")}
    place = own
    if moves or named:
        name = _free(definitions) if moves else ""

        def rewritten(value: Any) -> Any:
            if isinstance(value, list):
                return [rewritten(item) for item in value]
            if not isinstance(value, dict):
                return value
            # With every reference a path from the root, names of places are of no use, and could clash.
            idle = ("$id", "$anchor") if named and id(value) in targets else ()
            made = {key: rewritten(item) for key, item in value.items() if key not in idle}
            found = targets.get(id(value))
            if found is not None:
                made["$ref"] = _pointer(found[0] if found[0][:1] == (_DEFS,) else (_DEFS, name, *found[0]))
            return made

        whole = rewritten(schema)
        definitions = dict(whole.get(_DEFS, {})) if definitions else {}
        own = {key: value for key, value in whole.items() if key not in (_DEFS, "$schema")}
        place = own
        if moves:
            definitions[name] = own
            place = {"$ref": _pointer((_DEFS, name))}
    outer = around(place)
    if "$schema" in schema:
        outer = {"$schema": schema["$schema"], **outer}
    if definitions:
        outer[_DEFS] = definitions
    return outer


def described(part: Any, root: JsonObject) -> Any:
    """A schema in the document `root`, or what it refers to if it does not say a type itself."""
    document = _Document.of(root)
    for _ in document.nodes:
        node = document.nodes.get(id(part))
        if node is None or "type" in part or (found := document.target(node)) is None:
            break
        part = found[1]
    return part


def reference_faults(schema: JsonObject) -> list[str]:
    """References that lead nowhere or only to themselves, as `$.path: …` texts."""
    document = _Document.of(schema)
    faults = []
    for node in document.nodes.values():
        reference = node.schema.get("$ref")
        if "$ref" in node.schema and document.target(node) is None:
            where = f"{_path(node.steps)}.$ref"
            if isinstance(reference, str) and not reference.startswith("#") and ":" in reference:
                faults.append(
                    f"{where}: '{reference[:200]}' is outside of the schema; nothing is fetched for one"
                )
            else:
                faults.append(f"{where}: {str(reference)[:200]!r} points at no schema in here")
    if not faults and (looped := _loop(document)) is not None:
        faults.append(f"{_path(looped)}: its $ref leads back to itself with nothing in between")
    return faults


def _children(schema: JsonObject) -> Iterator[tuple[Steps, Any]]:
    """Every place in a schema where a schema stands: the way there, and what is there."""
    for keyword, value in schema.items():
        if keyword in _ONE_SCHEMA:
            yield (keyword,), value
        elif keyword in _SCHEMA_MAPS and isinstance(value, dict):
            for name, item in value.items():
                yield (keyword, name), item
        elif keyword in _SCHEMA_LISTS and isinstance(value, list | tuple):
            for index, item in enumerate(value):
                yield (keyword, index), item


def _entry(place: Any, key: str) -> tuple[str | int, Any] | None:
    if isinstance(place, dict) and key in place:
        return key, place[key]
    if isinstance(place, list | tuple) and key.isascii() and key.isdigit() and int(key[:9]) < len(place):
        return int(key), place[int(key)]
    return None


def _loop(document: _Document) -> Steps | None:
    """Where a validator would follow references for ever on one and the same value."""
    done: set[int] = set()
    on_way: set[int] = set()

    def visit(schema: Any) -> bool:
        if id(schema) not in document.nodes or id(schema) in done:
            return False
        if id(schema) in on_way:
            return True
        on_way.add(id(schema))
        following = [child for steps, child in _children(schema) if steps[0] in _IN_PLACE]
        found = document.target(document.nodes[id(schema)])
        looped = any(visit(child) for child in [*following, *([] if found is None else [found[1]])])
        on_way.discard(id(schema))
        done.add(id(schema))
        return looped

    return next((node.steps for node in document.nodes.values() if visit(node.schema)), None)


def _free(taken: JsonObject) -> str:
    number, name = 1, RESULT_KEY
    while name in taken:
        number += 1
        name = f"{RESULT_KEY}_{number}"
    return name


def _pointer(steps: Steps) -> str:
    parts = (quote(str(step).replace("~", "~0").replace("/", "~1"), safe="~$") for step in steps)
    return "#" + "".join(f"/{part}" for part in parts)


def _path(steps: Steps) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
