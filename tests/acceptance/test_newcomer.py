"""What the README says after its two commands, step by step: the tool, the client's configuration, the job."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.acceptance.conftest import MCP_HEADERS, ROOT, App, start_app
from tests.support import documents

pytestmark = pytest.mark.acceptance

README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    """The app in a folder of its own, with the README's tool where the README puts it."""
    folder = tmp_path_factory.mktemp("newcomer")
    clone = folder / "clone"
    clone.mkdir()
    for name in ("function_app.py", "host.json"):
        shutil.copy(ROOT / name, clone)
    (clone / "shared").symlink_to(ROOT / "shared")
    shutil.copytree(ROOT / "tools", clone / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (place,) = re.findall(r"for instance `(tools/\w+/__init__\.py)`", README)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (clone / place).parent.mkdir()
    (clone / place).write_text(code, "utf-8")
    # The queue's jobs are taken by any app on this storage, and another one does not have the tool.
    running = start_app(folder, new_storage(), app_dir=clone)
    yield running
    assert running.stop() == 0


def test_the_tool_is_there_with_its_schemas(newcomer: App) -> None:
    (listed,) = [tool for tool in newcomer.rpc("tools/list")["result"]["tools"] if tool["name"] == "word_count"]
    assert listed["description"].startswith("Counts how often each word occurs in a text.")
    assert listed["inputSchema"]["properties"]["text"]["type"] == "string"


@pytest.mark.parametrize("execution_mode", ["inline", "headless"])
def test_the_tool_answers_in_the_call_and_as_a_job(newcomer: App, execution_mode: str) -> None:
    answer = newcomer.call("word_count", {"text": "a b A"}, {"executionMode": execution_mode})
    assert answer["structuredContent"] == {"a": 2, "b": 1}


def test_the_job_has_the_tools_log(newcomer: App) -> None:
    accepted = newcomer.call("word_count", {"text": "a b"}, {"executionMode": "headless", "mode": "one-way"})
    body = newcomer.ended(accepted["structuredContent"]["jobId"])
    assert body["status"] == "completed"
    assert "2 words" in [line["message"] for line in body["logs"]]


def test_the_clients_configuration_leads_to_the_endpoint(newcomer: App) -> None:
    (block,) = [block for block in documents.blocks(ROOT / "README.md") if block.language == "json"]
    (server,) = json.loads(block.text)["servers"].values()
    assert server["type"] == "http"
    url = urlsplit(server["url"])._replace(netloc=f"127.0.0.1:{newcomer.port}").geturl()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx.post(url, json=body, headers=MCP_HEADERS, trust_env=False, timeout=30)
    assert answer.status_code == 200
    assert "word_count" in answer.text


def test_the_page_is_where_the_readme_says(newcomer: App) -> None:
    (address,) = re.findall(r"^Open `(http://[^`]+)` for the \[page\]", README, re.MULTILINE)
    answer = newcomer.http.get(urlsplit(address).path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
