"""Whatever may go wrong where a tool's texts are shown."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shared.tool import Context, McpResourceLinkContent, McpTextContent, McpToolResponse, tool

HIT = (
    '<img src=x onerror="window.hit=1"><script>window.hit=2</script>'
    '"\'><svg onload=window.hit=3>{{hit}}<a href="javascript:window.hit=4">click</a>'
)
BAD_LINKS = (
    "javascript:window.hit=5",
    "data:text/html,<script>window.hit=6</script>",
    "vbscript:x",
    "file:///etc/passwd",
)


@tool(
    title=f"Nasty {HIT}",
    execution_modes=("inline", "headless"),
    modes=("one-way", "two-way"),
    default_mode="two-way",
)
def nasty(
    context: Context,
    words: Annotated[str, Field(description=f"Said back. {HIT}")] = HIT,
    how: Annotated[
        str,
        Field(
            description="answer, links or raise", json_schema_extra={"enum": ["answer", "links", "raise", HIT]}
        ),
    ] = "answer",
) -> Any:
    """Says it back. <img src=x onerror="window.hit=1"><script>window.hit=2</script>"""
    context.logger.info(words)
    context.update_progress(50, words)
    if how == "raise":
        raise RuntimeError(words)
    if how == "links":
        links = tuple(McpResourceLinkContent(uri=uri, name=words) for uri in BAD_LINKS)
        return McpToolResponse(content=(McpTextContent(words), *links))
    return {words: [words, {"__proto__": words}]}
