"""From a ToolSpec to the fields of its `mcpToolTrigger` binding.

Sources: the trigger attribute of the MCP extension reads `toolName, description, toolProperties, metadata,
inputSchema, outputSchema, useResultSchema, useWorkerInputSchema`; azure-functions passes unknown keyword
arguments through in camelCase. `resultSchema` is what the Node library sends; hosts that do not know it ignore
it. `toolProperties` is for hosts that do not read `inputSchema` yet.
"""

from __future__ import annotations

from typing import Any, TypedDict

from shared.tool.json_form import dumps
from shared.tool.references import enclosed
from shared.tool.spec import DEFAULT_TIMEOUT_MS, ExecutionMode, JsonObject, Mode, RunRules, ToolSpec

ENVELOPE_KEY = "__pptb"
_SCALARS = ("string", "integer", "number", "boolean", "object")


class TriggerFields(TypedDict, total=False):
    """Keyword arguments of `FunctionApp.mcp_tool_trigger`."""

    tool_name: str
    description: str
    tool_properties: str
    metadata: str
    use_result_schema: bool
    use_worker_input_schema: bool
    input_schema: str
    output_schema: str
    result_schema: str


def trigger_fields(spec: ToolSpec) -> TriggerFields:
    published = published_input_schema(spec)
    fields = TriggerFields(
        tool_name=spec.name,
        description=spec.description,
        tool_properties=dumps(flat_properties(published)),
        use_result_schema=True,
        use_worker_input_schema=True,
        input_schema=dumps(published),
    )
    metadata = published_metadata(spec)
    if metadata:
        fields["metadata"] = dumps(metadata)
    result = published_result_schema(spec)
    if result is not None:
        fields["output_schema"] = fields["result_schema"] = dumps(result)
    return fields


def published_input_schema(spec: ToolSpec) -> JsonObject:
    """The tool's own schema and `__pptb`, with only the modes the tool has."""
    published = dict(spec.input_schema)
    published["properties"] = {**published.get("properties", {}), ENVELOPE_KEY: envelope_schema(spec)}
    return published


def envelope_schema(spec: ToolSpec) -> JsonObject:
    rules = spec.rules
    properties: JsonObject = {
        "mode": {
            "type": "string",
            "enum": [str(mode) for mode in rules.modes],
            "description": "two-way waits for the result, one-way answers at once with a jobId.",
        },
        "executionMode": {
            "type": "string",
            "enum": [str(mode) for mode in rules.execution_modes],
            "default": str(rules.default_execution_mode),
            "description": _told_of(rules),
        },
        "timeoutMs": _timeout(rules),
        "authToken": {
            "type": "string",
            "description": "A token of yours for the tool. Kept sealed while the job runs, never shown."
            + (" A window is not given it." if rules.has_window else ""),
        },
    }
    properties["connectionName"] = {
        "type": "string",
        "description": "A saved connection for the tool to use.",
    }
    properties["connectionNames"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Several of them, by slot: primary, secondary, and so on.",
    }
    properties["project"] = {
        "type": "string",
        "description": "A project of yours: its upstream servers are used beside the global ones.",
    }
    if rules.may_outlive_call:
        properties["idempotencyKey"] = {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "For jobs: a repeated call with the same key and arguments gets the same job.",
        }
    return {
        "type": "object",
        "description": "How to run this call. All fields are optional.",
        "properties": properties,
        "additionalProperties": False,
    }


def _told_of(rules: RunRules) -> str:
    text = "inline runs in the call, headless as a stored job that outlives it"
    if rules.has_window:
        text += ", windowed opens the tool's page for a person, who gives the result"
    return f"{text}."


def _timeout(rules: RunRules) -> JsonObject:
    text = "How long one attempt may run, in milliseconds. Longer than allowed is cut."
    if rules.has_window:
        text += " Of a window: how long it waits for a person."
    schema: JsonObject = {"type": "number", "exclusiveMinimum": 0, "description": text}
    default = rules.timeout_ms or DEFAULT_TIMEOUT_MS
    if rules.default_execution_mode is not ExecutionMode.WINDOWED:
        return {**schema, "default": default}
    default = rules.window_timeout_ms or rules.timeout_ms or 0
    return {**schema, "default": default} if default else schema  # else the app's setting says it


def published_result_schema(spec: ToolSpec) -> JsonObject | None:
    """What a client may get as structured content.

    A call that may be answered with an acceptance instead of the result says so: clients that validate would
    refuse the acceptance otherwise.
    """
    own = spec.result_schema
    if own is None or not spec.rules.may_outlive_call:
        return own
    others = [acceptance_schema(), *([no_result_schema()] if spec.rules.has_window else [])]
    return enclosed(own, lambda part: {"type": "object", "anyOf": [part, *others]})


def acceptance_schema() -> JsonObject:
    """The answer of a call whose job is not done yet."""
    return {
        "type": "object",
        "description": "The job was accepted and is not done yet: read it at statusUrl.",
        "properties": {
            "status": {"const": "accepted"},
            "executionMode": {"type": "string", "enum": [str(mode) for mode in ExecutionMode]},
            "mode": {"type": "string", "enum": [str(mode) for mode in Mode]},
            "jobId": {"type": "string"},
            "jobStatusPath": {"type": "string"},
            "statusUrl": {"type": "string"},
            "jobStatus": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed"]},
            "correlationId": {"type": "string"},
            "timeoutMs": {"type": "integer"},
            "hasAuthToken": {"type": "boolean"},
            "authSource": {"type": "string"},
            "connectionName": {"type": "string"},
            "waitLimitMs": {"type": "integer"},
            "message": {"type": "string"},
            "window": window_schema(),
        },
        "required": ["status", "executionMode", "mode", "jobId", "statusUrl", "jobStatus"],
    }


def window_schema() -> JsonObject:
    """Of a windowed job's window."""
    return {
        "type": "object",
        "description": "The window in which a person gives the result; url opens it.",
        "properties": {
            "state": {"type": "string", "enum": ["waiting", "open", "done", "closed"]},
            "url": {"type": "string"},
        },
        "required": ["state"],
    }


def no_result_schema() -> JsonObject:
    """The answer when a person has closed the window."""
    return {
        "type": "object",
        "description": "The window was closed without data.",
        "properties": {
            "status": {"const": "no_result"},
            "executionMode": {"const": "windowed"},
            "correlationId": {"type": "string"},
            "message": {"type": "string"},
        },
        "required": ["status", "executionMode", "correlationId", "message"],
    }


def published_metadata(spec: ToolSpec) -> JsonObject:
    """`_meta` of the tool: what the host has no field for."""
    published: JsonObject = {**spec.metadata, "toolbox/title": spec.title}
    hints = spec.annotations.to_wire()
    if hints:
        published["toolbox/annotations"] = hints
    if spec.icons:
        published["toolbox/icons"] = list(spec.icons)
    if spec.capabilities:
        published["toolbox/capabilities"] = list(spec.capabilities)
    return published


def flat_properties(schema: JsonObject) -> list[JsonObject]:
    """The properties in the host's flat form, which knows no nesting: deeper structure is lost there."""
    required = set(schema.get("required", ()))
    flat: list[JsonObject] = []
    for name, prop in schema.get("properties", {}).items():
        resolved = _resolve(prop, schema)
        is_array = resolved.get("type") == "array"
        item = _resolve(resolved.get("items", {}), schema) if is_array else resolved
        entry: JsonObject = {
            "propertyName": name,
            "propertyType": _flat_type(item),
            "description": prop.get("description") or resolved.get("description") or "",
            "isRequired": name in required,
            "isArray": is_array,
        }
        if "enum" in item:
            entry["enumValues"] = [value if isinstance(value, str) else dumps(value) for value in item["enum"]]
        flat.append(entry)
    return flat


def _resolve(prop: Any, root: JsonObject) -> JsonObject:
    if isinstance(prop, dict) and isinstance(prop.get("$ref"), str):
        target = root.get("$defs", {}).get(prop["$ref"].rpartition("/")[2], {})
        return {**target, **{key: value for key, value in prop.items() if key != "$ref"}}
    return prop if isinstance(prop, dict) else {}


def _flat_type(prop: JsonObject) -> str:
    kind = prop.get("type")
    if isinstance(kind, list):
        kind = next((name for name in kind if name in _SCALARS), None)
    if kind in _SCALARS:
        return str(kind)
    return "array" if kind == "array" else "object" if "properties" in prop else "string"
