"""What tests of stdio servers share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.upstream.connection.connection import ServerConnection
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import events, odd

SETTINGS = UpstreamSettings()


def said(result: Any) -> str:
    return str(result.content[0].text)


def connection(mode: str = "", log: Path | None = None, **fields: Any) -> ServerConnection:
    return ServerConnection(odd(mode, log, **fields), SETTINGS)


def pid_of(log: Path) -> int:
    return int(next(event["started"] for event in events(log) if "started" in event))
