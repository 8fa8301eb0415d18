"""`dataverseAPI`'s methods for solutions and for the service's own description, on the wire to the stand-in."""

from __future__ import annotations

import io
import json
import uuid
import xml.etree.ElementTree as ET
import zipfile
from base64 import b64encode
from typing import Any, Final

import pytest

from infra.local.dataverse.schema import stable_id
from shared.apis import dataverseAPI
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import Case, Cases, Place, Plan, Sent

CASES: Final = Cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("getSolutions")
def two_columns(place: Place) -> Plan:
    def read(found: Any) -> None:
        versions = {one.uniquename: one.version for one in found.value}
        assert versions["samplecore"] == "1.0.0.0"

    return Plan((["uniquename", "version"],), (Sent("GET", "solutions?$select=uniquename,version"),), read)


@CASES.of("deploySolution")
def a_zip_file(place: Place) -> Plan:
    job = stable_id("import", "bytes", place.name)
    content = _package("sample_bytes", "2.1.0.0")
    options = {"importJobId": job, "publishWorkflows": True, "convertToManaged": False}
    body = {
        "PublishWorkflows": True, "OverwriteUnmanagedCustomizations": False, "ConvertToManaged": False,
        "CustomizationFile": b64encode(content).decode(), "ImportJobId": job,
    }  # fmt: skip

    def imported(found: Any) -> None:
        assert found == {"ImportJobId": job}
        assert (place.environment.record("importjob", job) or {})["solutionname"] == "sample_bytes"

    return Plan((content, options), (Sent("POST", "ImportSolution", body),), imported)


@CASES.of("deploySolution")
def base64_without_options(place: Place) -> Plan:
    content = b64encode(_package("sample_text", "1.0")).decode()
    jobs: list[str] = []

    def carried(text: str) -> None:
        body = json.loads(text)
        jobs.append(body.pop("ImportJobId"))
        assert str(uuid.UUID(jobs[0])) == jobs[0]
        assert body == {
            "PublishWorkflows": False, "OverwriteUnmanagedCustomizations": False, "CustomizationFile": content,
        }  # fmt: skip

    def imported(found: Any) -> None:
        assert found == {"ImportJobId": jobs[0]}
        assert place.environment.record("importjob", jobs[0]) is not None

    return Plan((content,), (Sent("POST", "ImportSolution", carried),), imported)


@CASES.of("getImportJobStatus")
def of_a_job_that_is_done(place: Place) -> Plan:
    job = place.environment.insert("importjob", {"solutionname": "s", "progress": 42.5, "data": "<r/>"})

    def read(found: Any) -> None:
        assert (found.importjobid, found.progress, found.data) == (job, 42.5, "<r/>")

    return Plan((job,), (Sent("GET", f"importjobs({job})"),), read)


@CASES.of("publishCustomizations")
def of_one_table(place: Place) -> Plan:
    xml = "<importexportxml><entities><entity>account</entity></entities></importexportxml>"

    def published(found: Any) -> None:
        assert found is None
        assert place.environment.published[-1] == xml

    return Plan(("account",), (Sent("POST", "PublishXml", {"ParameterXml": xml}),), published)


@CASES.of("publishCustomizations")
def of_everything(place: Place) -> Plan:
    def published(found: Any) -> None:
        assert found is None
        assert place.environment.published[-1] == "*"

    return Plan((), (Sent("POST", "PublishAllXml"),), published)


@CASES.of("getCSDLDocument")
def the_whole_document(place: Place) -> Plan:
    def read(found: Any) -> None:
        assert isinstance(found, str)
        sets = {node.get("Name") for node in ET.fromstring(found).iter() if node.tag.endswith("}EntitySet")}
        assert {"accounts", "sample_portfolio"} <= sets

    return Plan((), (Sent("GET", "$metadata", None, {"accept": "application/xml"}),), read)


def _package(name: str, version: str) -> bytes:
    """A solution's zip file, with its manifest only."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        manifest = f"<UniqueName>{name}</UniqueName><Version>{version}</Version><Managed>0</Managed>"
        text = f"<ImportExportXml><SolutionManifest>{manifest}</SolutionManifest></ImportExportXml>"
        archive.writestr("solution.xml", text)
    return data.getvalue()
