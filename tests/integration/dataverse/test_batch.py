"""$batch."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.dataverse.support import NOBODY

if TYPE_CHECKING:
    from infra.local.dataverse.call import Answer
    from tests.integration.dataverse.support import Api


def request(method: str, url: str, body: Any = None, content_id: str | None = None, **headers: str) -> str:
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    lines += [] if content_id is None else [f"Content-ID: {content_id}"]
    lines += ["", f"{method} {url} HTTP/1.1", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", "" if body is None else json.dumps(body)])


def multipart(boundary: str, *parts: str) -> str:
    return "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"


def change_set(*parts: str) -> str:
    return f"Content-Type: multipart/mixed; boundary=cs\r\n\r\n{multipart('cs', *parts)}"


def send(api: Api, *parts: str, **headers: str) -> tuple[Answer, list[int]]:
    answer = api.send("POST", "$batch", multipart("b", *parts).encode(),
                      content_type='multipart/mixed; boundary="b"', **headers)  # fmt: skip
    return answer, [int(one) for one in re.findall(r"HTTP/1\.1 (\d+)", answer.content.decode())]


def test_each_part_has_a_status(api: Api) -> None:
    answer, statuses = send(
        api,
        request("GET", "/api/data/v9.2/accounts?$select=name&$top=1"),
        request(
            "POST", "https://org.invalid/api/data/v9.2/accounts", {"name": "x"}, Prefer="return=representation"
        ),
        request("GET", "WhoAmI"),
    )
    assert answer.status == 200
    assert statuses == [200, 201, 200]
    assert answer.media.startswith("multipart/mixed; boundary=batchresponse_")
    assert b'"name": "Account 00001"' in answer.content


def test_change_set_with_references(api: Api) -> None:
    answer, statuses = send(
        api,
        change_set(
            request("POST", "contacts", {"lastname": "One"}, "1"),
            request("POST", "accounts", {"name": "A", "primarycontactid@odata.bind": "$1"}, "2"),
            request("PATCH", "$2", {"revenue": 5}, "3"),
            request("PUT", "$2/parentaccountid/$ref", {"@odata.id": "$2"}, "4"),
        ),
    )
    assert statuses == [204, 204, 204, 204]
    assert b"multipart/mixed; boundary=changesetresponse_" in answer.content
    assert re.findall(rb"Content-ID: (\d)", answer.content) == [b"1", b"2", b"3", b"4"]
    made = api.environment.record("account", api.environment.ids("account")[-1])
    assert made is not None
    assert made["revenue"] == 5
    assert made["primarycontactid"].id == api.contact(13)


def test_change_set_is_atomic(api: Api) -> None:
    account = api.account(1)
    before = api.get(f"accounts({account})")
    answer, statuses = send(
        api,
        change_set(
            request("PATCH", f"accounts({account})", {"accountnumber": "Z"}, "1"),
            request("POST", "accounts", {"name": "x", "accountnumber": before["accountnumber"]}, "2"),
            request("DELETE", f"contacts({api.contact(1)})", content_id="3"),
            request("PATCH", f"accounts({NOBODY})", {"name": "y"}, "4", **{"If-Match": "*"}),
        ),
    )
    assert (answer.status, statuses) == (404, [404])
    assert api.get(f"accounts({account})") == before
    assert len(api.environment.ids("account")) == 12
    assert api.environment.ids("contact")[0] == api.contact(1)
    assert api.get(f"sample_portfolio({api.project(1)})/sample_project_contact")["value"] != []
    assert api.get(f"accounts(accountnumber='{before['accountnumber']}')")["accountid"] == account


def test_roll_back_through_a_deletion(api: Api) -> None:
    ids, account = api.environment.ids("account"), api.account(5)
    before = api.get(f"accounts({account})")
    _, statuses = send(
        api,
        change_set(
            request("POST", "accounts", {"name": "x", "accountnumber": "N"}, "1"),
            request("DELETE", f"accounts({account})", content_id="2"),
            request("POST", "accounts", {"accountid": account, "accountnumber": before["accountnumber"]}, "3"),
            request("GET", "accounts", content_id="4"),
        ),
    )
    assert statuses == [400]
    assert api.environment.ids("account") == ids
    assert (
        api.get(f"accounts(accountnumber='{before['accountnumber']}')")["@odata.etag"] == before["@odata.etag"]
    )
    assert api.error("GET", "accounts(accountnumber='N')")[0] == 404


def test_stops_or_continues_at_an_error(api: Api) -> None:
    parts = [request("GET", f"accounts({NOBODY})"), request("POST", "accounts", {"name": "x"})]
    answer, statuses = send(api, *parts)
    assert (answer.status, statuses) == (404, [404])
    assert len(api.environment.ids("account")) == 12
    answer, statuses = send(api, *parts, prefer="odata.continue-on-error")
    assert (answer.status, statuses) == (200, [404, 204])


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (change_set(request("GET", "accounts")), "GET request is not allowed"),
        (change_set(request("PATCH", "$9", {"name": "x"})), "'$9' does not exist in the batch context"),
        (change_set(request("POST", "accounts", {"primarycontactid@odata.bind": "$9"})), "'$9' does not exist"),
        (request("POST", "$batch", {}), "another batch"),
        ("Content-Type: text/plain\r\n\r\nx", "no application/http"),
    ],
)
def test_refuses(api: Api, part: str, text: str) -> None:
    answer, _ = send(api, part)
    assert answer.status == 400
    assert text in answer.content.decode()


def test_bare_line_feeds_and_missing_ends(api: Api) -> None:
    body = multipart("b", request("GET", "accounts"))
    kind = "multipart/mixed; boundary=b"
    assert (
        "Stream was not readable"
        in api.error("POST", "$batch", body.replace("\r\n", "\n").encode(), content_type=kind)[2]
    )
    assert api.error("POST", "$batch", body.replace("--b--", "").encode(), content_type=kind)[0] == 400
    assert api.error("POST", "$batch", body.encode(), content_type="application/json")[0] == 400
    many = multipart("b", *[request("GET", "WhoAmI")] * 1001).encode()
    assert "1000" in api.error("POST", "$batch", many, content_type=kind)[2]
    assert api.error("GET", "$batch")[0] == 405
