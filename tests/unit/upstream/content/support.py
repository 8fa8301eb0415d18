"""Answers of upstream tools, read and placed, with what a client would get checked on the way."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from typing import Any

from mcp.types import CallToolResult

from infra.local.host.mcp_result import tool_result
from infra.local.host.values import Kind, Value
from shared.errors import ArtifactError
from shared.jobs import artifacts
from shared.jobs.artifacts import JobArtifacts
from shared.jobs.model import Job
from shared.jobs.testing import MemoryJobStore
from shared.tool.context import Artifacts, Context
from shared.tool.result import ToolResult, envelope
from shared.tool.spec import ExecutionMode, Mode
from shared.upstream.content import MCPToolResult, from_wire, to_tool_result
from tests.unit.jobs.test_keys_and_rows import a_job

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(100))
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(60)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
#: The cap on an item in these tests.
CAP = 1_000


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass(frozen=True)
class Settings:
    media_bytes: int = CAP


@dataclass
class Call:
    """A running call with its files, and what it sends."""

    store: MemoryJobStore = field(default_factory=MemoryJobStore)
    job: Job = field(default_factory=lambda: a_job(attempt=1, status="in_progress"))
    artifacts: Artifacts | None = None
    deadline: float | None = None

    def context(self) -> Context:
        files = self.artifacts or JobArtifacts(self.job, self.store, lambda: None)
        return Context(
            tool_id="t",
            tool_name="t",
            invocation_mode=Mode.TWO_WAY,
            execution_mode=ExecutionMode.INLINE,
            correlation_id="mcp-x",
            timeout_ms=1000,
            owner="default",
            artifacts=files,
            deadline=self.deadline,
        )

    def answer(self, *content: Any, cap: int = CAP, **others: Any) -> ToolResult:
        return self.place(read(*content, **others), cap=cap)

    def place(self, result: MCPToolResult, *, cap: int = CAP, context: bool = True) -> ToolResult:
        given = self.context() if context else None
        answer = asyncio.run(to_tool_result(result, given, Settings(cap)))
        sent(answer)
        return answer

    def file(self, name: str) -> bytes | None:
        found = artifacts.read(self.job, name, self.store)
        return None if found is None else found.data

    @property
    def requests(self) -> int:
        return self.store.requests.total()


class Broken:
    """Storage that is away. Counts who asks."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.asked = 0

    def write(self, name: str, data: object, mime_type: str | None = None) -> Any:
        self.asked += 1
        raise self.error


def refusing() -> Broken:
    return Broken(ArtifactError("no room"))


def read(*content: Any, **others: Any) -> MCPToolResult:
    """As a server on the wire would have sent it."""
    wire = json.loads(json.dumps({"content": list(content), **others}))
    return from_wire(wire, server="docs", tool="find", duration_ms=12.3456, request_id="7")


def sent(answer: ToolResult) -> dict[str, Any]:
    """What the host sends of an answer. Fails for what the host, or the SDK's client, refuses."""
    result = tool_result(Value(Kind.STRING, envelope(answer)), use_result_schema=True)
    CallToolResult.model_validate(result)
    assert len(result["content"]) >= len(answer.content)
    return result


def facts(answer: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = answer.meta["toolbox/upstream"]
    return found
