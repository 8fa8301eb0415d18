"""`toolbox://tools` and `toolbox://tools/{name}`: what the tools do and take, for reading.

`tools/list` says the same to programs; this is for a person, or an agent that looks around before it chooses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from shared.errors import ToolError
from shared.tool import resource
from shared.tool.spec import JsonObject, ToolSpec


def tool_docs(tools: Callable[[], Iterable[ToolSpec]]) -> list[Callable[..., Any]]:
    """The two resources."""

    @resource(uri="toolbox://tools", title="All tools", mime_type="text/markdown")
    async def tools_overview() -> str:
        """Every tool of this server: what it does, how it can be run, and its arguments."""
        pages = [page(spec) for spec in sorted(tools(), key=lambda spec: spec.name.lower())]
        return "\n".join(["# Tools\n", *pages]) if pages else "# Tools\n\nThere are none.\n"

    @resource(uri="toolbox://tools/{name}", title="One tool", mime_type="text/markdown")
    async def tool_page(name: str) -> str:
        """One tool of this server, by its name: what it does, how it can be run, and its arguments."""
        found = find(tools(), name)
        if found is None:
            raise ToolError(f"there is no tool '{name[:80]}'")
        return page(found)

    return [tools_overview, tool_page]


def find(tools: Iterable[ToolSpec], name: str) -> ToolSpec | None:
    """The tool of that name. The host takes names whatever their case, so this does too."""
    return next((spec for spec in tools if spec.name.lower() == name.lower()), None)


def page(spec: ToolSpec) -> str:
    """One tool as Markdown, below a heading of the second level."""
    rules = spec.rules
    execution = [_marked(mode, mode == rules.default_execution_mode) for mode in rules.execution_modes]
    lines = [
        f"## {spec.name}",
        "",
        f"**{_line(spec.title)}**",
        "",
        spec.description,
        "",
        f"- Execution modes: {', '.join(execution)}",
        f"- Modes: {', '.join(rules.modes)}",
        f"- Timeout: {spec.timeout_ms / 1000:g} s",
    ]
    hints = [name for name, value in spec.annotations.to_wire().items() if value]
    if hints:
        lines.append(f"- Hints: {', '.join(hints)}")
    return "\n".join([*lines, "", *_arguments(spec.input_schema), ""])


def _arguments(schema: JsonObject) -> list[str]:
    properties = schema.get("properties", {})
    if not properties:
        return ["It takes no arguments."]
    required = schema.get("required", ())
    return [
        "Arguments:",
        "",
        *(_argument(name, properties[name], name in required, schema) for name in properties),
    ]


def _argument(name: str, given: Any, required: bool, root: JsonObject) -> str:
    prop = _resolved(given, root)
    facts = [kind(prop, root), "required" if required else "optional"]
    if "default" in prop:
        facts.append(f"default `{json.dumps(prop['default'], ensure_ascii=False)}`")
    described = _line(str(prop.get("description", "")))
    return f"- `{name}` ({', '.join(facts)}){': ' + described if described else ''}"


def kind(prop: Any, root: JsonObject) -> str:
    """A property's type in words: `array of integer`, `one of "a", "b"`."""
    prop = _resolved(prop, root)
    if "enum" in prop or "const" in prop:
        values = prop.get("enum", [prop.get("const")])
        return "one of " + ", ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in values)
    for several in ("anyOf", "oneOf"):
        if several in prop:
            return " or ".join(dict.fromkeys(kind(option, root) for option in prop[several]))
    word = prop.get("type", "any")
    if isinstance(word, list):
        return " or ".join(word)
    if word == "array" and prop.get("items"):
        return f"array of {kind(prop['items'], root)}"
    return str(word)


def _resolved(prop: Any, root: JsonObject) -> JsonObject:
    """The property with what its `$ref` points at. Only one step: a definition may refer to itself."""
    if not isinstance(prop, dict):
        return {}
    target = root.get("$defs", {}).get(str(prop.get("$ref", "")).rpartition("/")[2], {})
    return {**target, **{key: value for key, value in prop.items() if key != "$ref"}}


def _marked(mode: str, default: bool) -> str:
    return f"{mode} (default)" if default else str(mode)


def _line(text: str) -> str:
    return " ".join(text.split())
