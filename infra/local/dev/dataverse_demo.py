"""The call that `dev.py run --dataverse` adds: a query of the stand-in as a job, and the file that it makes."""

from __future__ import annotations

from typing import Any, Final

from infra.local.dev import client, demo
from infra.local.dev.console import DevError, headline, say
from infra.local.dev.dataverse_settings import NAME

TOOL: Final = "dataverse-query"
TABLE: Final = "account"
#: Rows of one page: so few that the job reads several.
PAGE: Final = 60
#: Lines of the file that are shown.
LINES: Final = 6
_ARGUMENTS: Final = {
    "entityName": TABLE,
    "columns": ["accountnumber", "name", "address1_city", "telephone1"],
    "pageSize": PAGE,
}
#: A `tools/call` to go on with, in the call itself.
EXAMPLE: Final[dict[str, Any]] = {
    "name": TOOL,
    "arguments": {
        "odata": "accounts?$select=name,revenue&$filter=creditonhold eq false&$orderby=revenue desc",
        "pageSize": 5,
        "__pptb": {"connectionName": NAME},
    },
}


def make_call(app: demo.App) -> None:
    """Query the stand-in as a job; print rows, pages, and the beginning of the file. Raises `DevError`."""
    headline(f"Headless call, two-way: {TOOL} of table {TABLE} over connection {NAME}, as a job")
    envelope = {"executionMode": "headless", "mode": "two-way", "connectionName": NAME}
    result = demo.call(app, TOOL, {**_ARGUMENTS, "__pptb": envelope})
    job_id = demo.job_of(result, TOOL)
    if not demo.read_job(app, job_id):
        return  # without a token nothing is read over HTTP
    found = result.get("structuredContent") or {}
    artifact = found.get("artifact")
    if not artifact:
        raise DevError(f"The call of {TOOL} came back without a file: the job was not done in time.")
    say(f"rows      {found['rowCount']}")
    url = app.url + artifact["url"]
    say(f"file      {url} ({artifact['size']:,} bytes)")

    headline(f"The file's first lines, read from GET {artifact['url']}")
    lines = client.get_text(url, app.job_headers, demo.CALL_SECONDS).splitlines()
    for line in lines[:LINES]:
        say(line)
    if len(lines) > LINES:
        say(f"… and {len(lines) - LINES} more")
