"""Reports of faults in other MCP clients, each from the configuration's text to the answer of a real server.

Numbers are those of `tests/unit/upstream/counterparts/reports.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.upstream.config.loading import load
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.lock import Lock
from shared.upstream.settings import UpstreamSettings
from shared.upstream.sync import sync
from tests.integration.upstream.children import connection, said
from tests.integration.upstream.web import plain
from tests.support.upstream import ODD, Answer, Seen, http_server

#: Every name by which entries ask for streamable HTTP.
STREAMABLE = (
    "http", "streamable-http", "streamableHttp", "streamable_http", "http-stream", "streaming-http",
    "http-streaming",
)  # fmt: skip


PYTHON = Path(sys.executable).name


def settings(root: Path, **servers: Any) -> UpstreamSettings:
    """`mcp_servers.json`, in which the tests' Python may be started."""
    text = json.dumps({"mcpServers": servers})
    return UpstreamSettings(root=root, servers_text=text, commands=(PYTHON,))


def only(found: UpstreamSettings, **environ: str) -> ServerConfig:
    loaded = load(found, environ=environ)
    assert loaded.faults == ()
    (config,) = loaded.servers.values()
    return config


def test_bad_servers_take_no_tools_of_others_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report 13: one that cannot be started, and one that answers 401."""
    programs = tmp_path / "bin"  # in which there is no uvx
    programs.mkdir()
    (programs / PYTHON).symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(programs))

    async def main() -> None:
        async def unauthorized(_: Seen) -> Answer | None:
            return 401, {}, b""

        async with http_server(unauthorized) as web:
            found = settings(
                tmp_path,
                good={"command": PYTHON, "args": [str(ODD)]},
                gone={"command": "uvx", "args": ["mcp-server-time"]},
                closed={"url": web.url},
            )
            done = await sync(found, Lock())
        assert [(tool.server, tool.tool) for tool in done.lock.tools] == [("good", "work")]
        told = {fault.server: fault.reason for fault in done.faults}
        assert told.keys() == {"gone", "closed"}
        assert "'uvx' is not found" in told["gone"]
        assert "HTTP 401" in told["closed"]

    asyncio.run(main())


@pytest.mark.parametrize("kind", STREAMABLE)
def test_every_name_of_streamable_http_finds_a_server_that_takes_posts_only(tmp_path: Path, kind: str) -> None:
    """Report 15: a server that answers 405 to GET lists its tools under each of the names."""

    async def main() -> None:
        async with http_server(plain) as web:
            config = only(settings(tmp_path, web={"type": kind, "url": web.url}))
            async with ServerConnection(config, UpstreamSettings()) as found:
                assert [tool.name for tool in found.tools] == ["work"]
            assert web.seen[0].method == "POST"

    asyncio.run(main())


def test_any_text_goes_to_a_server_in_python_and_back() -> None:
    """Report 23: in UTF-8, though the server's machine is set to know ASCII only."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    async def main() -> None:
        async with connection("", env=ascii_only) as odd:
            assert said(await odd.call_tool("work", {"text": "é😀日本"})) == "é😀日本"

    asyncio.run(main())


def test_a_variable_in_a_header_is_sent_as_its_value_or_not_at_all(tmp_path: Path) -> None:
    """Report 28: never as it is written."""

    async def main() -> None:
        async with http_server(plain) as web:
            found = settings(tmp_path, web={"url": web.url, "headers": {"Authorization": "Bearer ${T}"}})
            async with ServerConnection(only(found, T="abc"), UpstreamSettings()) as opened:
                await opened.call_tool("work")
            assert {seen.headers.get("authorization") for seen in web.seen} == {"Bearer abc"}
            web.seen.clear()
            unset = load(found, environ={})
            assert unset.servers == {}
            (fault,) = unset.faults
            assert (fault.name, fault.field) == ("web", "T")
            assert "headers.Authorization" in fault.message
            assert web.seen == []

    asyncio.run(main())
