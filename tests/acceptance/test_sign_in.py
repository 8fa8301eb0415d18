"""An app behind the platform's sign-in (TOOLBOX_TRUST_EASYAUTH): who signed in owns what they made, alone.

The header is written here as the platform writes it; that the platform does so was not verified on Azure.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.conftest import OTHER_TOKEN, TOKEN, App, start_app

pytestmark = pytest.mark.acceptance

TENANT = "72f988bf-0000-4444-8888-2d7cd011db47"
ANN, BEN = "b9a1c0de-1111-4222-8333-9c9c9c9c9c9c", "c0ffee00-1111-4222-8333-9c9c9c9c9c9c"
CSV = {"csv": "a,b\n1,2\n"}
ONE_WAY = {"executionMode": "headless", "mode": "one-way"}


def signed_in(person: str) -> dict[str, str]:
    claims = [{"typ": "tid", "val": TENANT}, {"typ": "oid", "val": person}, {"typ": "name", "val": "Somebody"}]
    body = json.dumps({"auth_typ": "aad", "claims": claims, "name_typ": "name", "role_typ": "roles"})
    return {"X-MS-CLIENT-PRINCIPAL": base64.b64encode(body.encode()).decode()}


@pytest.fixture(scope="module")
def behind_sign_in(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("sign-in")
    running = start_app(folder, new_storage(), TOOLBOX_TRUST_EASYAUTH="1")
    yield running
    assert running.stop() == 0


def job_of(app: App, headers: dict[str, str]) -> str:
    result = app.call("csv_profile", CSV, ONE_WAY, headers)
    assert not result.get("isError"), result
    return str(result["_meta"]["toolbox/jobId"])


def status(app: App, job_id: str, headers: dict[str, str]) -> int:
    return app.http.get(f"/mcp/jobs/{job_id}", headers=headers).status_code


def test_a_job_is_read_by_who_made_it_and_by_nobody_else(behind_sign_in: App) -> None:
    app = behind_sign_in
    job_id = job_of(app, signed_in(ANN))
    assert status(app, job_id, signed_in(ANN)) == 200
    assert status(app, job_id, signed_in(BEN)) == 404
    assert status(app, job_id, {"X-MCP-Auth-Token": TOKEN}) == 404
    assert status(app, job_id, {}) == 401
    seen = app.call("job_status", {"jobId": job_id}, headers=signed_in(ANN))
    assert job_id in json.dumps(seen)
    assert not seen.get("isError")
    assert app.call("job_status", {"jobId": job_id}, headers=signed_in(BEN))["isError"]


def test_a_call_without_sign_in_and_token_is_refused(behind_sign_in: App) -> None:
    result = behind_sign_in.call("csv_profile", CSV, ONE_WAY)
    assert result["isError"]
    assert "sign in" in json.dumps(result)


def test_a_token_still_names_its_owner(behind_sign_in: App) -> None:
    token = {"X-MCP-Auth-Token": OTHER_TOKEN}
    job_id = job_of(behind_sign_in, {**signed_in(ANN), **token})
    assert status(behind_sign_in, job_id, token) == 200
    assert status(behind_sign_in, job_id, signed_in(ANN)) == 404
    wrong = {**signed_in(ANN), "X-MCP-Auth-Token": "wrong"}
    assert behind_sign_in.call("csv_profile", CSV, ONE_WAY, wrong)["isError"]
    assert status(behind_sign_in, job_id, wrong) == 401


def test_without_the_setting_the_header_opens_nothing(app: App) -> None:
    job_id = job_of(app, signed_in(ANN))
    assert status(app, job_id, signed_in(ANN)) == 401
    assert app.job(job_id).status_code == 200, "the caller was owner default, as without the header"
