"""From an ``mcpToolTrigger`` binding to the tool that tools/list shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.host import wire
from infra.local.host.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.host.values import Binding, Function

MAX_METADATA_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool. ``entry`` is its object in tools/list."""

    name: str
    function: Function
    binding: Binding
    entry: Mapping[str, Any]
    required: tuple[str, ...]
    use_result_schema: bool


def build_tool(function: Function, binding: Binding) -> Tool:
    """Check a trigger's fields and build the tool. Raises HostError: the real host does not start either."""
    name = binding.text("toolName")
    where = f"mcpToolTrigger of function '{function.name}'"
    if not name:
        raise HostError(f"{where} has no toolName.")
    if is_set(binding, "useWorkerInputSchema"):
        schema = _object_schema(binding.fields.get("inputSchema"), f"inputSchema in the {where}")
    else:
        schema = properties_schema(binding.fields.get("toolProperties"), f"toolProperties in the {where}")
    entry: dict[str, Any] = {"name": name}
    if binding.fields.get("description") is not None:
        entry["description"] = binding.text("description")
    entry["inputSchema"] = schema
    if binding.fields.get("outputSchema") is not None:
        entry["outputSchema"] = _object_schema(binding.fields["outputSchema"], f"outputSchema in the {where}")
    if metadata := parse_metadata(binding, where):
        entry["_meta"] = metadata
    required = schema.get("required") or ()
    return Tool(
        name=name,
        function=function,
        binding=binding,
        entry=entry,
        required=tuple(item for item in required if isinstance(item, str)),
        use_result_schema=is_set(binding, "useResultSchema"),
    )


def build_tools(triggers: list[tuple[Function, Binding]]) -> dict[str, Tool]:
    """All tools by lower-case name, in the order of tools/list: by function name, ignoring case."""
    tools: dict[str, Tool] = {}
    for function, binding in sorted(triggers, key=lambda item: item[0].name.upper()):
        tool = build_tool(function, binding)
        if tool.name.lower() in tools:
            raise HostError(f"Tool with name '{tool.name}' is already registered.")
        tools[tool.name.lower()] = tool
    return tools


def properties_schema(text: Any, where: str) -> dict[str, Any]:
    """The input schema made of ``toolProperties``: JSON text of a list of flat properties, or None for none."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    schema = {"type": "object", "properties": properties, "required": required}
    if text is None:
        return schema
    items = parse_json(text, where)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise HostError(f"{where} must be a JSON list of objects.")
    for item in items:
        keys = {key.lower(): value for key, value in item.items()}
        name, kind = keys.get("propertyname"), keys.get("propertytype")
        if not isinstance(name, str) or not name.strip():
            continue
        if not isinstance(kind, str):
            raise HostError(f"{where}: property {name!r} has no propertyType.")
        element: dict[str, Any] = {"type": kind}
        if keys.get("enumvalues"):
            element["enum"] = keys["enumvalues"]
        if keys.get("isarray"):
            element = {"type": "array", "items": element}
        properties[name] = {**element, "description": keys.get("description") or ""}
        if keys.get("isrequired"):
            required.append(name)
    return schema


def parse_metadata(binding: Binding, where: str) -> dict[str, Any] | None:
    """``metadata`` of an MCP trigger: JSON text of an object, at most 32 levels deep; empty means none."""
    text = binding.fields.get("metadata")
    if text is None or text == "":
        return None
    metadata = parse_json(text, f"metadata in the {where}")
    if not isinstance(metadata, dict):
        raise HostError(f"metadata in the {where} must be a JSON object.")
    if _depth(metadata) > MAX_METADATA_DEPTH:
        raise HostError(f"metadata in the {where} is nested more than {MAX_METADATA_DEPTH} levels deep.")
    return metadata


def missing_required(names: tuple[str, ...], arguments: Mapping[str, Any]) -> list[str]:
    """The required names that are absent or null: the only check of arguments that the real host makes."""
    return [name for name in names if arguments.get(name) is None]


def _object_schema(text: Any, where: str) -> dict[str, Any]:
    if text is None:
        raise HostError(f"{where} is missing.")
    schema = parse_json(text, where)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise HostError(f'{where} must be a JSON schema whose root says "type": "object".')
    return schema


def parse_json(text: Any, where: str) -> Any:
    """JSON text in a binding. Raises HostError."""
    if not isinstance(text, str):
        raise HostError(f"{where} must be a string of JSON.")
    try:
        return wire.loads(text)
    except ValueError as error:
        raise HostError(f"{where} is not valid JSON: {error}.") from None


def is_set(binding: Binding, key: str) -> bool:
    """A boolean field of a binding; the decorators pass strings through."""
    value = binding.fields.get(key)
    return value.strip().lower() == "true" if isinstance(value, str) else bool(value)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
