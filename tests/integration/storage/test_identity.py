"""Every storage client with an identity alone: a real Azurite that takes bearer tokens over https and no key of
ours, and the platform's token endpoint as azure-identity asks it."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from infra.local import azurite
from shared.account import StorageIdentity, storage_account
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage, upsert

pytestmark = pytest.mark.integration

IDENTITY_HEADER = "header-of-the-platform"
CLIENT_ID = "11059fcc-5514-4800-b5f8-49808b9cfab6"


def _part(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@dataclass
class Platform:
    """The token endpoint of App Service: it gives a token for a resource to who sends its header."""

    #: (resource, client id) of each request.
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def token(self, resource: str) -> str:
        now = int(time.time())
        claims = {"aud": resource.rstrip("/"), "iss": "https://sts.windows.net/tenant/", "oid": CLIENT_ID}
        return ".".join(
            (
                _part({"alg": "RS256", "typ": "JWT"}),
                _part({**claims, "iat": now, "nbf": now - 60, "exp": now + 3600}),
                "x",
            )
        )


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    found = Platform()

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            resource, client = query["resource"][0], query.get("client_id", [""])[0]
            found.asked.append((resource, client))
            allowed = self.headers.get("X-IDENTITY-HEADER") == IDENTITY_HEADER
            answer = {
                "access_token": found.token(resource),
                "expires_on": str(int(time.time()) + 3600),
                "resource": resource,
                "token_type": "Bearer",
            }
            body = json.dumps(answer if allowed else {"statusCode": 401}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its base has it
            """Nothing: tests read what was asked."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}/msi/token"
        monkeypatch.setenv("IDENTITY_ENDPOINT", found.url)
        monkeypatch.setenv("IDENTITY_HEADER", IDENTITY_HEADER)
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def account() -> Iterator[dict[str, str]]:
    """Settings that name an account which is reached over https with tokens."""
    folder = Path(tempfile.mkdtemp(prefix="toolbox-azurite-"))
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for number, pem in enumerate(issued.cert_chain_pems):
        pem.write_to_path(folder / "cert.pem", append=number > 0)
    secured = ("--oauth", "basic", "--cert", str(folder / "cert.pem"), "--key", str(folder / "key.pem"))
    try:
        with azurite.Azurite.start(folder / "data", free_ports=True, options=secured) as instance:
            ports = zip(("blob", "queue", "table"), instance.ports, strict=True)
            settings = {
                f"AzureWebJobsStorage__{name}ServiceUri": f"https://127.0.0.1:{port}/devstoreaccount1"
                for name, port in ports
            }
            settings |= {"AzureWebJobsStorage__credential": "managedidentity", "CA": str(folder / "ca.pem")}
            yield settings
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_every_service_is_reached_with_a_token_of_the_platform(
    account: dict[str, str], platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", account["CA"])
    found = storage_account({**account, "AzureWebJobsStorage__clientId": CLIENT_ID})
    assert isinstance(found, StorageIdentity)
    storage = Storage(found)
    name = f"t{uuid.uuid4().hex[:12]}"

    table = storage.table(name)
    upsert(table, {"PartitionKey": "p", "RowKey": "r", "what": "row"})
    assert table.get_entity("p", "r")["what"] == "row"

    queue = storage.queue(name)
    queue.create_queue()
    queue.send_message('{"jobId": "x"}')
    (message,) = list(queue.receive_messages())
    assert message.content == '{"jobId": "x"}'
    queue.delete_message(message)

    container = storage.container(name)
    container.create_container()
    container.upload_blob("a", b"bytes")
    assert container.download_blob("a").readall() == b"bytes"

    # The job store makes its tables and queues by itself, with the same identity.
    assert TableJobStore(storage).get_key("f" * 64) is None
    assert {client for _, client in platform.asked} == {CLIENT_ID}
    assert {resource.rstrip("/") for resource, _ in platform.asked} == {"https://storage.azure.com"}


def test_an_account_that_refuses_the_identity_says_so(
    account: dict[str, str], platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

    monkeypatch.setenv("REQUESTS_CA_BUNDLE", account["CA"])
    monkeypatch.setattr(platform, "token", lambda _resource: "no.such.token")
    found = storage_account(account)
    with pytest.raises((ClientAuthenticationError, HttpResponseError)) as caught:
        Storage(found).queue("jobs").get_queue_properties()
    assert getattr(caught.value, "status_code", None) in (401, 403)
