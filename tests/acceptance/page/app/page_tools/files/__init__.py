"""A result that names a file of its own, and addresses that only look like one."""

from __future__ import annotations

from typing import Any

from shared.tool import Context, McpResourceLinkContent, McpTextContent, McpToolResponse, tool

#: A job of nobody's.
OTHER = "01a229b6-94ec-75fd-a4a6-1becea00c572"


@tool(title="Files", execution_modes=("headless",), modes=("two-way",))
def files(context: Context) -> McpToolResponse:
    """Leaves `rows.csv` and `notes.txt`, and names what is not its own."""
    kept = context.artifacts.write("rows.csv", "name,amount\nparts,31\n")
    linked = context.artifacts.write("notes.txt", "all is well")
    own = f"/mcp/jobs/{context.job_id}/artifacts"
    data: dict[str, Any] = {
        "rowCount": 1,
        "artifact": {
            "uri": kept.uri,
            "url": f"{own}/rows.csv",
            "name": "rows.csv",
            "mimeType": "text/csv",
            "size": kept.size,
        },
        "linked": linked.uri,
        "odd": [
            f"artifact://{OTHER}/rows.csv",
            f"/mcp/jobs/{OTHER}/artifacts/rows.csv",
            f"https://example.org{own}/away.csv",
            f"//example.org{own}/away.csv",
            f"{own}/../../../../mcp/tools",
            f"{own}/..",
            f"{own}/%2e%2e",
            f"{own}/rows.csv?and=more",
            f"{own}/rows.csv#part",
            f"{own}/deep/rows.csv",
            f"see {own}/rows.csv",
            f"/mcp/jobs/{context.job_id}/cancel",
            f"{own}/",
            {f"{own}/key.csv": True},
        ],
    }
    links = (linked, McpResourceLinkContent(uri=f"artifact://{OTHER}/rows.csv", name="another job's"))
    return McpToolResponse(content=(McpTextContent("Done."), *links), structured_content=data)
