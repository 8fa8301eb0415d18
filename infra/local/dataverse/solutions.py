"""Solution import: the package is opened for its name and version; none of its components is made."""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
from typing import TYPE_CHECKING, Any

from infra.local.dataverse.errors import ApiError, bad_payload
from infra.local.dataverse.markup import XmlError, parse_xml
from infra.local.dataverse.values import as_guid, new_guid, now

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context

_MAX_MANIFEST = 1_000_000


def import_solution(context: Context, body: dict[str, Any]) -> None:
    """ImportSolution: done when it answers; `importjobs(ImportJobId)` tells the outcome. Raises ApiError."""
    _import(context, body)


def import_solution_async(context: Context, body: dict[str, Any]) -> dict[str, Any]:
    """ImportSolutionAsync: the same, at once, with an async operation that has completed. Raises ApiError."""
    job_id = _import(context, body)
    fields = {"name": "Import Solution", "statecode": 3, "statuscode": 30}
    operation = context.environment.insert("asyncoperation", fields)
    return {"AsyncOperationId": operation, "ImportJobKey": job_id}


def _import(context: Context, body: dict[str, Any]) -> str:
    for name in ("OverwriteUnmanagedCustomizations", "PublishWorkflows", "CustomizationFile"):
        if name not in body:
            raise bad_payload("ImportSolution", f"The parameter '{name}' is missing.")
    name, label, version, managed = _manifest(body["CustomizationFile"])
    job_id = as_guid(str(body.get("ImportJobId", ""))) or new_guid()
    moment = now()
    environment = context.environment
    with environment.store.transaction():
        environment.insert(
            "importjob",
            {"solutionname": name, "progress": 100, "startedon": moment, "completedon": moment,
             "data": f'<importexportxml succeeded="true"><solutionManifest uniquename="{name}" '
                     'result="success" /></importexportxml>'},
            job_id,
        )  # fmt: skip
        solutions = environment.catalogue.table("solution")
        fields = {"uniquename": name, "friendlyname": label, "version": version, "ismanaged": managed,
                  "isvisible": True, "installedon": moment}  # fmt: skip
        found = environment.store.by_key(solutions, {"uniquename": name})
        if found is None:
            environment.store.create(solutions, fields)
        else:
            environment.store.update(solutions, found, fields)
    return job_id


def _manifest(text: Any) -> tuple[str, str, str, bool]:
    """Unique name, name, version and managed of a package in base64. Raises ApiError (400)."""
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(str(text), validate=True))) as package:
            info = package.getinfo("solution.xml")
            if info.file_size > _MAX_MANIFEST:
                raise ValueError("the manifest is too large")
            manifest = parse_xml(package.read(info)).find("SolutionManifest")
    except (binascii.Error, zipfile.BadZipFile, KeyError, XmlError, ValueError) as error:
        message = f"The import solution file is invalid or is missing its solution.xml. ({error})"
        raise ApiError(400, "0x80048060", message) from None
    name = None if manifest is None else manifest.findtext("UniqueName")
    if manifest is None or not name:
        raise ApiError(400, "0x80048060", "The solution.xml of the import solution file has no UniqueName.")
    label = manifest.find("LocalizedNames/LocalizedName")
    description = name if label is None else label.get("description", name)
    version = manifest.findtext("Version") or "1.0"
    return name, description, version, manifest.findtext("Managed") == "1"
