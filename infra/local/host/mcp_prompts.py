"""``mcpPromptTrigger``: prompts/list and prompts/get."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from infra.local.host import wire
from infra.local.host.errors import HostError
from infra.local.host.mcp_call import GENERIC_ERROR, RpcError
from infra.local.host.mcp_result import ResultError, content_block
from infra.local.host.mcp_schema import is_set, missing_required, parse_json, parse_metadata
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from infra.local.host.invoker import Invoker
    from infra.local.host.mcp_call import Call, Handler
    from infra.local.host.values import Binding, Function

logger = logging.getLogger("host.mcp")

_ROLES = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A registered prompt. ``entry`` is its object in prompts/list."""

    name: str
    function: Function
    entry: dict[str, Any]
    required: tuple[str, ...]
    use_result_schema: bool


def build_prompts(triggers: list[tuple[Function, Binding]]) -> dict[str, Prompt]:
    """All prompts by lower-case name, in the order of their functions' names. Raises HostError."""
    prompts: dict[str, Prompt] = {}
    for function, binding in sorted(triggers, key=lambda item: item[0].name.upper()):
        prompt = _build(function, binding)
        if prompt.name.lower() in prompts:
            raise HostError(f"Prompt with name '{prompt.name}' is already registered.")
        prompts[prompt.name.lower()] = prompt
    return prompts


def _build(function: Function, binding: Binding) -> Prompt:
    where = f"mcpPromptTrigger of function '{function.name}'"
    name = binding.text("promptName")
    if not name:
        raise HostError(f"The {where} has no promptName.")
    entry: dict[str, Any] = {"name": name}
    for key in ("title", "description"):
        if binding.fields.get(key) is not None:
            entry[key] = binding.fields[key]
    arguments: list[dict[str, Any]] = []
    if text := binding.fields.get("promptArguments"):
        arguments = parse_json(text, f"promptArguments in the {where}")
        if not isinstance(arguments, list) or not all(isinstance(item, dict) for item in arguments):
            raise HostError(f"promptArguments in the {where} must be a JSON list of objects.")
        entry["arguments"] = arguments
    if icons := binding.fields.get("icons"):
        entry["icons"] = parse_json(icons, f"icons in the {where}")
    if metadata := parse_metadata(binding, where):
        entry["_meta"] = metadata
    required = tuple(str(item.get("name")) for item in arguments if item.get("required"))
    return Prompt(name, function, entry, required, is_set(binding, "useResultSchema"))


class Prompts:
    """The app's prompts, by lower-case name."""

    def __init__(self, prompts: dict[str, Prompt], invoker: Invoker) -> None:
        self._prompts = prompts
        self._invoker = invoker

    def handlers(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"prompts/list": self._list, "prompts/get": self._get}

    async def _list(self, call: Call) -> dict[str, Any]:
        return {"prompts": [prompt.entry for prompt in self._prompts.values()]}

    async def _get(self, call: Call) -> dict[str, Any]:
        name = call.text("name")
        arguments = call.mapping().get("arguments")
        if not isinstance(arguments, dict | None):
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        prompt = self._prompts.get(name.lower())
        if prompt is None:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: '{name}'")
        if missing := missing_required(prompt.required, arguments or {}):
            text = "One or more required prompt arguments are missing values. Please provide: "
            raise RpcError(INVALID_PARAMS, text + ", ".join(missing))
        fields = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        outcome = await self._invoker.run(prompt.function, call.payload(fields), data=fields)
        if not outcome.ok:
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        try:
            return prompt_result(outcome.returned, use_result_schema=prompt.use_result_schema)
        except ResultError as error:
            logger.error("The messages of prompt '%s' cannot be sent: %s", prompt.name, error)
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR) from None


def prompt_result(value: Value | None, *, use_result_schema: bool) -> dict[str, Any]:
    """The result of prompts/get. Raises ResultError for a value that is not a prompt."""
    if value is None:
        return {"messages": []}
    if value.kind is not Kind.STRING:
        raise ResultError(f"a {value.kind} value is not a prompt")
    if not use_result_schema:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": value.data}}]}
    try:
        envelope = wire.loads(value.data)
        fields = {key.lower(): item for key, item in envelope.items()}
        content = wire.loads(fields["content"], finite=True)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ResultError(f"not an envelope: {error!r}") from None
    match fields.get("type"):
        case "get_prompt_result" if isinstance(content, dict):
            described = {"description": content["description"]} if content.get("description") else {}
            return {**described, "messages": _messages(content.get("messages"))}
        case "prompt_messages":
            return {"messages": _messages(content)}
        case kind:
            raise ResultError(f"unknown envelope type {kind!r}")


def _messages(data: Any) -> list[dict[str, Any]]:
    if not isinstance(data, list):
        raise ResultError("messages is not a list")
    messages = []
    for item in data:
        if not isinstance(item, dict) or item.get("role") not in _ROLES:
            raise ResultError("a message needs the role user or assistant")
        messages.append({"role": item["role"], "content": content_block(item.get("content"))})
    return messages
