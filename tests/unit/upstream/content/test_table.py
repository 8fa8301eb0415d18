"""The table of `shared.upstream.content`, row by row: what came, what it is here, and what a client gets."""

from __future__ import annotations

from typing import Any

import pytest

from shared.upstream.content import (
    AudioContent,
    BinaryContent,
    BinaryForm,
    ImageContent,
    TextContent,
)
from tests.unit.upstream.content.support import CAP, PNG, SVG, WAV, Call, b64, facts, read, sent

NOTES = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}
META = {"vendor/key": [1, {"a": None}]}


def image(data: bytes = PNG, **fields: Any) -> dict[str, Any]:
    return {"type": "image", "data": b64(data), "mimeType": "image/png", **fields}


def resource(**fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "file:///docs/a.txt", **fields}}


@pytest.fixture
def call() -> Call:
    return Call()


def test_a_text_is_a_text(call: Call) -> None:
    block = {"type": "text", "text": "häl\nlo", "annotations": NOTES, "_meta": META}
    assert read(block).content == (TextContent(text="häl\nlo", annotations=NOTES, meta=META),)
    assert call.answer(block).content == (block,)
    assert call.requests == 0


def test_an_image_is_stored_and_stays_an_image(call: Call) -> None:
    block = image(annotations=NOTES, _meta=META)
    (found,) = read(block).content
    assert found == ImageContent(data=b64(PNG), mime_type="image/png", annotations=NOTES, meta=META)
    answer = call.answer(block)
    assert answer.content == (block,)
    assert call.file("find_image_1.png") == PNG
    path = f"/mcp/jobs/{call.job.job_id}/artifacts/find_image_1.png"
    assert facts(answer)["attachments"] == [
        {
            "name": "find_image_1.png",
            "uri": f"artifact://{call.job.job_id}/find_image_1.png",
            "mimeType": "image/png",
            "size": len(PNG),
            "path": path,
        }
    ]
    assert facts(answer)["media_paths"] == [path]


def test_an_image_over_the_cap_is_a_link_to_its_file(call: Call) -> None:
    large = PNG + bytes(CAP)
    answer = call.answer(image(large, annotations=NOTES, _meta=META))
    (link,) = answer.content
    assert link["type"] == "resource_link"
    assert link["uri"] == f"artifact://{call.job.job_id}/find_image_1.png"
    assert (link["mimeType"], link["size"], link["annotations"]) == ("image/png", len(large), NOTES)
    assert f"GET /mcp/jobs/{call.job.job_id}/artifacts/find_image_1.png" in link["description"]
    assert call.file("find_image_1.png") == large
    assert facts(answer)["blocks"] == [{"index": 0, "_meta": META}]
    assert len(facts(answer)["attachments"]) == 1


@pytest.mark.parametrize(("more", "kind"), [(0, "image"), (1, "resource_link")])
def test_the_cap_is_the_last_size_that_goes_inline(more: int, kind: str, call: Call) -> None:
    data = PNG + bytes(CAP - len(PNG) + more)
    assert [block["type"] for block in call.answer(image(data)).content] == [kind]


def test_an_audio_is_stored_only_when_it_is_large(call: Call) -> None:
    block = {"type": "audio", "data": b64(WAV), "mimeType": "audio/wav", "annotations": NOTES}
    assert read(block).content == (AudioContent(data=b64(WAV), mime_type="audio/wav", annotations=NOTES),)
    assert call.answer(block).content == (block,)
    assert call.requests == 0
    (link,) = call.answer({**block, "data": b64(WAV + bytes(CAP))}).content
    assert (link["type"], link["name"]) == ("resource_link", "find_audio_1.wav")
    assert call.file("find_audio_1.wav") == WAV + bytes(CAP)


@pytest.mark.parametrize("declared", [None, "", "application/octet-stream", "text/html", 5])
def test_the_first_bytes_tell_the_type_of_an_image_that_declares_another(declared: Any, call: Call) -> None:
    block = {key: value for key, value in image(mimeType=declared).items() if value is not None}
    answer = call.answer(block)
    assert answer.content == (image(),)
    if declared is not None:
        assert facts(answer)["blocks"] == [{"index": 0, "mimeType": declared}]


def test_what_is_no_image_at_all_stays_what_it_says(call: Call) -> None:
    answer = call.answer(image(b"<html>", mimeType="text/html"))
    inner = {"uri": "toolbox://content/resource", "mimeType": "text/html", "blob": b64(b"<html>")}
    assert answer.content == ({"type": "resource", "resource": inner},)
    assert facts(answer)["blocks"] == [{"index": 0, "mimeType": "text/html", "type": "image"}]
    assert call.requests == 0


def test_a_text_resource_stays_one(call: Call) -> None:
    block = {
        **resource(text="hällo", mimeType="text/markdown", _meta=META),
        "annotations": NOTES,
        "_meta": {"b": 1},
    }
    (found,) = read(block).content
    assert found == BinaryContent(
        data="hällo".encode(),
        mime_type="text/markdown",
        uri="file:///docs/a.txt",
        form=BinaryForm.TEXT,
        annotations=NOTES,
        meta={"b": 1},
        resource_meta=META,
    )
    assert call.answer(block).content == (block,)
    assert call.answer(resource(text="")).content == (resource(text="", mimeType="text/plain"),)
    assert call.requests == 0


@pytest.mark.parametrize("character", ["x", "漢"])
def test_a_resource_text_is_cut_at_12000_characters_and_a_file_has_all(character: str, call: Call) -> None:
    text = character * 11_999 + "ab"
    answer = call.answer(resource(text=text))
    cut, link = answer.content
    assert cut["resource"]["text"] == text[:12_000] + "\n...[truncated]"
    assert cut["resource"]["uri"] == "file:///docs/a.txt"
    assert link["type"] == "resource_link"
    assert "All 12001 characters of file:///docs/a.txt" in link["description"]
    assert call.file(link["name"]) == text.encode()
    assert link["name"] == "a.txt"
    assert facts(answer)["attachments"][0]["source"] == "file:///docs/a.txt"


def test_a_resource_text_of_12000_characters_is_whole(call: Call) -> None:
    block = resource(text="漢" * 12_000, mimeType="text/plain")
    assert call.answer(block).content == (block,)
    assert call.requests == 0


def test_a_blob_stays_a_resource(call: Call) -> None:
    data = b"%PDF-1.7 x"
    block = {**resource(blob=b64(data), mimeType="application/pdf", _meta=META), "annotations": NOTES}
    assert read(block).content == (
        BinaryContent(
            data=data,
            mime_type="application/pdf",
            uri="file:///docs/a.txt",
            annotations=NOTES,
            resource_meta=META,
        ),
    )
    assert call.answer(block).content == (block,)
    assert call.answer(resource(blob="")).content == (resource(blob="", mimeType="application/octet-stream"),)
    assert call.answer(resource(blob=b64(data))).content[0]["resource"]["mimeType"] == "application/pdf"
    assert call.requests == 0


def test_a_large_blob_is_a_link_to_its_file(call: Call) -> None:
    data = bytes(range(256)) * 8
    answer = call.answer(
        {**resource(blob=b64(data), mimeType="application/zip", _meta=META), "_meta": {"b": 1}}
    )
    (link,) = answer.content
    assert (link["type"], link["name"], link["size"]) == ("resource_link", "a.txt.zip", 2048)
    assert call.file("a.txt.zip") == data
    assert facts(answer)["blocks"] == [
        {"index": 0, "_meta": {"b": 1}, "toolbox/resource": {"uri": "file:///docs/a.txt", "_meta": META}}
    ]


def test_an_image_resource_is_an_image_that_names_its_resource(call: Call) -> None:
    block = {**resource(uri="file:///shots/one.png", blob=b64(PNG), mimeType="image/png"), "annotations": NOTES}
    answer = call.answer(block)
    told = {"toolbox/resource": {"uri": "file:///shots/one.png"}}
    assert answer.content == ({**image(), "annotations": NOTES, "_meta": told},)
    assert call.file("one.png") == PNG
    assert facts(answer)["attachments"][0]["source"] == "file:///shots/one.png"
    # Also one whose type only its bytes tell, and one that goes elsewhere.
    assert call.answer(resource(blob=b64(PNG))).content[0]["type"] == "image"
    large = call.answer(resource(blob=b64(PNG + bytes(CAP)), mimeType="image/png"))
    assert large.content[0]["type"] == "resource_link"
    assert len(facts(large)["media_paths"]) == 1


@pytest.mark.parametrize("data", [{"blob": b64(SVG)}, {"text": SVG.decode()}])
def test_an_svg_resource_is_stored_and_stays_a_resource(data: dict[str, str], call: Call) -> None:
    block = resource(uri="file:///a.svg", mimeType="image/svg+xml", **data)
    answer = call.answer(block)
    assert answer.content == (block,)
    assert call.file("a.svg") == SVG
    assert len(facts(answer)["attachments"]) == 1


def test_a_resource_with_both_loses_neither(call: Call) -> None:
    text, blob = call.answer(resource(text="a", blob=b64(b"b"), mimeType="text/plain")).content
    assert (text["resource"]["text"], blob["resource"]["blob"]) == ("a", b64(b"b"))


def test_a_resource_with_nothing_but_an_address_is_a_link(call: Call) -> None:
    block = {**resource(mimeType="text/plain"), "annotations": NOTES}
    link = {"type": "resource_link", "uri": "file:///docs/a.txt", "name": "a.txt", "mimeType": "text/plain"}
    assert call.answer(block).content == ({**link, "annotations": NOTES},)
    (text,) = call.answer({"type": "resource", "resource": {"mimeType": "x/y"}}).content
    assert text == {"type": "text", "text": '{"type":"resource","resource":{"mimeType":"x/y"}}'}


@pytest.mark.parametrize("uri", [None, "", "relative/a.txt", "no scheme", 5])
def test_a_resource_without_a_usable_address_gets_one(uri: Any, call: Call) -> None:
    answer = call.answer({"type": "resource", "resource": {"uri": uri, "text": "a", "mimeType": "text/plain"}})
    inner = {"uri": "toolbox://content/text", "mimeType": "text/plain", "text": "a"}
    assert answer.content == ({"type": "resource", "resource": inner},)
    if isinstance(uri, str) and uri:
        assert facts(answer)["blocks"] == [{"index": 0, "uri": uri}]


def test_a_link_is_passed_on_and_not_fetched(call: Call) -> None:
    icons = [{"src": "https://example.org/i.png", "sizes": ["any"]}]
    block = {
        "type": "resource_link",
        "uri": "https://example.org/a.csv",
        "name": "a",
        "title": "A",
        "description": "All of a",
        "mimeType": "text/csv",
        "size": 12,
        "annotations": NOTES,
    }
    (found,) = read({**block, "icons": icons, "_meta": META}).content
    assert isinstance(found, BinaryContent)
    assert (found.form, found.data, found.size, found.icons) == (BinaryForm.LINK, b"", 12, icons)
    answer = call.answer({**block, "icons": icons, "_meta": META})
    assert answer.content == ({**block, "_meta": META},)
    # The host drops these, so they stand beside it too.
    assert sent(answer)["_meta"]["toolbox/upstream"]["blocks"] == [
        {"index": 0, "title": "A", "icons": icons, "_meta": META}
    ]
    assert call.requests == 0


@pytest.mark.parametrize("uri", ["https://example.org/b/a.csv", "artifact://x/a.csv", "urn:x:a", "custom:///a"])
def test_a_link_without_a_name_gets_one(uri: str, call: Call) -> None:
    (link,) = call.answer({"type": "resource_link", "uri": uri}).content
    assert link["uri"] == uri
    assert link["name"] in ("a.csv", "x:a", "a")


@pytest.mark.parametrize("uri", [None, "a.csv", 5, ""])
def test_a_link_that_leads_nowhere_is_its_json(uri: Any, call: Call) -> None:
    (text,) = call.answer({"type": "resource_link", "uri": uri, "name": "a"}).content
    assert text["type"] == "text"
    assert '"type":"resource_link"' in text["text"]


@pytest.mark.parametrize("size", [-1, 1.5, "12", True, 1 << 63])
def test_a_size_that_the_host_refuses_goes_beside_the_link(size: Any, call: Call) -> None:
    answer = call.answer({"type": "resource_link", "uri": "file:///a", "name": "a", "size": size})
    assert "size" not in answer.content[0]
    assert facts(answer)["blocks"] == [{"index": 0, "size": size}]


def test_an_unknown_type_with_data_is_a_resource(call: Call) -> None:
    answer = call.answer({"type": "video/3d", "data": b64(b"abc"), "mimeType": "video/mp4", "seconds": 5})
    inner = {"uri": "toolbox://content/video%2F3d", "mimeType": "video/mp4", "blob": b64(b"abc")}
    assert answer.content == ({"type": "resource", "resource": inner},)
    assert facts(answer)["blocks"] == [{"index": 0, "seconds": 5, "type": "video/3d"}]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "chart", "points": [1, 2], "_meta": {"a": 1}},
        {"type": "chart", "data": "not base64!", "mimeType": "x/y"},
        {"type": "call_tool_result", "content": "{}"},
        {"type": 5},
        {"type": None},
        {},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "image", "mimeType": "image/png"},
        {"type": "image", "data": {"a": 1}, "mimeType": "image/png"},
        {"type": "resource"},
        {"type": "resource", "resource": "file:///a"},
        5,
        None,
        [1],
    ],
)
def test_anything_else_is_its_json(item: Any, call: Call) -> None:
    import json

    (text,) = call.answer(item).content
    assert text["type"] == "text"
    assert json.loads(text["text"]) == item


def test_a_plain_text_is_a_text(call: Call) -> None:
    assert call.answer("just text").content == ({"type": "text", "text": "just text"},)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (image(b""), "[An image (image/png) was left out: it is empty]"),
        ({"type": "audio", "data": "", "mimeType": "a/b"}, "An audio recording (a/b) was left out: it is"),
        ({**image(), "data": "%%%"}, "its data is not base64]"),
        ({**image(), "data": "data:image/png;base64,QUJD"}, "its data is a data: URL, not plain base64]"),
        ({**image(), "data": "-_-_"}, "URL-safe alphabet"),
        ({**image(), "data": "QUJDR"}, "cut off, or has no padding"),
        (resource(blob="%%"), "[A resource (file:///docs/a.txt) was left out: its data is not base64]"),
    ],
)  # fmt: skip
def test_data_that_cannot_be_taken_is_told_of(block: Any, said: str, call: Call) -> None:
    before, text, after = call.answer(
        {"type": "text", "text": "a"}, block, {"type": "text", "text": "b"}
    ).content
    assert (before["text"], after["text"]) == ("a", "b")
    assert said in text["text"]


def test_white_space_in_base64_is_removed(call: Call) -> None:
    lines = "\n".join(b64(PNG)[start : start + 20] for start in range(0, len(b64(PNG)), 20))
    answer = call.answer({**image(), "data": f" {lines}\r\n"})
    assert answer.content == (image(),)


def test_order_is_kept(call: Call) -> None:
    texts = [{"type": "text", "text": name} for name in ("before", "between", "after")]
    blocks = [texts[0], image(), texts[1], image(PNG + bytes(CAP)), resource(text="r"), texts[2]]
    kinds = [block.get("text", block["type"]) for block in call.answer(*blocks).content]
    assert kinds == ["before", "image", "between", "resource_link", "resource", "after"]


@pytest.mark.parametrize(
    ("notes", "kept", "beside"),
    [
        ({"audience": ["user"], "extra": {"a": 1}}, {"audience": ["user"]}, {"extra": {"a": 1}}),
        ({"audience": "user"}, None, {"audience": "user"}),
        ({"audience": ["robot"]}, None, {"audience": ["robot"]}),
        ({"priority": 5, "lastModified": "x"}, {"lastModified": "x"}, {"priority": 5}),
        ({"priority": True}, None, {"priority": True}),
        ({"priority": 1, "audience": None}, {"priority": 1}, None),
        ("odd", None, "odd"),
    ],
)
def test_annotations_that_the_host_refuses_go_beside(notes: Any, kept: Any, beside: Any, call: Call) -> None:
    answer = call.answer({"type": "text", "text": "a", "annotations": notes})
    assert answer.content[0].get("annotations") == kept
    found = facts(answer).get("blocks", [{}])[0].get("annotations")
    assert found == beside


class TestWholeResults:
    def test_what_is_known_of_it(self, call: Call) -> None:
        result = read({"type": "text", "text": "a"})
        assert result.metadata == {"server": "docs", "tool": "find", "durationMs": 12.346, "requestId": "7"}
        assert facts(call.place(result)) == result.metadata

    @pytest.mark.parametrize("content", [{"content": []}, {"content": None}, {}])
    def test_empty_content_stays_empty(self, content: dict[str, Any], call: Call) -> None:
        from shared.upstream.content import from_wire

        result = from_wire(content, server="docs", tool="find", duration_ms=1)
        assert (result.success, result.content) == (True, ())
        assert call.place(result).content == ()

    def test_structured_content_is_kept(self, call: Call) -> None:
        data = {"rows": [{"a": 1.5, "b": None}], "漢": "字"}
        answer = call.answer({"type": "text", "text": "a"}, structuredContent=data)
        assert answer.structured == data
        assert sent(answer)["structuredContent"] == data
        assert sent(answer)["content"] == [{"type": "text", "text": "a"}]

    @pytest.mark.parametrize("data", [[1, 2], "text", 5, True])
    def test_structured_content_that_is_no_object_is_wrapped(self, data: Any, call: Call) -> None:
        answer = call.answer({"type": "text", "text": "a"}, structuredContent=data)
        assert answer.structured == {"result": data}

    def test_an_error_keeps_its_blocks_and_its_text_is_known(self, call: Call) -> None:
        blocks = [{"type": "text", "text": "first"}, image(), {"type": "text", "text": "second"}]
        result = read(*blocks, isError=True, structuredContent={"code": 5})
        assert not result.success
        assert result.error is not None
        assert (result.error.message, result.error.server) == ("first\nsecond", "docs")
        answer = call.place(result)
        assert (answer.is_error, answer.content, answer.structured) == (True, tuple(blocks), {"code": 5})
        assert answer.meta["toolbox/errorCode"] == "tool_error"

    def test_an_error_without_a_text_says_whose_it_is(self, call: Call) -> None:
        answer = call.answer(isError=True)
        assert answer.is_error
        assert (
            answer.text == "The tool 'find' of the server 'docs' reported an error and said nothing about it."
        )

    def test_the_results_own_meta_is_kept_apart_from_ours(self, call: Call) -> None:
        theirs = {"toolbox/jobId": "of the upstream", "io.modelcontextprotocol/related-task": {"taskId": "x"}}
        answer = call.answer({"type": "text", "text": "a"}, _meta={"vendor/key": [1], **theirs})
        assert answer.meta["vendor/key"] == [1]
        assert facts(answer)["_meta"] == theirs
        assert set(answer.meta) == {"vendor/key", "toolbox/upstream"}
