"""How long a server may take: what its entry says counts, not what the app says for all others."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import MCPTimeoutError
from shared.upstream.settings import UpstreamSettings
from tests.support.links import Fake, plain

#: An app in which calls have next to no time.
HASTY = UpstreamSettings(tool_timeout=0.05, tool_timeout_given=True, grace=0.1, cleanup_timeout=0.1)


async def unhurried(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if method == "tools/call":
        await asyncio.sleep(0.3)
    return await plain(method, params)


def test_a_servers_own_time_wins_over_the_apps() -> None:
    """Report 1: no smaller number cuts it."""

    async def main() -> None:
        async with Fake(unhurried).connection(HASTY, tool_timeout=30) as patient:
            assert (await patient.call_tool("work")).success
        async with Fake(unhurried).connection(HASTY) as hasty:
            with pytest.raises(MCPTimeoutError, match=r"0\.05 s"):
                await hasty.call_tool("work")

    asyncio.run(main())
