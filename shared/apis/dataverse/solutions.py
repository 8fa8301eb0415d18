"""Solutions: listed, imported, published; and the service's own description."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.apis.dataverse.call import Call
from shared.apis.dataverse.names import guid, logical_name, select, shown
from shared.apis.record import Record
from shared.errors import ToolError
from shared.text import shape_of

_OPTIONS: Final = {
    "publishWorkflows": "PublishWorkflows",
    "overwriteUnmanagedCustomizations": "OverwriteUnmanagedCustomizations",
    "skipProductUpdateDependencies": "SkipProductUpdateDependencies",
    "convertToManaged": "ConvertToManaged",
}


async def get_solutions(call: Call, select_columns: Iterable[str]) -> Record:
    """`{"value": [solution, …]}` with these columns; at least one."""
    query = select(select_columns)
    if not query:
        raise ToolError("getSolutions: name at least one column, such as uniquename")
    found: Record = await call.json("GET", f"solutions{query}")
    return found


async def deploy_solution(
    call: Call,
    solution_content: str | bytes | bytearray | memoryview,
    options: Mapping[str, Any] | None = None,
) -> Record:
    """Imports a solution: `{"ImportJobId": guid}`, once Dataverse is done with it.

    `solution_content`: the zip file's bytes, or their Base64 text. `options`: importJobId (a new GUID when left
    out), publishWorkflows and overwriteUnmanagedCustomizations (False when left out),
    skipProductUpdateDependencies, convertToManaged. Not sent again when its answer is lost: look for its import
    job with an importJobId of your own.
    """
    given = dict(options or {})
    job = guid(given.pop("importJobId", None) or uuid.uuid4(), "importJobId")
    body: dict[str, Any] = {
        "PublishWorkflows": False,
        "OverwriteUnmanagedCustomizations": False,
        "CustomizationFile": _base64(solution_content),
        "ImportJobId": job,
    }
    for name, value in given.items():
        if name not in _OPTIONS:
            raise ToolError(
                f"deploySolution: unknown option {shown(name)}; known are importJobId, {', '.join(_OPTIONS)}"
            )
        if value is None:
            continue
        if not isinstance(value, bool):
            raise ToolError(f"deploySolution: {name} must be True or False, not {shown(value)}")
        body[_OPTIONS[name]] = value
    await call.send("POST", "ImportSolution", body=body, read_timeout=None)
    return Record(ImportJobId=job)


async def get_import_job_status(call: Call, import_job_id: object) -> Record:
    """The import job: `progress` (percent), `startedon`, `completedon`, `data` (its XML report), …"""
    found: Record = await call.json("GET", f"importjobs({guid(import_job_id, 'importJobId')})")
    return found


async def publish_customizations(call: Call, table_logical_name: str | None = None) -> None:
    """Publishes one table's changes, or all changes. May take minutes."""
    if table_logical_name is None or not str(table_logical_name).strip():
        await call.send("POST", "PublishAllXml", read_timeout=None)
        return
    name = logical_name(table_logical_name)
    xml = f"<importexportxml><entities><entity>{name}</entity></entities></importexportxml>"
    await call.send("POST", "PublishXml", body={"ParameterXml": xml}, read_timeout=None)


async def get_csdl_document(call: Call) -> str:
    """The service's own description: CSDL, an XML text of several megabytes."""
    return (await call.send("GET", "$metadata", headers={"accept": "application/xml"})).text


def _base64(content: object) -> str:
    if isinstance(content, str) and content.strip():
        return content.strip()
    if isinstance(content, bytes | bytearray | memoryview) and len(content):
        return b64encode(content).decode()
    raise ToolError(
        "deploySolution: solutionContent must be the zip file's bytes, or their Base64 text, "
        f"not {shape_of(content)}"
    )
