"""Every kind of part that a result may have."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from typing import Any

from shared.tool import (
    Context,
    McpAudioContent,
    McpImageContent,
    McpResourceContent,
    McpTextContent,
    McpToolResponse,
    tool,
)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(size: int = 96) -> bytes:
    rows = b"".join(
        b"\0" + b"".join(bytes((40 + x * 2, 110 + y, 140)) for x in range(size)) for y in range(size)
    )
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", zlib.compress(rows))
        + _chunk(b"IEND", b"")
    )


def _sound() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 1, 8000, 0, "NONE", "not compressed"))
        file.writeframes(bytes(800))
    return out.getvalue()


@tool(
    title="Report",
    execution_modes=("inline", "headless"),
    modes=("one-way", "two-way"),
    default_mode="two-way",
)
def report(context: Context, link: str = "https://example.org/report") -> McpToolResponse:
    """Answers with data, text, an image, a sound, links and a file."""
    context.logger.info("writing the report")
    file = context.artifacts.write("report.csv", "name,amount\nparts,31\n")
    page = context.artifacts.write("page.html", "<script>parent.hit = 1; alert(1)</script>")
    data: dict[str, Any] = {
        "title": "Quarter",
        "rows": [{"name": "parts", "amount": 31, "paid": True, "note": None}],
        "total": 31.5,
    }
    return McpToolResponse(
        content=(
            McpTextContent("All is well.\nSecond line."),
            McpImageContent(base64.b64encode(_png()).decode(), "image/png"),
            McpAudioContent(base64.b64encode(_sound()).decode(), "audio/wav"),
            file,
            page,
            McpResourceContent(uri=link, text="the report's source", mime_type="text/plain"),
        ),
        structured_content=data,
    )
