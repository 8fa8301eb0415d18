"""Content blocks: ours, the SDK's and those of a tool's author, as the host takes them."""

from __future__ import annotations

import base64
import json
from typing import Any

import mcp_types
import pytest

from shared.errors import ResultError, ToolError
from shared.tool import (
    McpAudioContent,
    McpContentBlock,
    McpImageContent,
    McpResourceContent,
    McpResourceLinkContent,
    McpTextContent,
    McpToolResponse,
)
from shared.tool import wire as wire_module
from shared.tool.result import from_value
from tests.unit.tool.result_values import (
    IMAGE_WIRE,
    PNG,
    TEXT,
    sent,
)


class TestBlocks:
    @pytest.mark.parametrize(
        ("block", "wire"),
        [
            (
                McpTextContent("a", annotations={"priority": 1}),
                {"type": "text", "text": "a", "annotations": {"priority": 1}},
            ),
            (McpImageContent(bytearray(PNG)), IMAGE_WIRE),
            (McpImageContent(memoryview(PNG)), IMAGE_WIRE),
            (McpImageContent(IMAGE_WIRE["data"]), IMAGE_WIRE),
            (McpImageContent(b"", "image/png"), {"type": "image", "data": "", "mimeType": "image/png"}),
            (McpAudioContent(b"OggS...."), {"type": "audio", "data": "T2dnUy4uLi4=", "mimeType": "audio/ogg"}),
            (
                McpResourceLinkContent("file:///dir/a%20b.txt"),
                {"type": "resource_link", "uri": "file:///dir/a%20b.txt", "name": "a b.txt"},
            ),
            (
                McpResourceLinkContent("u:1", "n", title="T", description="D", mime_type="text/plain", size=3),
                {
                    "type": "resource_link",
                    "uri": "u:1",
                    "name": "n",
                    "title": "T",
                    "description": "D",
                    "mimeType": "text/plain",
                    "size": 3,
                },
            ),
            (
                McpResourceContent("file:///a", text=""),
                {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": ""}},
            ),
            (
                McpResourceContent("file:///a", blob=b"\x01"),
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "mimeType": "application/octet-stream", "blob": "AQ=="},
                },
            ),
            (
                McpResourceContent("file:///a", blob=PNG),
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "mimeType": "image/png", "blob": IMAGE_WIRE["data"]},
                },
            ),
        ],
    )
    def test_wire_forms(self, block: McpContentBlock, wire: Any) -> None:
        assert sent(block)["content"] == [wire]

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (
                lambda: McpTextContent(5),  # type: ignore[arg-type]
                "text must be a str, not int",
            ),
            (lambda: McpImageContent(b"no signature"), "mime_type must be like 'image/…'"),
            (lambda: McpImageContent(b"OggS"), "got 'audio/ogg'"),
            (lambda: McpImageContent(b"", "png"), "got 'png'"),
            (lambda: McpImageContent("not base64!", "image/png"), "must be base64"),
            (
                lambda: McpImageContent(5, "image/png"),  # type: ignore[arg-type]
                "must be bytes or a base64 text, not int",
            ),
            (lambda: McpResourceLinkContent("relative/path"), "uri must be absolute"),
            (lambda: McpResourceLinkContent("u:/"), "name is required"),
            (lambda: McpResourceContent("file:///a"), "exactly one of text and blob"),
            (lambda: McpResourceContent("file:///a", text="t", blob=b"b"), "exactly one of text and blob"),
            (lambda: McpTextContent("a", annotations={"priority": 5}), "annotations.priority"),
            (lambda: McpTextContent("a", annotations={"priority": "high"}), "annotations.priority"),
            (lambda: McpImageContent(PNG, annotations={"audience": "user"}), "annotations.audience"),
            (lambda: McpAudioContent(b"OggS", annotations={"audience": ["robot"]}), "annotations.audience"),
            (lambda: McpResourceLinkContent("u:1", "n", size=1.5), "size must be"),  # type: ignore[arg-type]
            (lambda: McpResourceLinkContent("u:1", "n", size=-1), "size must be"),
            (lambda: McpResourceLinkContent("u:1", "n", mime_type=5), "mimeType must"),  # type: ignore[arg-type]
            (lambda: McpResourceContent("u:1", text="t", mime_type="nonsense"), "mime_type must be like"),
            (lambda: McpToolResponse([{"type": "text", "text": "a"}]), "content[0] must be a content block"),
            (
                lambda: McpToolResponse([TEXT, "a"]),
                "content[1] must be a content block such as McpTextContent, not str",
            ),
            (lambda: McpToolResponse([McpToolResponse()]), "not McpToolResponse"),
            (lambda: McpToolResponse(5), "content must be a list of blocks"),  # type: ignore[arg-type]
            (lambda: McpToolResponse(iter([TEXT])), "content must be a list of blocks"),  # type: ignore[arg-type]
            (lambda: McpToolResponse(is_error="no"), "is_error True or False"),  # type: ignore[arg-type]
            (lambda: McpResourceContent("u:1", text=5), "text must be a str, not int"),  # type: ignore[arg-type]
            (lambda: McpTextContent("a", annotations={"audience": 5}), "annotations.audience"),
        ],
    )
    def test_what_the_host_would_refuse_is_refused_when_made(self, make: Any, said: str) -> None:
        with pytest.raises(ToolError) as caught:
            make()
        assert said in caught.value.message

    def test_sdk_blocks_are_understood(self) -> None:
        link = mcp_types.ResourceLink(type="resource_link", uri="file:///a", name="a")
        image = mcp_types.ImageContent(type="image", data="AQID", mime_type="image/png")
        assert [block["type"] for block in sent([link, image, TEXT])["content"]] == [
            "resource_link",
            "image",
            "text",
        ]
        assert sent(McpToolResponse(image))["content"] == sent(image)["content"]  # type: ignore[arg-type]
        assert sent(McpToolResponse([image]))["content"] == [
            {"type": "image", "data": "AQID", "mimeType": "image/png"}
        ]


class VideoContent(McpContentBlock):
    """The example of the Functions Node library's documentation, in Python."""

    type = "video"

    def __init__(self, data: bytes, mime_type: str, duration_ms: int | None = None) -> None:
        self.data, self.mime_type, self.duration_ms = data, mime_type, duration_ms

    def to_wire(self) -> dict[str, Any]:
        data = base64.b64encode(self.data).decode()
        return {"type": self.type, "data": data, "mimeType": self.mime_type, "durationMs": self.duration_ms}


class Untyped(McpContentBlock):
    """States no type."""

    def to_wire(self) -> Any:
        return {"text": "t"}


class Odd(McpContentBlock):
    type = "text"

    def __init__(self, wire: Any, kind: str = "text") -> None:
        self.wire = wire
        self.type = kind  # type: ignore[misc]

    def to_wire(self) -> Any:
        if isinstance(self.wire, Exception):
            raise self.wire
        return self.wire


class TestCustomBlocks:
    def test_an_unknown_type_with_data_travels_as_a_resource(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level("INFO"):
            (block,) = sent(VideoContent(b"\x01\x02\x03", "video/mp4", 5))["content"]
        assert block == {
            "type": "resource",
            "resource": {"uri": "toolbox://content/video", "mimeType": "video/mp4", "blob": "AQID"},
        }
        assert "'video'" in caplog.text

    def test_any_other_unknown_type_travels_as_json(self) -> None:
        (block,) = sent(Odd({"type": "poll", "options": ["a"]}, "poll"))["content"]
        assert json.loads(block["text"]) == {"type": "poll", "options": ["a"]}

    def test_a_newer_hosts_types_pass_untouched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLBOX_CONTENT_TYPES", "poll, video")
        wire_module._more_types.cache_clear()
        try:
            (block,) = sent(VideoContent(b"\x01", "video/mp4"))["content"]
            assert block == {"type": "video", "data": "AQ==", "mimeType": "video/mp4", "durationMs": None}
        finally:
            monkeypatch.undo()
            wire_module._more_types.cache_clear()

    @pytest.mark.parametrize(
        ("block", "wire"),
        [
            (Odd({"text": "c"}), {"type": "text", "text": "c"}),
            (
                Odd({"type": "resource", "resource": {"uri": "u:1", "text": "t"}}),
                {"type": "resource", "resource": {"uri": "u:1", "text": "t", "mimeType": "text/plain"}},
            ),
            (Odd({"type": "text", "text": "c", "extra": {"a": 1}}), {"type": "text", "text": "c"}),
            (
                Odd({"type": "text", "text": "c", "_meta": {"a": 1}}),
                {"type": "text", "text": "c", "_meta": {"a": 1}},
            ),
        ],
    )
    def test_known_types_are_made_fit(self, block: Any, wire: Any) -> None:
        assert sent(block)["content"] == [wire]

    @pytest.mark.parametrize(
        ("block", "said"),
        [
            (Odd(ValueError("bad block")), "Odd has no wire form: ValueError: bad block"),
            (Odd("text"), "must give a dict, not str"),
            (Odd({"type": 5}), "its type must be a text"),
            (Untyped(), "content block Untyped: its type must be a text"),
            (Odd({"type": "call_tool_result", "content": [], "isError": True}), "its type must be a text"),
            (Odd({"type": "image", "data": "AQ=="}), "a 'image' block needs 'mimeType'"),
            (Odd({"type": "resource_link", "uri": "u:1"}), "needs 'name'"),
            (Odd({"type": "text", "text": "t", "annotations": {"priority": 2}}), "annotations.priority"),
            (Odd({"type": "resource", "resource": {"uri": "u:1"}}), "exactly one of text and blob"),
            (Odd({"type": "resource", "resource": {"text": "t"}}), "its resource must be an object with a uri"),
        ],
    )
    def test_what_cannot_be_sent_is_named(self, block: Any, said: str) -> None:
        with pytest.raises(ResultError) as caught:
            from_value(block)
        assert said in caught.value.message
