"""MCP clients that nobody here wrote: the official SDK and the Inspector."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import mcp
import pytest

from tests.acceptance.conftest import ROOT, App

pytestmark = pytest.mark.acceptance

INSPECTOR = ROOT / "node_modules" / ".bin" / "mcp-inspector"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_lists_and_calls(app: App, mode: Any) -> None:
    """The client checks structured content against the listed schema itself, the acceptance included."""

    async def main() -> None:
        async with mcp.Client(app.endpoint, mode=mode) as client:
            listed = await client.list_tools()
            assert "csv_profile" in [tool.name for tool in listed.tools]
            for envelope in (
                {},
                {"executionMode": "headless"},
                {"mode": "one-way"},
                {"executionMode": "headless", "mode": "one-way"},
            ):
                result = await client.call_tool("csv_profile", {"csv": "a,b\n1,2\n", "__pptb": envelope})
                assert not result.is_error
                assert result.structured_content is not None
                one_way = envelope.get("mode") == "one-way"
                assert ("jobId" in result.structured_content) is one_way
                assert ("row_count" in result.structured_content) is not one_way
            refused = await client.call_tool("csv_profile", {"csv": 5})
            assert refused.is_error

    asyncio.run(main())


def inspect(app: App, *arguments: str) -> Any:
    command = ["node", str(INSPECTOR), "--cli", app.endpoint, "--transport", "http", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls(app: App) -> None:
    listed = inspect(app, "--method", "tools/list")
    assert "csv_profile" in [tool["name"] for tool in listed["tools"]]
    called = inspect(
        app, "--method", "tools/call", "--tool-name", "csv_profile", "--tool-arg", "csv=a,b\n1,2\n"
    )
    assert called["structuredContent"]["row_count"] == 1
