"""The parts by themselves: the models, base64, and names of files."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.errors import MCPError, MCPTimeoutError
from shared.jobs.artifacts import is_mime_type, is_name
from shared.upstream.content import (
    AudioContent,
    BinaryContent,
    ContentBlock,
    ImageContent,
    MCPToolResult,
    TextContent,
)
from shared.upstream.content.base64_text import Base64Error, checked, size_of
from shared.upstream.content.filenames import EXTENSIONS, FileNames


class TestModels:
    """As the HoloDeck data model has them."""

    @pytest.mark.parametrize(
        ("block", "kind"),
        [
            (TextContent(text=""), "text"),
            (ImageContent(data="QQ==", mime_type="image/webp"), "image"),
            (AudioContent(data="QQ==", mime_type="audio/ogg"), "audio"),
            (BinaryContent(data=b"\x00\xff"), "binary"),
            (BinaryContent(data=b"", mime_type="a/b", uri="file:///a"), "binary"),
        ],
    )
    def test_each_is_frozen_and_told_by_its_type(self, block: Any, kind: str) -> None:
        assert block.type == kind
        with pytest.raises(ValidationError):
            block.type = "other"
        again: Any = TypeAdapter(ContentBlock).validate_python(block.model_dump())
        assert again == block
        assert type(again) is type(block)

    @pytest.mark.parametrize(
        "fields",
        [{"type": "image", "data": "QQ=="}, {"type": "binary"}, {"type": "other", "text": "a"}, {"text": "a"}],
    )
    def test_what_is_missing_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ValidationError):
            TypeAdapter(ContentBlock).validate_python(fields)

    def test_a_success(self) -> None:
        blocks: list[Any] = [TextContent(text="a"), BinaryContent(data=b"b"), TextContent(text="c")]
        result = MCPToolResult.success_result(blocks, {"durationMs": 5})
        assert (result.success, result.error, result.content) == (True, None, tuple(blocks))
        assert (result.metadata, result.text) == ({"durationMs": 5}, "a\nc")
        with pytest.raises(ValidationError):
            result.success = False  # type: ignore[misc]
        assert MCPToolResult.success_result([]).metadata == {}

    @pytest.mark.parametrize("error", ["it broke", MCPTimeoutError("it broke", "docs")])
    def test_an_error(self, error: Any) -> None:
        result = MCPToolResult.error_result(error, {"server": "docs"})
        assert (result.success, result.content, result.is_error) == (False, (), False)
        assert isinstance(result.error, MCPError)
        assert (result.error.message, result.error.server) == ("it broke", "docs")

    @pytest.mark.parametrize("fields", [{"success": True, "error": MCPError("a")}, {"success": False}])
    def test_a_result_has_succeeded_or_has_an_error(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ValidationError, match="error: must be given for a failed result"):
            MCPToolResult(**fields)

    def test_data_are_not_shown(self) -> None:
        blocks: list[Any] = [ImageContent(data="SECRET==", mime_type="a/b"), BinaryContent(data=b"SECRET")]
        assert "SECRET" not in repr(MCPToolResult.success_result(blocks))


class TestBase64:
    @given(st.binary(max_size=300))
    def test_size_without_decoding(self, data: bytes) -> None:
        text = base64.b64encode(data).decode()
        assert size_of(text) == len(data)
        assert checked(text) == (text, data)

    @given(st.text(max_size=30))
    def test_no_text_is_larger_than_told(self, text: str) -> None:
        try:
            _, data = checked(text)
        except Base64Error:
            return
        assert len(data) <= size_of("".join(text.split()))

    @pytest.mark.parametrize(
        "text",
        [
            *("QUJ", "QQ", "Q===", "QQ==QQ==", "QQ==x", "=QUJ", "QQ=\0="),
            *("QÜJD", "QU-D", "QU_D", "data:,x", "DATA:a;base64,QUJD"),
        ],
    )
    def test_only_the_standard_form_is_taken(self, text: str) -> None:
        with pytest.raises(Base64Error):
            checked(text)

    def test_a_reason_holds_nothing_of_the_data(self) -> None:
        with pytest.raises(Base64Error) as told:
            checked("sentinel!secret")
        assert "sentinel" not in str(told.value)


class TestNames:
    @pytest.mark.parametrize(
        ("uri", "mime_type", "expected"),
        [
            (None, "image/png", "find_image_1.png"),
            ("file:///shots/a b.png", "image/png", "a_b.png"),
            ("file:///shots/photo.JPEG", "image/jpeg", "photo.JPEG"),
            ("../../etc/passwd", "text/plain", "passwd.txt"),
            ("file:///../../etc/passwd", "application/octet-stream", "passwd.bin"),
            ("..", "image/png", "find_image_1.png"),
            ("file:///a/..", "image/png", "find_image_1.png"),
            ("%2e%2e%2fetc", "image/png", "2e_2e_2fetc.png"),
            ("x:%2e%2e", "image/png", "2e_2e.png"),
            ("file:///C:\\temp\\..\\a.png", "image/png", "a.png"),
            ("file:///a/.hidden", "text/plain", "hidden.txt"),
            ("file:///a/日本", "image/png", "find_image_1.png"),
            ("file:///a/", "image/png", "a.png"),
            ("https://example.org", "image/png", "find_image_1.png"),
            ("https://example.org/a.png?token=secret#b", "image/png", "a.png"),
            ("file:///report.html", "image/png", "report.html.png"),
            ("file:///a.tar", "application/octet-stream", "a.tar"),
            ("file:///data", "application/x-unheard-of", "data.bin"),
            ("file:///data.xyz", "application/x-unheard-of", "data.xyz"),
            ("file:///a", "audio/wav", "a.wav"),
            ("file:///a", "IMAGE/PNG; q=1", "a.png"),
            ("file:///" + "x" * 300 + ".png", "image/png", "x" * 100 + ".png"),
            ("http://[", "image/png", "find_image_1.png"),
        ],
    )
    def test_a_name_is_safe_and_tells_what_it_is(self, uri: str | None, mime_type: str, expected: str) -> None:
        found = FileNames("find").name("image", mime_type, uri)
        assert found == expected
        assert is_name(found)

    def test_the_same_name_gets_a_number(self) -> None:
        names = FileNames("find")
        given_names = [
            names.name("image", "image/png", uri) for uri in ("a:/x", "b:/x", "c:/X", "d:/x-2", None)
        ]
        assert given_names == ["x.png", "x-2.png", "X-3.png", "x-2-2.png", "find_image_5.png"]

    @pytest.mark.parametrize("tool", ["", "..", "a/../b", "漢", "x" * 300, "-"])
    def test_the_tools_name_is_made_safe_too(self, tool: str) -> None:
        assert is_name(FileNames(tool).name("image", "image/png"))

    @given(st.lists(st.tuples(st.text(max_size=150), st.text(max_size=20)), max_size=8), st.text(max_size=150))
    def test_any_names_are_legal_and_differ(self, files: list[tuple[str, str]], tool: str) -> None:
        names = FileNames(tool)
        found = [names.name("resource", mime_type, uri) for uri, mime_type in files]
        assert all(map(is_name, found))
        assert len({name.lower() for name in found}) == len(found)

    def test_the_table_is_well_formed(self) -> None:
        for mime_type, extensions in EXTENSIONS.items():
            assert is_mime_type(mime_type)
            assert mime_type == mime_type.lower()
            assert extensions
            assert all(extension.startswith(".") and extension == extension.lower() for extension in extensions)
