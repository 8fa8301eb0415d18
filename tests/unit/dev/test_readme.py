"""The README's own examples."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import demo, paths
from shared.tool.discovery import find_tools

if TYPE_CHECKING:
    from pathlib import Path

_README = (paths.REPO / "README.md").read_text("utf-8")


def test_first_commands_are_the_two() -> None:
    commands = re.findall(r"^(python3 dev\.py .*?)$", _README, re.MULTILINE)
    assert commands[:2] == ["python3 dev.py run", "python3 dev.py test"]


def test_tool_example_is_a_tool_with_both_execution_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (name,) = re.findall(r"for instance `tools/(\w+)/__init__\.py`", _README)
    (code,) = re.findall(r"```python\n(.*?)```", _README, re.DOTALL)
    package = tmp_path / "readme_tools" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = find_tools(tmp_path / "readme_tools")
    assert not found.faults
    assert list(found.tools) == [name]
    assert set(found.tools[name].spec.rules.execution_modes) == {"inline", "headless"}


def test_curl_example_is_a_call_of_the_demo_tool() -> None:
    call, job = re.findall(r"^(curl (?:.*\\\n|.*\n(?! *```))*.*)\n```", _README, re.MULTILINE)
    words = shlex.split(call)
    message = json.loads(words[words.index("-d") + 1])
    assert message["method"] == "tools/call"
    assert message["params"]["name"] == demo.TOOL
    assert words[2].endswith(demo.MCP_PATH)
    assert "X-MCP-Auth-Token: TOKEN" in shlex.split(job)


def test_relative_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^):#]+)\)", (paths.REPO / name).read_text("utf-8"))
        assert all((paths.REPO / link).exists() for link in links), links


def test_it_says_what_was_not_run() -> None:
    assert re.search(r"`func start` and a deployment to Azure were not run in CI", _README)
