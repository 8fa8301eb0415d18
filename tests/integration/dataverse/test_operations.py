"""Functions, actions, bulk operations and solution import."""

from __future__ import annotations

import base64
import io
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.integration.dataverse.support import NOBODY

if TYPE_CHECKING:
    from tests.integration.dataverse.support import Api

CRM = "Microsoft.Dynamics.CRM."


def test_who_am_i(api: Api) -> None:
    found = api.get("WhoAmI")
    assert found["UserId"] == api.user
    assert api.get(f"systemusers({api.user})?$select=fullname")["fullname"].startswith("# 00000000")
    assert api.get(f"businessunits({found['BusinessUnitId']})")["name"] == "dev"
    assert api.get("WhoAmI()") == found
    assert api.error("POST", "WhoAmI")[0] == 404


def test_parameters_of_functions(api: Api) -> None:
    values = {"@p0": "'it''s 100%/&'", "@p1": "5", "@p2": "2024-01-02T03:04:05Z", "@p3": "true", "@p4": "null",
              "@p5": f'{{"@odata.id":"accounts({NOBODY})"}}', "@p6": f"{CRM}Kind'One'"}  # fmt: skip
    names = ",".join(f"P{name[2:]}={name}" for name in values)
    query = "&".join(f"{name}={quote(value)}" for name, value in values.items())
    expected = {"P0": "it's 100%/&", "P1": 5, "P2": "2024-01-02T03:04:05Z", "P3": True, "P4": None,
                "P5": {"@odata.id": f"accounts({NOBODY})"}, "P6": "One"}  # fmt: skip
    assert api.get(f"sample_Echo({names})?{query}")["Parameters"] == expected
    assert api.get("sample_Echo(A='x',B=-1.5)")["Parameters"] == {"A": "x", "B": -1.5}
    bound = api.get(f"accounts({api.account()})/{CRM}sample_Describe(P0=@p0)?@p0='x'")
    assert (bound["EntityLogicalName"], bound["Id"], bound["Parameters"]) == (
        "account",
        api.account(),
        {"P0": "x"},
    )
    assert api.error("GET", "sample_Echo(P0=@p0)")[0] == 400
    assert api.error("GET", "sample_Echo(P0=nope)")[0] == 400
    assert api.error("GET", "Nope()")[:2] == (404, "0x8006088a")


def test_actions(api: Api) -> None:
    assert api.send("POST", "sample_EchoAction", {"a": [1]}).body["Parameters"] == {"a": [1]}
    bound = api.send("POST", f"accounts({api.account()})/{CRM}sample_EchoAction", {"a": 1}).body
    assert (bound["Id"], bound["Parameters"]) == (api.account(), {"a": 1})
    assert api.error("POST", "sample_Fail", {"Message": "no"}) == (400, "0x80040265", "no")
    assert api.error("GET", "sample_EchoAction")[0] == 404
    assert api.send("POST", "PublishAllXml").status == 204
    assert api.send("POST", "PublishXml", {"ParameterXml": "<importexportxml/>"}).status == 204
    assert api.environment.published == ["*", "<importexportxml/>"]
    assert api.error("POST", "PublishXml", {})[0] == 400


def test_organization_and_counts(api: Api) -> None:
    detail = api.get(
        f"RetrieveCurrentOrganization(AccessType=@p0)?@p0={quote(CRM)}EndpointAccessType'Default'"
    )["Detail"]
    assert detail["UniqueName"] == "dev"
    assert api.error("GET", "RetrieveCurrentOrganization()")[0] == 400
    counts = api.get(f"RetrieveTotalRecordCount(EntityNames=@p0)?@p0={quote('["account"]')}")
    assert counts["EntityRecordCountCollection"]["Values"] == [12]
    assert api.get("RetrieveVersion")["Version"].startswith("9.2")


def test_bulk(api: Api) -> None:
    kind = {"@odata.type": f"{CRM}account"}
    made = api.send(
        "POST", f"accounts/{CRM}CreateMultiple", {"Targets": [{**kind, "name": "a"}, {**kind, "name": "b"}]}
    )
    ids = made.body["Ids"]
    assert [api.get(f"accounts({one})")["name"] for one in ids] == ["a", "b"]
    changes = [{**kind, "accountid": one, "name": "c"} for one in ids]
    assert api.send("POST", f"accounts/{CRM}UpdateMultiple", {"Targets": changes}).status == 204
    assert {api.get(f"accounts({one})")["name"] for one in ids} == {"c"}
    bad = [{**changes[0], "name": "d"}, {**kind, "accountid": NOBODY, "name": "d"}]
    assert api.error("POST", f"accounts/{CRM}UpdateMultiple", {"Targets": bad})[0] == 404
    assert api.get(f"accounts({ids[0]})")["name"] == "c"
    mixed = api.send("POST", f"accounts/{CRM}UpsertMultiple", {"Targets": bad}).body["Results"]
    assert [one["RecordCreated"] for one in mixed] == [False, True]
    assert api.send("POST", f"accounts/{CRM}DeleteMultiple", {"Targets": bad}).status == 204


@pytest.mark.parametrize(
    "targets",
    [None, [], [{"name": "no type"}], [{"@odata.type": f"{CRM}contact"}], [{"@odata.type": f"{CRM}account"}]],
)
def test_bulk_refuses(api: Api, targets: Any) -> None:
    assert api.error("POST", f"accounts/{CRM}UpdateMultiple", {"Targets": targets})[:2] == (400, "0x80048d19")


def package(version: str = "1.2") -> str:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        manifest = f"<UniqueName>new_sol</UniqueName><Version>{version}</Version><Managed>1</Managed>"
        archive.writestr(
            "solution.xml",
            f"<ImportExportXml><SolutionManifest>{manifest}</SolutionManifest></ImportExportXml>",
        )
    return base64.b64encode(data.getvalue()).decode()


def test_solution_import(api: Api) -> None:
    body = {"CustomizationFile": package(), "PublishWorkflows": False,
            "OverwriteUnmanagedCustomizations": False,
            "ImportJobId": NOBODY}  # fmt: skip
    assert api.send("POST", "ImportSolution", body).status == 204
    job = api.get(f"importjobs({NOBODY})")
    assert (job["solutionname"], job["progress"]) == ("new_sol", 100)
    again = api.send(
        "POST", "ImportSolutionAsync", {**body, "CustomizationFile": package("2.0"), "ImportJobId": None}
    ).body
    assert api.get(f"asyncoperations({again['AsyncOperationId']})")["statuscode"] == 30
    assert api.get(f"importjobs({again['ImportJobKey']})")["progress"] == 100
    found = api.get("solutions?$select=uniquename,version&$filter=uniquename eq 'new_sol'")["value"]
    assert [one["version"] for one in found] == ["2.0"]
    assert api.error("POST", "ImportSolution", {**body, "CustomizationFile": "bm8="})[:2] == (400, "0x80048060")
    assert api.error("POST", "ImportSolution", {})[0] == 400
