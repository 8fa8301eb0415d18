"""Queue output bindings: from what the function set to messages in a queue."""

from __future__ import annotations

import base64
import json
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.host import wire
from infra.local.host.errors import HostError
from infra.local.host.settings import connection_string, resolve
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.local.host.storage import QueueStorage
    from infra.local.host.values import Binding, Function

_EXPRESSION = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class _Target:
    connection: str
    queue: str  # may hold {name} expressions


class QueueOutputs:
    """Writes the values of ``queue`` output bindings."""

    def __init__(self, storage: QueueStorage, *, encode: bool) -> None:
        self._storage = storage
        self._encode = encode  # messageEncoding base64
        self._targets: dict[Binding, _Target] = {}

    def add(self, functions: Iterable[Function], environment: Mapping[str, str]) -> None:
        """Resolve the output bindings of these functions. Raises HostError for a setting that is missing."""
        for function in functions:
            for binding in function.outputs:
                if binding.type.lower() != "queue":
                    continue
                where = f"queue output '{binding.name}' of function '{function.name}'"
                name = resolve(binding.text("queueName"), environment, f"queueName of the {where}")
                if not name:
                    raise HostError(f"The {where} has no queueName.")
                connection = connection_string(binding.text("connection"), environment, f"The {where}")
                self._targets[binding] = _Target(connection, name)

    async def send(self, binding: Binding, value: Value, data: Mapping[str, Any]) -> None:
        """Send the messages of one value; ``data`` is the trigger's binding data."""
        target = self._targets[binding]
        queue = self._storage.queue(target.connection, expand(target.queue, data))
        for body in message_bodies(value):
            text = base64.b64encode(body).decode("ascii") if self._encode else body.decode()
            await queue.send(text)


def message_bodies(value: Value) -> list[bytes]:
    """Bodies of the messages that a value stands for: one for each item of a JSON list, else one."""
    match value.kind:
        case Kind.BYTES:
            return [bytes(value.data)]
        case Kind.JSON:
            data = json.loads(value.data)
            items = data if isinstance(data, list) else [data]
            return [(item if isinstance(item, str) else wire.dumps_plain(item)).encode() for item in items]
        case _:
            return [str(value.data).encode()]


def expand(template: str, data: Mapping[str, Any]) -> str:
    """Replace ``{name}`` and ``{name.member}`` by binding data (names in any case) and ``{rand-guid}`` by a new
    id. Raises KeyError with the real host's text when there is no value."""

    def value(match: re.Match[str]) -> str:
        if match[1].lower() == "rand-guid":
            return str(uuid.uuid4())
        found: Any = data
        for part in match[1].split("."):
            names = {key.lower(): item for key, item in found.items()} if isinstance(found, dict) else {}
            found = names.get(part.lower())
        if found is None:
            raise KeyError(f"No value for named parameter '{match[1]}'.")
        return wire.dotnet_text(found)

    return _EXPRESSION.sub(value, template)
