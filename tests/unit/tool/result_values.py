"""Values that tools return in tests, and what the host is given for one."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
from typing import Annotated, Any, TypedDict

from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    computed_field,
    field_serializer,
    model_serializer,
)

from shared.tool import (
    McpImageContent,
    McpTextContent,
)
from shared.tool.result import envelope, from_value

PNG = b"\x89PNG\r\n\x1a\nrest"

TEXT, IMAGE = McpTextContent("hi"), McpImageContent(PNG)

IMAGE_WIRE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Point(BaseModel):
    x: int
    at: dt.datetime | None = None


@dataclasses.dataclass
class Size:
    width: float
    inner: Point | None = None


@dataclasses.dataclass
class Parcel:
    weight: Annotated[int, Field(serialization_alias="weightKg")]
    seal: bytes = b"hi"


class Everything(BaseModel):
    """What a model can hold, and what its author can say of it."""

    model_config = ConfigDict(extra="allow")
    raw: bytes = b"\xfb\xff"
    readable: bytes = b"hi"
    tags: set[str] = {"c", "a", "b"}
    big: int = 2**70
    price: Annotated[decimal.Decimal, PlainSerializer(float, return_type=float)] = decimal.Decimal("1.5")
    parcel: Parcel = Field(default=Parcel(1), serialization_alias="theParcel")
    anything: Any = None

    @field_serializer("big")
    def _hexadecimal(self, value: int) -> str:
        return hex(value)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def digest(self) -> bytes:
        return b"\xff"


class Branch(BaseModel):
    leaf: bytes
    branches: list[Branch] = []


class Waited(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float", ser_json_bytes="hex")
    took: list[dt.timedelta]


class Handed(BaseModel):
    """Bytes and sets that pass through serializers of the author's."""

    first: bytes = b"a"
    second: bytes = b"\xff"
    third: Base64Bytes = b"hi"

    @field_serializer("second", mode="wrap")
    def _listed(self, value: bytes, write: Any) -> list[Any]:
        return [write(value), value]

    @model_serializer(mode="wrap")
    def _more(self, write: Any) -> dict[str, Any]:
        return {**write(self), "more": {2, 1}, "raw": b"hi"}


class Labelled(TypedDict):
    label: Annotated[str, Field(serialization_alias="theLabel")]
    raw: bytes


class Secretive(TypedDict):
    label: Any
    key: Annotated[str, Field(exclude=True)]


def texts(*values: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


def sent(value: Any) -> Any:
    """What the host is given, unpacked: the CallToolResult."""
    outer = json.loads(envelope(from_value(value)).encode("utf-8"))
    assert outer["type"] == "call_tool_result"
    return json.loads(outer["content"])
