"""Queue messages apart from any I/O: decoding, metadata, binding data, names, waiting times between polls."""

from __future__ import annotations

import base64
import binascii
import json
import random
from typing import TYPE_CHECKING, Any, Final

from infra.local.host import wire
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from azure.storage.queue import QueueMessage

POISON_SUFFIX: Final = "-poison"
MAX_NAME: Final = 63
MIN_POLL: Final = 0.1  # seconds


class Backoff:
    """Waiting time between polls that find nothing: doubling from 0.1 s, give or take 20 %, up to a maximum."""

    def __init__(self, maximum: float) -> None:
        self._maximum = max(maximum, MIN_POLL)
        self._exponent = 0

    def reset(self) -> None:
        """A poll has found something."""
        self._exponent = 0

    def next(self) -> float:
        """Seconds to wait before the next poll."""
        if self._exponent == 0:
            self._exponent = 1
            return MIN_POLL
        wanted: float = MIN_POLL + random.uniform(0.8, 1.2) * MIN_POLL * 2**self._exponent  # noqa: S311 - jitter
        if wanted >= self._maximum:
            return self._maximum
        self._exponent += 1
        return wanted


def poison_name(queue: str) -> str | None:
    """Name of a queue's poison queue; None for a poison queue itself and for a name that has no room."""
    if queue.endswith(POISON_SUFFIX) or len(queue) + len(POISON_SUFFIX) > MAX_NAME:
        return None
    return queue + POISON_SUFFIX


def decode_body(content: str, *, base64_encoded: bool) -> bytes | None:
    """The message body; None when it should be base64 and is not."""
    if not base64_encoded:
        return content.encode()
    try:
        return base64.b64decode("".join(content.split()).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None


def trigger_metadata(message: QueueMessage, text: str) -> dict[str, Value]:
    """What the worker is told about the message besides its body."""

    def time(moment: datetime | None) -> Value:
        return Value(
            Kind.JSON, json.dumps(None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S+00:00"))
        )

    return {
        "QueueTrigger": Value(Kind.STRING, text),
        "Id": Value(Kind.STRING, str(message.id)),
        "PopReceipt": Value(Kind.STRING, str(message.pop_receipt)),
        "DequeueCount": Value(Kind.STRING, str(message.dequeue_count)),
        "InsertionTime": time(message.inserted_on),
        "ExpirationTime": time(message.expires_on),
        "NextVisibleTime": time(message.next_visible_on),
    }


def binding_data(metadata: Mapping[str, Value], text: str) -> dict[str, Any]:
    """What ``{name}`` may name in output bindings: the metadata and the top-level fields of a JSON body.

    Lists and nulls are left out, scalars are strings, objects stay; a body that is not JSON adds nothing.
    """
    data: dict[str, Any] = {
        name: json.loads(value.data) if value.kind is Kind.JSON else value.data
        for name, value in metadata.items()
    }
    try:
        body = wire.loads(text)
    except ValueError:
        return data
    for name, value in body.items() if isinstance(body, dict) else ():
        if isinstance(value, dict):
            data[name] = value
        elif value is not None and not isinstance(value, list):
            data[name] = wire.dotnet_text(value)
    return data
