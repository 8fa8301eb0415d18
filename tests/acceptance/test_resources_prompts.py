"""Resources and prompts through the running app: the built-in ones, and those that the documentation shows."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import Iterator
from typing import Any

import mcp
import pytest

from infra.local.azurite import Azurite
from tests.acceptance.conftest import OTHER_TOKEN, ROOT, App, start_app
from tests.unit.tool.documented import write_examples

pytestmark = pytest.mark.acceptance

HIDDEN = {"code": -32603, "message": "An error occurred."}
BROKEN = """
from shared.tool import ToolError, prompt, resource


@resource(uri="broken://{how}")
def broken(how: str) -> str:
    '''Fails.'''
    if how == "kindly":
        raise ToolError("sentinel of a kind failure")
    raise ValueError("sentinel of a failure")


@prompt
def broken_prompt() -> str:
    '''Fails.'''
    raise ValueError("sentinel of a prompt")


@resource(uri="toolbox://tools/{other}")
def usurper(other: str) -> str:
    '''Wants what is built in.'''
    return other
"""


@pytest.fixture(scope="module")
def documented(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The same app with the tools of the documentation instead of its own."""
    folder = tmp_path_factory.mktemp("documented")
    app_dir = folder / "app"
    app_dir.mkdir()
    for name in ("function_app.py", "host.json"):
        shutil.copy(ROOT / name, app_dir / name)
    (app_dir / "shared").symlink_to(ROOT / "shared", target_is_directory=True)
    write_examples("resources-and-prompts.md", app_dir / "tools")
    (app_dir / "tools" / "broken").mkdir()
    (app_dir / "tools" / "broken" / "__init__.py").write_text(BROKEN)
    running = start_app(folder, azurite.connection_string, "--only-triggers", "http,mcp", app_dir=app_dir)
    yield running
    assert running.stop() == 0


def read(app: App, uri: str, **headers: str) -> Any:
    """The one content of a resource, or the error object."""
    answer = app.rpc("resources/read", headers, uri=uri)
    if "error" in answer:
        return answer["error"]
    (content,) = answer["result"]["contents"]
    return content


def get(app: App, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """A prompt's result, or the error object."""
    given: dict[str, Any] = {} if arguments is None else {"arguments": arguments}
    answer = app.rpc("prompts/get", name=name, **given)
    return answer.get("result") or answer["error"]


class TestBuiltIn:
    def test_they_are_listed(self, app: App) -> None:
        listed = app.rpc("resources/list")["result"]["resources"]
        assert ("toolbox://tools", "text/markdown") in [(entry["uri"], entry["mimeType"]) for entry in listed]
        templates = app.rpc("resources/templates/list")["result"]["resourceTemplates"]
        assert "toolbox://tools/{name}" in [entry["uriTemplate"] for entry in templates]
        prompts = {entry["name"]: entry for entry in app.rpc("prompts/list")["result"]["prompts"]}
        prompt = prompts["job_polling"]
        assert prompt["title"] == "Run a tool as a job"
        assert [(item["name"], item["required"]) for item in prompt["arguments"]] == [("tool", False)]

    def test_the_tools_are_documented(self, app: App) -> None:
        every = read(app, "toolbox://tools")
        assert (every["uri"], every["mimeType"]) == ("toolbox://tools", "text/markdown")
        listed = [tool["name"] for tool in app.rpc("tools/list")["result"]["tools"]]
        assert [line[3:] for line in every["text"].splitlines() if line.startswith("## ")] == sorted(
            listed, key=str.lower
        )
        one = read(app, "toolbox://tools/csv_profile")
        assert one["text"] in every["text"]
        assert "- `csv` (string, required): " in one["text"]
        assert read(app, "toolbox://tools/nothing") == HIDDEN

    def test_an_agent_that_does_what_the_prompt_says_gets_a_job_done(self, app: App) -> None:
        (message,) = get(app, "job_polling", {"tool": "csv_profile"})["messages"]
        said = message["content"]["text"]
        shown = json.loads("{" + said[said.index('"__pptb"') : said.index("}`") + 1] + "}")
        accepted = app.call("csv_profile", {"csv": "a,b\n1,2\n", **shown})["structuredContent"]
        assert accepted["status"] == "accepted"
        path = accepted["statusUrl"].removeprefix(f"/mcp/jobs/{accepted['jobId']}")
        assert app.job(accepted["jobId"], path=path).status_code == 200
        assert app.ended(accepted["jobId"])["result"]["row_count"] == 1

    def test_a_wrong_argument_is_answered_in_words(self, app: App) -> None:
        assert get(app, "job_polling")["messages"][0]["content"]["text"].startswith("Run a tool that has")
        for arguments, said in (
            ({"tool": "other"}, "There is no tool 'other'. Known tools: "),
            ({"tool": 5}, "Prompt 'job_polling': $.tool: expected string, got integer"),
            ({"toll": "x"}, "Prompt 'job_polling': $: unknown argument 'toll'; did you mean 'tool'?"),
        ):
            (message,) = get(app, "job_polling", arguments)["messages"]
            assert message["role"] == "user"
            assert message["content"]["text"].startswith(said)

    def test_a_wrong_token_is_refused_not_downgraded(self, app: App) -> None:
        assert read(app, "toolbox://tools", **{"X-MCP-Auth-Token": "wrong"}) == HIDDEN
        assert "text" in read(app, "toolbox://tools", **{"X-MCP-Auth-Token": OTHER_TOKEN})


class TestDocumented:
    def test_lists(self, documented: App) -> None:
        listed = documented.rpc("resources/list")["result"]["resources"]
        by_uri = {entry["uri"]: entry for entry in listed}
        assert by_uri.keys() >= {"handbook://chapters", "handbook://cover", "toolbox://tools"}
        assert "handbook://chapters/{name}" not in by_uri
        assert by_uri["handbook://cover"] == {
            "uri": "handbook://cover",
            "name": "cover",
            "title": "The cover",
            "description": "A picture of one pixel.",
        }
        templates = documented.rpc("resources/templates/list")["result"]["resourceTemplates"]
        assert {entry["uriTemplate"] for entry in templates} >= {
            "broken://{how}",
            "handbook://chapters/{name}",
            "handbook://{language}/licence",
            "toolbox://tools/{name}",
        }
        prompts = {entry["name"]: entry for entry in documented.rpc("prompts/list")["result"]["prompts"]}
        assert prompts.keys() >= {"broken_prompt", "interview", "job_polling", "review"}
        assert prompts["review"]["arguments"] == [
            {"name": "code", "description": "The code to look at.", "required": True},
            {"name": "language", "description": "", "required": False},
        ]

    @pytest.mark.parametrize(
        ("uri", "content"),
        [
            ("handbook://chapters", {"mimeType": "application/json", "text": '["jobs","tools"]'}),
            (
                "handbook://chapters/tools",
                {"mimeType": "text/markdown", "text": "# Tools\n\nA tool is a function."},
            ),
            ("handbook://chapters/t%6Fols", {"mimeType": "text/markdown"}),
            ("handbook://en/licence", {"mimeType": "text/html", "text": "MIT"}),
            ("handbook://de/licence", {"mimeType": "text/plain", "text": "MIT"}),
        ],
    )
    def test_texts(self, documented: App, uri: str, content: dict[str, str]) -> None:
        answer = read(documented, uri)
        assert answer == {"text": answer["text"], "uri": uri, **content}

    def test_a_blob(self, documented: App) -> None:
        answer = read(documented, "handbook://cover")
        assert base64.b64decode(answer.pop("blob")).startswith(b"GIF89a")
        assert answer == {"uri": "handbook://cover", "mimeType": "image/gif"}

    def test_what_cannot_be_read(self, documented: App) -> None:
        unknown = {"code": -32602, "message": "Unknown resource: 'handbook://other'"}
        assert read(documented, "handbook://other") == unknown
        for uri in (
            "handbook://chapters/none",
            "handbook://chapters/a%2Fb",
            "broken://badly",
            "broken://kindly",
        ):
            assert read(documented, uri) == HIDDEN
        log = documented.log.read_text()
        for reason in (
            "there is no chapter 'none'",
            "must be one path segment",
            "ValueError: sentinel of a failure",
        ):
            assert reason in log

    def test_messages(self, documented: App) -> None:
        assert get(documented, "review", {"code": "x = 1", "language": "Rust"}) == {
            "messages": [
                {
                    "role": "user",
                    "content": {
                        "type": "text",
                        "text": "Review this Rust code. Say what is wrong before what is nice.\n\nx = 1",
                    },
                }
            ]
        }
        talk = get(documented, "interview")
        assert talk["description"] == "Begins an interview."
        assert [message["role"] for message in talk["messages"]] == ["user", "assistant"]

    def test_what_is_no_prompt(self, documented: App) -> None:
        missing = get(documented, "review")
        assert missing["code"] == -32602
        assert missing["message"].endswith("Please provide: code")
        assert get(documented, "other") == {"code": -32602, "message": "Unknown prompt: 'other'"}
        assert get(documented, "broken_prompt") == HIDDEN

    def test_what_is_built_in_cannot_be_taken(self, documented: App) -> None:
        assert read(documented, "toolbox://tools/review") == HIDDEN
        assert "its resource 'usurper' has the uri of one in 'the app itself'" in documented.log.read_text()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_reads_and_asks(documented: App, mode: Any) -> None:
    async def main() -> None:
        async with mcp.Client(documented.endpoint, mode=mode) as client:
            resources = (await client.list_resources()).resources
            assert "handbook://chapters" in [str(entry.uri) for entry in resources]
            templates = (await client.list_resource_templates()).resource_templates
            assert "handbook://chapters/{name}" in [entry.uri_template for entry in templates]
            (text,) = (await client.read_resource("handbook://chapters/jobs")).contents
            assert getattr(text, "text", "").startswith("# Jobs")
            (blob,) = (await client.read_resource("handbook://cover")).contents
            assert base64.b64decode(getattr(blob, "blob", "")).startswith(b"GIF89a")
            with pytest.raises(mcp.MCPError, match="Unknown resource"):
                await client.read_resource("handbook://other")
            prompts = (await client.list_prompts()).prompts
            assert {"job_polling", "review", "interview"} <= {entry.name for entry in prompts}
            talk = await client.get_prompt("interview", {"topic": "tests"})
            assert [message.role for message in talk.messages] == ["user", "assistant"]
            assert "tests" in getattr(talk.messages[0].content, "text", "")
            with pytest.raises(mcp.MCPError, match="Please provide: code"):
                await client.get_prompt("review", {})

    asyncio.run(main())
