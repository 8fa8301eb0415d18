"""stdio: what servers write, odd or far too much, and what is made of it.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shared.errors import MCPProtocolError
from shared.upstream.connection.limits import LOG_TAIL_BYTES
from tests.integration.upstream.children import connection, said
from tests.support.upstream import events, until

KEY = "sk-live-5f4dcc3b5aa765d6"


def test_bytes_that_are_no_utf8() -> None:
    """Row 20: one bad line does not end the session."""

    async def main() -> None:
        for handler in ("strict", "replace", "ignore"):
            async with connection("bad-utf8", encoding_error_handler=handler) as bad:
                assert said(await bad.call_tool("work")) == "1"
                assert "skipped a line that is no message" in bad.log()

    asyncio.run(main())


def test_banner_on_stdout() -> None:
    """Row 21: skipped, with a remark."""

    async def main() -> None:
        async with connection("banner") as banner:
            assert said(await banner.call_tool("work")) == "1"
            assert "Server starting on stdio" in banner.log()

    asyncio.run(main())


def test_five_megabytes_of_stderr_with_a_secret() -> None:
    """Rows 9, 10: drained, so the server gets on; bounded; the secret is in no line of it."""

    async def main() -> None:
        async with connection("stderr-flood", env={"API_KEY": KEY}) as flood:
            assert said(await flood.call_tool("work")) == "1"
            log = flood.log()
            assert len(log.encode()) <= LOG_TAIL_BYTES
            assert "last [redacted]" in log
            assert KEY not in log
            assert "a line of 300000 bytes is left out" in log

    asyncio.run(main())


def test_errors_of_a_server_hold_no_secret_of_its_configuration() -> None:
    async def main() -> None:
        async with connection("refuses", env={"API_KEY": KEY}) as refuses:
            with pytest.raises(MCPProtocolError, match=r"no: \[redacted\] \(code -32011\)") as error:
                await refuses.call_tool("work")
            assert error.value.error_code == -32011

    asyncio.run(main())


def test_all_pages_are_read() -> None:
    """HoloDeck SC-008: every tool is discovered."""

    async def main() -> None:
        async with connection("pages") as pages:
            assert [tool.name for tool in pages.tools] == ["t0", "t1", "t2", "t3", "t4"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "text"), [("endless-cursor", "more than 200 pages"), ("cursor-loop", "in a circle")]
)
def test_cursors_that_never_end(mode: str, text: str) -> None:
    async def main() -> None:
        with pytest.raises(MCPProtocolError, match=text):
            await connection(mode).connect()

    asyncio.run(main())


def test_tool_that_is_listed_twice() -> None:
    async def main() -> None:
        async with connection("twice") as twice:
            assert [(tool.name, tool.title) for tool in twice.tools] == [("work", "first")]
            assert "the tool 'work' is listed twice" in twice.log()
            assert "1 tools without a usable name" in twice.log()

    asyncio.run(main())


def test_list_changed_during_a_call_and_in_a_burst(tmp_path: Path) -> None:
    """Row 7: the call is answered, then the list is new. Row 8: 20 notifications, at most two more listings."""

    async def main() -> None:
        log = tmp_path / "log"
        async with connection("notify-in-call", log) as busy:
            assert busy.revision == 1
            assert said(await busy.call_tool("work", timeout=3)) == "1"
            await until(lambda: busy.revision == 2)
            assert [tool.name for tool in busy.tools] == ["work", "late"]
            await asyncio.sleep(0.3)
            assert len([event for event in events(log) if "list" in event]) <= 3

    asyncio.run(main())


def test_server_that_notifies_at_each_listing(tmp_path: Path) -> None:
    """Row 8: no loop, but ever longer pauses."""

    async def main() -> None:
        log = tmp_path / "log"
        async with connection("notify-in-list", log) as loop:
            await asyncio.sleep(1)
            assert 2 <= len([event for event in events(log) if "list" in event]) <= 6
            assert said(await loop.call_tool("work")) == "1"
            assert loop.revision == 1

    asyncio.run(main())


def test_image_of_100_megabytes() -> None:
    """Refused as it arrives, by the call that it answers; the connection lives on."""

    async def main() -> None:
        async with connection("huge") as huge:
            with pytest.raises(MCPProtocolError, match=r"the answer is 9\d MiB; at most 64 MiB are taken"):
                await huge.call_tool("work", timeout=60)
            assert [tool.name for tool in await huge.list_tools()] == ["work", "late"]

    asyncio.run(main())


def test_sampling_request_of_a_server_is_refused() -> None:
    async def main() -> None:
        async with connection("asks") as asks:
            assert "Sampling not supported" in said(await asks.call_tool("work", timeout=5))

    asyncio.run(main())


def test_block_of_a_kind_that_is_not_known_does_not_lose_the_answer() -> None:
    async def main() -> None:
        async with connection("unknown-block") as unknown:
            result = await unknown.call_tool("work")
            assert any(getattr(block, "text", "") == "kept" for block in result.content)

    asyncio.run(main())


def test_lists_that_are_not_wanted_are_not_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        async with connection("", log, load_tools=False) as quiet:
            assert quiet.tools == ()
            assert said(await quiet.call_tool("work")) == "1"
            assert not [event for event in events(log) if "list" in event]

    asyncio.run(main())
