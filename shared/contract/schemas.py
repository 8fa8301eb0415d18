"""`prefill` and `returnTopic` as JSON Schemas (draft 2020-12) with `type: object` at the root.

The original's meaning is kept: `properties` without a `type` describe an object, and a property may say
`required: true` instead of standing in its parent's list (a list that is not empty wins). The whole of JSON
Schema counts on top. References point into the root's `$defs` only: a published schema may be put in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from shared.contract import keywords
from shared.contract.findings import Findings, nearest, shown, step
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.spec import JsonObject

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_DEFS: Final = "#/$defs/"
#: With one of these, a required name may be described elsewhere than under `properties`.
_MAY_DESCRIBE: Final = (
    "$ref", "additionalProperties", "allOf", "anyOf", "dependentSchemas", "if", "oneOf", "patternProperties",
)  # fmt: skip


def to_schema(raw: Any, path: str, found: Findings) -> JsonObject | None:
    """The schema that a contract means; None, with errors, where it means none.

    `raw`: anything that JSON holds, nested at most `reading.MAX_DEPTH` deep.
    """
    before = found.error_count
    if not isinstance(raw, dict):
        found.error(path, f"must be an object, got {shown(raw)}")
        return None
    if _is_bare_map(raw):
        names = [name for name in raw if not keywords.is_keyword(name)]
        hint = f'write {{"properties": {{"{names[0][:80]}": …}}}}'
        found.error(path, "describes nothing: its properties do not stand under 'properties'", hint)
        return None
    root = _without_identity(raw, path, found)
    kind = root.get("type", "object")
    if kind != "object":
        place = step(path, "type")
        found.error(place, f"must be 'object' at the root, got {shown(kind)}", "put the value under a property")
        return None
    schema = {"type": "object", **_normal(root, path, found)}
    _check(schema, path, found)
    _check_references(schema, path, found)
    return schema if found.error_count == before else None


def check_reserved(schema: JsonObject, path: str, found: Findings) -> None:
    """Arguments cannot have a property with the envelope's name: it is taken out before the tool sees them."""
    if ENVELOPE_KEY in schema.get("properties", {}):
        place = step(step(path, "properties"), ENVELOPE_KEY)
        found.error(place, "is the name of the call's own options", "rename the property")


def check_meta(schema: JsonObject, path: str, found: Findings) -> None:
    """What jsonschema's own meta-schema says. Loads jsonschema: for `validate` and tests."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    try:
        for error in validator.iter_errors(schema):
            place = path
            for part in error.absolute_path:
                place = step(place, part)
            found.error(place, f"is refused by JSON Schema's meta-schema ({error.validator})")
    except RecursionError:
        found.error(path, "is nested too deeply for a JSON Schema validator")


def _is_bare_map(raw: JsonObject) -> bool:
    """Property -> schema, without `properties` around: the original passes it, and it describes nothing."""
    return "properties" not in raw and any(
        isinstance(value, dict) and not keywords.is_keyword(name) and not name.startswith("x-")
        for name, value in raw.items()
    )


def _without_identity(raw: JsonObject, path: str, found: Findings) -> JsonObject:
    draft = raw.get("$schema", DRAFT)
    if not isinstance(draft, str) or draft.rstrip("#") != DRAFT:
        found.warn(step(path, "$schema"), f"has no effect: schemas are read as {DRAFT}")
    if "$id" in raw:
        found.warn(step(path, "$id"), "has no effect in a contract")
    return {name: value for name, value in raw.items() if name not in ("$schema", "$id")}


def _normal(node: Any, path: str, found: Findings) -> Any:
    """A schema with the original's two shorthands written out. What is illegal is left for the check."""
    if not isinstance(node, dict):
        return node
    schema = dict(node)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            schema[keyword] = _normal(schema[keyword], step(path, keyword), found)
    if isinstance(schema.get("$defs"), dict):
        place = step(path, "$defs")
        schema["$defs"] = {
            name: _normal(item, step(place, name), found) for name, item in schema["$defs"].items()
        }
    properties = schema.get("properties")
    required = _listed_names(schema, path, found)
    if isinstance(properties, dict):
        schema.setdefault("type", "object")
        flagged = [name for name, item in properties.items() if _is_flagged(item)]
        named = {name for name in required if isinstance(name, str)}
        for name in (name for name in flagged if required and name not in named):
            place = step(step(step(path, "properties"), name), "required")
            found.warn(place, "has no effect beside a list of required names", "add the name to the list")
        required = required or flagged
        place = step(path, "properties")
        schema["properties"] = {
            name: _normal(_without_flag(item), step(place, name), found) for name, item in properties.items()
        }
    if required:
        schema["required"] = required
    elif schema.get("required") == []:
        del schema["required"]
    return schema


def _listed_names(schema: JsonObject, path: str, found: Findings) -> list[Any]:
    names = schema.get("required")
    if not isinstance(names, list):
        return []
    unique: list[Any] = []
    seen: set[str] = set()
    for index, name in enumerate(names):
        if isinstance(name, str) and name in seen:
            found.warn(step(step(path, "required"), index), f"names '{name[:80]}' again")
            continue
        unique.append(name)
        if isinstance(name, str):
            seen.add(name)
    return unique


def _is_flagged(prop: Any) -> bool:
    return isinstance(prop, dict) and prop.get("required") is True


def _without_flag(prop: Any) -> Any:
    if isinstance(prop, dict) and isinstance(prop.get("required"), bool):
        return {name: value for name, value in prop.items() if name != "required"}
    return prop


def _check(node: Any, path: str, found: Findings) -> None:
    if not isinstance(node, dict):
        return
    keywords.check_node(node, path, found)
    _check_required(node, path, found)
    for _, place, child in keywords.children(node, path):
        _check(child, place, found)


def _check_required(node: JsonObject, path: str, found: Findings) -> None:
    """A required name that nothing describes: with described properties beside it, a slip of the pen."""
    names, properties = node.get("required"), node.get("properties")
    if not isinstance(names, list) or any(keyword in node for keyword in _MAY_DESCRIBE if node.get(keyword)):
        return
    known: JsonObject = properties if isinstance(properties, dict) else {}
    for index, name in enumerate(names):
        if not isinstance(name, str) or name in known:
            continue
        place, text = step(step(path, "required"), index), f"'{name[:80]}' is no declared property"
        if properties is None and node.get("additionalProperties") is not False:
            found.warn(place, text, "describe it under 'properties', so that callers know what to give")
        else:
            found.error(place, text, nearest(name, known) or "describe it under 'properties'")


def _check_references(root: JsonObject, path: str, found: Findings) -> None:
    before = found.error_count
    for place, node in _nodes(root, path):
        if "$ref" in node and _target(root, node["$ref"]) is None:
            text = f"must be '{_DEFS}NAME' of a schema under the root's '$defs', got {shown(node['$ref'])}"
            found.error(step(place, "$ref"), text)
    if found.error_count == before and _has_loop(root):
        found.error(path, "a '$ref' leads back to itself without a property or item between")


def _nodes(node: Any, path: str) -> Iterator[tuple[str, JsonObject]]:
    if isinstance(node, dict):
        yield path, node
        for _, place, child in keywords.children(node, path):
            yield from _nodes(child, place)


def _target(root: JsonObject, reference: Any) -> JsonObject | bool | None:
    if not isinstance(reference, str) or not reference.startswith(_DEFS):
        return None
    value: Any = root
    for part in reference[2:].split("/"):
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            return None
    return value if isinstance(value, dict | bool) else None


def _has_loop(root: JsonObject) -> bool:
    """Whether a validator would follow references for ever on one and the same value."""
    done: set[int] = set()
    on_way: set[int] = set()

    def visit(node: Any) -> bool:
        if not isinstance(node, dict) or id(node) in done:
            return False
        if id(node) in on_way:
            return True
        on_way.add(id(node))
        following = [
            child for keyword, _, child in keywords.children(node, "$") if keyword in keywords.IN_PLACE
        ]
        if "$ref" in node:
            following.append(_target(root, node["$ref"]))
        looped = any(visit(child) for child in following)
        on_way.discard(id(node))
        done.add(id(node))
        return looped

    return any(visit(node) for _, node in _nodes(root, "$"))
