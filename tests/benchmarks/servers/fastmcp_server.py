"""A FastMCP server with the tool `echo`: stateless. Argument: the port."""

from __future__ import annotations

import sys

from fastmcp import FastMCP

server = FastMCP("fastmcp")


@server.tool
async def echo(text: str) -> str:
    """Gives back what it was given."""
    return text


if __name__ == "__main__":
    server.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        path="/mcp",
        stateless_http=True,
        show_banner=False,
        log_level="ERROR",
    )
