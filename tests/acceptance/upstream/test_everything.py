"""What npm's own reference servers offer comes through whole: inline, and as jobs with live progress."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import mcp
import pytest

from tests.acceptance.conftest import TOKEN, App, wait_until
from tests.acceptance.upstream.calls import names, published, slow, text
from tests.support.upstream_app import Folder

pytestmark = pytest.mark.acceptance

JOB = {"executionMode": "headless", "mode": "one-way"}
ANNOTATIONS = {"priority": 0.7, "audience": ["user"]}


def test_every_tool_is_published_as_the_server_lists_it(upstream: App, folder: Folder) -> None:
    entry = published(upstream, folder, "everything.echo")
    assert entry["_meta"]["toolbox/title"] == "Echo Tool"
    assert entry["description"] == "Echoes back the input string"
    assert entry["_meta"]["toolbox/annotations"]["readOnlyHint"] is True
    assert entry["inputSchema"]["required"] == ["message"]
    assert set(entry["inputSchema"]["properties"]) == {"message", "__pptb"}
    origin = entry["_meta"]["toolbox/upstream"]
    # Whose projects have it is nobody else's business.
    assert origin == {"server": "everything", "tool": "echo", "qualifiedName": "everything.echo"}
    every = [name for name in names(folder) if name.startswith("everything.")]
    assert len(every) > 10
    for name in every:
        published(upstream, folder, name)


@pytest.mark.parametrize("envelope", [None, {"executionMode": "headless", "mode": "two-way"}])
def test_text_image_and_annotations_stay_in_their_order(upstream: App, folder: Folder, envelope: Any) -> None:
    echoed = upstream.call(names(folder)["everything.echo"], {"message": "é😀日本"}, envelope)
    assert echoed["content"] == [{"type": "text", "text": "Echo: é😀日本"}]

    image = upstream.call(names(folder)["everything.get-tiny-image"], {}, envelope)
    assert [block["type"] for block in image["content"]] == ["text", "image", "text"]
    picture = image["content"][1]
    assert picture["mimeType"] == "image/png"
    data = base64.b64decode(picture["data"])
    assert data.startswith(b"\x89PNG")
    about = image["_meta"]["toolbox/upstream"]
    assert (about["server"], about["tool"]) == ("everything", "get-tiny-image")
    (file,) = about["attachments"]
    assert about["media_paths"] == [file["path"]]
    assert (file["mimeType"], file["size"]) == ("image/png", len(data))
    fetched = upstream.http.get(file["path"], headers={"X-MCP-Auth-Token": TOKEN})
    assert (fetched.status_code, fetched.content) == (200, data)
    assert fetched.headers["content-type"] == "image/png"
    assert upstream.http.get(file["path"]).status_code == 401

    given = {"messageType": "success", "includeImage": True}
    message = upstream.call(names(folder)["everything.get-annotated-message"], given, envelope)
    said, annotated = message["content"]
    assert said == {"type": "text", "text": "Operation completed successfully", "annotations": ANNOTATIONS}
    assert annotated["type"] == "image"
    assert annotated["annotations"] == {"priority": 0.5, "audience": ["user"]}


@pytest.mark.parametrize("envelope", [None, {"executionMode": "headless", "mode": "two-way"}])
def test_links_and_resources(upstream: App, folder: Folder, envelope: Any) -> None:
    links = upstream.call(names(folder)["everything.get-resource-links"], {"count": 3}, envelope)
    assert [block["type"] for block in links["content"]] == ["text", *["resource_link"] * 3]
    assert links["content"][1]["uri"].startswith("demo://resource/dynamic/")
    assert links["content"][1]["name"]

    given = {"resourceType": "Text", "resourceId": 1}
    whole = upstream.call(names(folder)["everything.get-resource-reference"], given, envelope)
    (resource,) = [block["resource"] for block in whole["content"] if block["type"] == "resource"]
    assert resource["uri"] == "demo://resource/dynamic/text/1"
    assert "Resource 1" in resource["text"]

    given = {"resourceType": "Blob", "resourceId": 2}
    blob = upstream.call(names(folder)["everything.get-resource-reference"], given, envelope)
    (resource,) = [block["resource"] for block in blob["content"] if block["type"] == "resource"]
    assert b"Resource 2" in base64.b64decode(resource["blob"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_takes_structured_content_and_the_acceptance(
    upstream: App, folder: Folder, mode: Any
) -> None:
    """The client checks what it gets against the published schema."""
    name = names(folder)["everything.get-structured-content"]

    async def main() -> None:
        async with mcp.Client(upstream.endpoint, mode=mode) as client:
            await client.list_tools()
            for envelope in ({}, {"executionMode": "headless"}):
                result = await client.call_tool(name, {"location": "Chicago", "__pptb": envelope})
                assert not result.is_error
                weather = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
                assert result.structured_content == weather
                assert json.loads(result.content[0].text) == weather  # type: ignore[union-attr]
            accepted = await client.call_tool(name, {"location": "Chicago", "__pptb": JOB})
            assert accepted.structured_content is not None
            assert accepted.structured_content["jobId"]
            refused = await client.call_tool(name, {"location": "Rome"})
            assert refused.is_error
            assert "$.location" in refused.content[0].text  # type: ignore[union-attr]

    asyncio.run(main())


def test_a_long_operation_tells_its_progress_while_it_runs(upstream: App, folder: Folder) -> None:
    name = names(folder)["everything.trigger-long-running-operation"]
    accepted = upstream.call(name, {"duration": 2, "steps": 8}, JOB)["structuredContent"]
    seen: list[float] = []

    def probe() -> Any:
        body = upstream.job(accepted["jobId"]).json()
        if body["status"] == "in_progress":
            seen.append(body["progress"]["percent"])
        return body if body["status"] in ("completed", "failed") else None

    body = wait_until(probe)
    assert body["status"] == "completed"
    assert "Long running operation completed" in text(body)
    between = {percent for percent in seen if 0 < percent < 100}
    assert between, "no progress was seen while it ran"
    assert seen == sorted(seen)


def test_inline_nobody_hears_of_progress(upstream: App, folder: Folder) -> None:
    name = names(folder)["everything.trigger-long-running-operation"]
    result = upstream.call(name, {"duration": 0.2, "steps": 4})
    assert result["content"] == [
        {"type": "text", "text": "Long running operation completed. Duration: 0.2 seconds, Steps: 4."}
    ]


def test_what_a_server_logs_during_a_job_is_the_jobs_log(upstream: App, folder: Folder) -> None:
    accepted = upstream.call(names(folder)["plain.say"], {}, JOB)["structuredContent"]
    body = upstream.ended(accepted["jobId"])
    assert [(line["level"], line["message"]) for line in body["logs"] if "said" in line["message"]] == [
        ("warn", "[plain] as it was said")
    ]


def test_a_job_has_its_own_time(upstream: App, folder: Folder) -> None:
    accepted = upstream.call(names(folder)["plain.hang"], {}, {**JOB, "timeoutMs": 1500})["structuredContent"]
    body = upstream.ended(accepted["jobId"])
    assert (body["status"], body["errorCode"]) == ("failed", "timeout")
    assert slow("plain", "hang", 1.5) in body["error"]


def test_prompts_are_published_and_forwarded(upstream: App, folder: Folder) -> None:
    prompts = names(folder, "prompts")
    listed = {prompt["name"]: prompt for prompt in upstream.rpc("prompts/list")["result"]["prompts"]}
    arguments = {one["name"]: one for one in listed[prompts["everything.args-prompt"]]["arguments"]}
    assert arguments["city"]["required"] is True
    simple = upstream.rpc("prompts/get", name=prompts["everything.simple-prompt"], arguments={})["result"]
    assert simple["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "This is a simple prompt without arguments."}}
    ]
    given = {"city": "Oslo", "state": "Norway"}
    filled = upstream.rpc("prompts/get", name=prompts["everything.args-prompt"], arguments=given)["result"]
    assert "Oslo, Norway" in filled["messages"][0]["content"]["text"]
    asked = upstream.rpc("prompts/get", name=prompts["plain.ask"], arguments={"what": "why"})["result"]
    assert asked["messages"][0]["content"]["text"] == 'ask: {"what": "why"}'
    resource = {"resourceType": "Text", "resourceId": "1"}
    whole = upstream.rpc("prompts/get", name=prompts["everything.resource-prompt"], arguments=resource)[
        "result"
    ]
    assert [message["content"]["type"] for message in whole["messages"]] == ["text", "resource"]


def test_files_as_data_and_as_errors(upstream: App, folder: Folder, files: Path) -> None:
    entry = published(upstream, folder, "files.read_text_file")
    promised = [part for part in entry["outputSchema"]["anyOf"] if "content" in part.get("properties", {})]
    assert promised
    read = upstream.call(names(folder)["files.read_text_file"], {"path": str(files / "note.txt")})
    assert read["structuredContent"] == {"content": "a note\nof two lines\n"}
    listed = upstream.call(
        names(folder)["files.list_directory"], {"path": str(files)}, {"executionMode": "headless"}
    )
    assert "[FILE] note.txt" in listed["structuredContent"]["content"]
    outside = upstream.call(names(folder)["files.read_text_file"], {"path": "/etc/hostname"})
    assert outside["isError"] is True
    assert "Access denied" in outside["content"][0]["text"]
