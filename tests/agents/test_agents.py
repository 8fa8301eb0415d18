"""MCP clients and agents that nobody here wrote call tools of a running app, each in an environment of its own.

`run.py` of each folder lists the tools, runs one in the call and as a job, calls it with a wrong argument, and
asks for an image; it prints what the client, or the agent's model, was given. No model is behind the agents:
what they say is scripted.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from infra.local.azurite import Azurite
from infra.local.dev import paths
from tests.acceptance.conftest import App, start_app

pytestmark = pytest.mark.agents

FIXTURE = paths.REPO / "tests" / "apps" / "conformance"
#: Seconds; each takes two or three, most of it for imports.
DEADLINE: Final = 60
#: What these packages would send home, or look for.
QUIET: Final = {
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
INLINE: Final = {"product": 42, "execution_mode": "inline"}
HEADLESS: Final = {"product": 42, "execution_mode": "headless"}
REFUSAL: Final = "Input validation failed: $.a: expected integer, got string"
TEXT: Final = "This is the content of the static text resource."

type Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def fixture_app(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    running = start_app(tmp_path_factory.mktemp("agents"), azurite.connection_string, app_dir=FIXTURE)
    yield running
    assert running.stop() == 0


@pytest.fixture
def run(fixture_app: App) -> Run:
    """Runs a folder's script in its environment; what it printed."""

    def start(name: str) -> Any:
        python = paths.AGENT_VENVS / name / "bin" / "python"
        if not python.exists():
            pytest.skip("its environment is made by `python3 dev.py test --agents`")
        command = [str(python), str(paths.AGENTS / name / "run.py"), fixture_app.endpoint]
        # Proxies are not for loopback addresses.
        environment = {**os.environ, **QUIET, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert {"multiply", "test_image_content"} <= set(seen["tools"])
        return seen

    return start


def test_fastmcp(run: Run) -> None:
    seen = run("fastmcp")
    assert seen["inline"] == INLINE
    assert seen["headless"] == HEADLESS
    assert seen["error"] == REFUSAL
    assert seen["image"] == "image/png"
    assert seen["resource"] == TEXT
    assert seen["prompt"] == "Prompt with arguments: arg1='one', arg2='two'"


def test_pydantic_ai(run: Run) -> None:
    """The model is told what was wrong and may try again."""
    seen = run("pydantic_ai")
    assert seen["error"] == REFUSAL
    assert seen["error_outcome"] == "retried"
    assert seen["inline"] == INLINE
    assert seen["headless"] == HEADLESS
    assert seen["image"] == "image/png"
    assert seen["answer"] == "done"
    # Arguments made up from the published schema are accepted.
    assert set(seen["made_up"]) == set(INLINE)


def test_openai_agents(run: Run) -> None:
    seen = run("openai_agents")
    refused, inline, headless, image = seen["outputs"]
    assert refused[0]["text"] == REFUSAL
    assert json.loads(inline) == INLINE
    assert json.loads(headless) == HEADLESS
    assert image[0]["type"] == "input_image"
    assert image[0]["image_url"].startswith("data:image/png;base64,")
    assert seen["answer"] == "done"


def test_langchain(run: Run) -> None:
    """On mcp 1.x."""
    seen = run("langchain")
    assert seen["inline"] == INLINE
    assert seen["headless"] == HEADLESS
    assert seen["error"][0]["text"] == REFUSAL
    assert seen["status"] == "error"
    assert seen["image"][0]["mime_type"] == "image/png"
    assert seen["resource"] == TEXT


def test_every_client_has_a_test() -> None:
    folders = {path.parent.name for path in paths.AGENTS.glob("*/requirements.txt")}
    assert folders
    assert {f"test_{name}" for name in folders} <= set(globals())
