"""executeBatch and executeTransaction."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from shared.apis.dataverse import multipart
from shared.errors import DataverseError, ToolError
from tests.support.dataverse import ID, Wire, batch_answer, part, target_of

REQUESTS: list[dict[str, Any]] = [
    {"method": "GET", "url": "accounts?$select=name&$top=5"},
    {"method": "patch", "url": f"accounts({ID})", "headers": {"If-Match": "*"}, "body": {"name": "B"}},
    {"method": "DELETE", "url": "/contacts(1)", "contentId": "gone"},
]


def boundary_of(request: httpx.Request) -> str:
    found = re.fullmatch(r"multipart/mixed; boundary=(batch_[0-9a-f-]{36})", request.headers["content-type"])
    assert found is not None
    return found[1]


def test_a_batch_on_the_wire_and_its_results() -> None:
    wire = Wire(
        batch_answer(
            [
                part("200 OK", {"value": [{"name": "A"}]}, Content_Type="application/json"),
                part("204 No Content", OData_EntityId="x"),
                part("404 Not Found", {"error": {"code": "1", "message": "gone"}}, "gone"),
            ]
        )
    )
    results = wire.api.executeBatch(REQUESTS)
    request = wire.request
    assert (request.method, target_of(request)) == ("POST", "$batch")
    assert request.headers["prefer"] == "odata.continue-on-error"
    boundary = boundary_of(request)
    assert request.content.decode().split("\r\n") == [
        f"--{boundary}",
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        "",
        "GET /api/data/v9.2/accounts?$select=name&$top=5 HTTP/1.1",
        "accept: application/json",
        "",
        "",
        f"--{boundary}",
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        "",
        f"PATCH /api/data/v9.2/accounts({ID}) HTTP/1.1",
        "accept: application/json",
        "content-type: application/json",
        "if-match: *",
        "",
        '{"name":"B"}',
        f"--{boundary}",
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        "Content-ID: gone",
        "",
        "DELETE /api/data/v9.2/contacts(1) HTTP/1.1",
        "accept: application/json",
        "",
        "",
        f"--{boundary}--",
        "",
    ]
    assert results[0].body.value[0].name == "A"
    assert results[1] == {
        "status": 204,
        "statusText": "No Content",
        "headers": {"odata-version": "4.0", "odata-entityid": "x"},
    }
    assert (results[2].contentId, results[2].status, results[2].body.error.message) == ("gone", 404, "gone")


def changeset(*parts: str) -> str:
    inner = "".join(f"--changesetresponse_1\r\n{text}\r\n" for text in parts) + "--changesetresponse_1--\r\n"
    return f"Content-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n{inner}"


def test_a_transaction_is_one_change_set() -> None:
    wire = Wire(
        batch_answer([changeset(part("204 No Content", None, "1"), part("201 Created", {"a": 1}, "account"))])
    )
    results = wire.api.executeTransaction(
        [
            {"method": "POST", "url": "accounts", "contentId": "account", "body": {"name": "C"}},
            {"method": "POST", "url": "$account/contact_customer_accounts", "body": {"firstname": "Ada"}},
        ]
    )
    text = wire.request.content.decode()
    assert "prefer" not in wire.request.headers
    (name,) = set(re.findall(r"boundary=(changeset_[0-9a-f-]{36})", text))
    assert text.count(f"--{name}\r\n") == 2
    assert text.count(f"--{name}--\r\n") == 1
    assert re.findall(r"Content-ID: (\w+)", text) == ["account", "1"]
    assert "POST /api/data/v9.2/accounts HTTP/1.1" in text
    assert "POST $account/contact_customer_accounts HTTP/1.1" in text
    assert [result.status for result in results] == [201, 204]
    assert results[0].contentId == "account"
    assert "contentId" not in results[1]


@pytest.mark.parametrize("status", [200, 400])
def test_a_failed_transaction_is_an_error(status: int) -> None:
    wire = Wire(
        batch_answer(
            [part("412 Precondition Failed", {"error": {"code": "0x1", "message": "no"}}, "a")], status
        )
    )
    with pytest.raises(DataverseError) as caught:
        wire.api.executeTransaction([{"method": "DELETE", "url": "accounts(1)", "contentId": "a"}] * 1)
    assert "nothing was written: 0x1: no" in caught.value.message
    assert (caught.value.status, caught.value.service_code) == (412, "0x1")


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([], "1 to 1000"),
        ([{}] * 1001, r"requests\[0\].method"),
        ("x", "must be a list"),
        ([5], "must be an object"),
        ([{"method": "GET", "url": "a", "verb": 1}], "unknown key 'verb'"),
        ([{"method": "HEAD", "url": "a"}], "method must be one of"),
        ([{"method": "GET", "url": "https://evil.example/a"}], "relative"),
        ([{"method": "GET", "url": "a/../b"}], "relative"),
        ([{"method": "GET", "url": "a\r\nX: y"}], "relative"),
        ([{"method": "POST", "url": "$batch"}], "another one"),
        ([{"method": "POST", "url": "/$BATCH?x"}], "another one"),
        ([{"method": "GET", "url": "a", "contentId": "1"}] * 2, "used twice"),
        ([{"method": "GET", "url": "a", "contentId": "a\r\nb"}], "contentId"),
        ([{"method": "GET", "url": "a", "body": {}}], "no body"),
        ([{"method": "GET", "url": "a", "headers": {"Authorization": "x"}}], "cannot be set"),
        ([{"method": "POST", "url": "a", "body": {"x": "y" * 17_000_000}}], "larger than"),
    ],
)
def test_requests_that_are_refused(requests: Any, words: str) -> None:
    wire = Wire()
    with pytest.raises(ToolError, match=words):
        wire.api.executeBatch(requests)
    assert wire.requests == []


def test_a_transaction_only_writes() -> None:
    with pytest.raises(ToolError, match="only writes"):
        Wire().api.executeTransaction([{"method": "GET", "url": "accounts"}])


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="x"),
        httpx.Response(200, text="x", headers={"content-type": "multipart/mixed; boundary=b"}),
        httpx.Response(200, text="--b\r\n\r\n--b--", headers={"content-type": "multipart/mixed; boundary=b"}),
        httpx.Response(
            200, text="--b\r\nodd\r\n\r\n--b--", headers={"content-type": "multipart/mixed; boundary=b"}
        ),
        batch_answer([part("204 No Content")]),
        batch_answer([]),
    ],
)
def test_answers_that_do_not_fit(response: httpx.Response) -> None:
    with pytest.raises(DataverseError):
        Wire(response).api.executeBatch(REQUESTS)


def test_a_refused_batch_is_an_error() -> None:
    with pytest.raises(DataverseError, match="HTTP 403: no"):
        Wire(httpx.Response(403, text="no")).api.executeBatch(REQUESTS)


@pytest.mark.parametrize("eol", ["\r\n", "\n"])
def test_multipart_keeps_bodies_whole(eol: str) -> None:
    lines = [
        "preamble",
        "--b",
        "Content-Type: application/http",
        "",
        "HTTP/1.1 200 OK",
        "A: b",
        "",
        "x",
        "--bc",
        "",
        "--b--",
    ]
    (found,) = multipart.answers('multipart/mixed;boundary="b"', eol.join(lines).encode())
    assert (found.status, found.reason, found.headers) == (200, "OK", {"a": "b"})
    assert found.content.decode() == eol.join(["x", "--bc", ""])
