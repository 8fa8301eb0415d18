"""The fault proxy: each fault against a tiny server that counts, then with the real SDKs on a real Azurite."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.data.tables import TableClient, UpdateMode
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from infra.local.azurite import Azurite
from shared.errors import LostLeaseError
from shared.jobs import model
from shared.jobs.store import Change
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from tests.support.fault_plan import LOSE_ANSWER, RESET, TRUNCATE, Fault, delay, refuse
from tests.support.fault_proxy import FaultProxy
from tests.support.http_messages import operation_of
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration

BODY = b"0123456789" * 10
#: What the SDKs make of a connection that ends: before or after the request was sent, they cannot always tell.
CUT_OFF = (ServiceRequestError, ServiceResponseError)
BATCH = r"table POST .*/\$batch"


@dataclass
class Tiny:
    """A server that keeps connections and remembers what reached it."""

    port: int
    reached: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def server() -> Iterator[Tiny]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            given = self.rfile.read(length)
            tiny.reached.append(f"{self.command} {self.path} {given.decode()}".strip())
            self.send_response(204 if self.path == "/empty" else 200)
            if self.path == "/chunked":
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"5\r\nhello\r\n6;x=y\r\n, you!\r\n0\r\n\r\n")
                return
            if self.path != "/empty":
                self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            if self.command != "HEAD" and self.path != "/empty":
                self.wfile.write(BODY)

        do_GET = do_POST = do_HEAD = answer

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        running.block_on_close = False
        tiny = Tiny(running.server_address[1])
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield tiny
        running.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: Tiny) -> Iterator[FaultProxy]:
    server.reached.clear()
    with FaultProxy((server.port,) * 3, seed=1) as running:
        yield running


@contextlib.contextmanager
def connection(proxy: FaultProxy, service: int = 0) -> Iterator[http.client.HTTPConnection]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", proxy.ports[service], timeout=30)) as made:
        yield made


def ask(client: http.client.HTTPConnection, target: str, method: str = "GET", body: str | None = None) -> bytes:
    client.request(method, target, body)
    answer = client.getresponse()
    return answer.read()


def test_everything_passes_unchanged_over_one_connection(server: Tiny, proxy: FaultProxy) -> None:
    with connection(proxy) as client:
        assert ask(client, "/a?b=c") == BODY
        assert ask(client, "/a", "HEAD") == b""
        assert ask(client, "/empty") == b""
        assert ask(client, "/chunked") == b"hello, you!"
        assert ask(client, "/a", "POST", "x" * 200_000) == BODY
    assert server.reached == ["GET /a?b=c", "HEAD /a", "GET /empty", "GET /chunked", f"POST /a {'x' * 200_000}"]
    assert [one.status for one in proxy.seen()] == [200, 200, 204, 200, 200]
    assert proxy.seen()[-1].size == 200_000


@pytest.mark.parametrize(("fault", "carried_out"), [(RESET, 1), (LOSE_ANSWER, 2)])
def test_a_reset_comes_before_or_after_the_request_is_carried_out(
    server: Tiny, proxy: FaultProxy, fault: Fault, carried_out: int
) -> None:
    rule = proxy.arm(fault, "blob POST /a", nth=1)
    with connection(proxy) as client:
        assert ask(client, "/b") == BODY
        with pytest.raises(ConnectionResetError):
            ask(client, "/a", "POST", "x")
    assert len(server.reached) == carried_out
    assert (rule.matched, rule.fired) == (1, 1)
    assert [one.fault for one in proxy.seen()] == [None, fault.kind]
    assert proxy.seen()[1].status == (200 if carried_out == 2 else None)


@pytest.mark.parametrize("target", ["/a", "/chunked"])
def test_a_truncated_answer_ends_within_its_body(server: Tiny, proxy: FaultProxy, target: str) -> None:
    proxy.arm(TRUNCATE, "GET", nth=1)
    with connection(proxy) as client, pytest.raises(http.client.IncompleteRead) as cut:
        ask(client, target)
    assert cut.value.partial == (BODY[:50] if target == "/a" else b"hello")
    with connection(proxy) as client:
        ask(client, target)
    assert len(server.reached) == 2


def test_an_answer_without_a_body_is_cut_in_its_head(proxy: FaultProxy) -> None:
    proxy.arm(TRUNCATE, "/empty", nth=1)
    with connection(proxy) as client:
        client.request("GET", "/empty")
        assert client.getresponse().headers["Date"] is None


def test_a_delayed_answer_comes_and_keeps_nobody_else_waiting(server: Tiny) -> None:
    ends: list[str] = []

    def late() -> None:
        with connection(running) as client:
            try:
                ask(client, "/late")
            except ConnectionError:
                ends.append("cut off")

    with FaultProxy((server.port,) * 3) as running:
        running.arm(delay(0.01), "/soon", nth=1)
        running.arm(delay(600), "/late", nth=1)
        thread = threading.Thread(target=late)
        thread.start()
        while not any(one.status for one in running.seen()):
            time.sleep(0.01)
        with connection(running) as client:
            assert ask(client, "/soon") == BODY
        assert ends == []
    thread.join()
    assert ends == ["cut off"]  # the proxy does not wait for what it holds back


@pytest.mark.parametrize("service", [0, 1, 2])
def test_a_refusal_is_an_answer_and_the_connection_goes_on(
    server: Tiny, proxy: FaultProxy, service: int
) -> None:
    proxy.arm(refuse(429, 7), "/a", nth=1)
    with connection(proxy, service) as client:
        client.request("POST", "/a", b"x")
        answer = client.getresponse()
        body = answer.read()
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert b"TooManyRequests" in body
        assert body.startswith(b"{" if service == 2 else b"<?xml")
        assert ask(client, "/a") == BODY
    assert server.reached == ["GET /a"]


def fates(seed: int, others: int = 0) -> list[bool]:
    """Which of 60 requests a rule with an even chance hits. `others`: requests in between that it ignores."""
    proxy = FaultProxy((1, 1, 1), seed=seed)
    proxy.arm(RESET, "/other", probability=0.5)
    rule = proxy.arm(RESET, "/a", probability=0.5)
    found = []
    for _ in range(60):
        for _ in range(others):
            rule.fires("blob GET /other", b"")
        found.append(rule.fires("blob GET /a", b""))
    return found


def test_chances_come_from_the_seed_alone() -> None:
    assert fates(1) == fates(1) == fates(1, others=3)
    assert fates(1) != fates(2)
    assert 10 < sum(fates(1)) < 50


def test_a_rule_may_look_at_the_body_and_the_first_that_fires_decides(server: Tiny, proxy: FaultProxy) -> None:
    by_body = proxy.arm(refuse(), "POST", nth=(1, 3), body=b"needle")
    second = proxy.arm(RESET, "POST", nth=2)
    with connection(proxy) as client:
        answers = []
        for body in ("hay needle", "hay", "needle", "needle"):
            try:
                client.request("POST", "/a", body)
                answer = client.getresponse()
                answer.read()
                answers.append(answer.status)
            except ConnectionError:
                answers.append(0)
                client.close()
        assert answers == [503, 0, 200, 503]
        assert (by_body.matched, by_body.fired, second.matched, second.fired) == (3, 2, 4, 1)
        proxy.arm(RESET, "", probability=1)
        proxy.disarm()
        assert ask(client, "/a") == BODY


def test_when_the_service_is_gone_the_client_is_cut_off(free_port: Any) -> None:
    with FaultProxy((free_port(),) * 3) as proxy, connection(proxy) as client, pytest.raises(ConnectionError):
        ask(client, "/a")


@pytest.mark.parametrize(
    ("service", "method", "target", "operation"),
    [
        ("table", "POST", "/acc/$batch", "transaction"),
        ("table", "POST", "/acc/Tables", "create table"),
        ("table", "DELETE", "/acc/Tables('jobs')", "delete table"),
        ("table", "GET", "/acc/jobs()?$filter=x", "query"),
        ("table", "GET", "/acc/jobs(PartitionKey='a',RowKey='b')", "get"),
        ("table", "PUT", "/acc/jobs(PartitionKey='a',RowKey='b')", "update"),
        ("table", "PATCH", "/acc/jobs(PartitionKey='a',RowKey='b')", "merge"),
        ("table", "POST", "/acc/jobs", "insert"),
        ("queue", "PUT", "/acc/jobs", "create queue"),
        ("queue", "POST", "/acc/jobs/messages", "send"),
        ("queue", "GET", "/acc/jobs/messages?numofmessages=1", "receive"),
        ("queue", "GET", "/acc/jobs/messages?peekonly=true", "peek"),
        ("queue", "DELETE", "/acc/jobs/messages/1?popreceipt=x", "delete"),
        ("queue", "PUT", "/acc/jobs/messages/1?popreceipt=x", "renew"),
        ("blob", "PUT", "/acc/jobs?restype=container", "create container"),
        ("blob", "PUT", "/acc/jobs/a/in", "put"),
        ("blob", "GET", "/acc/jobs/a/in", "get"),
        ("blob", "HEAD", "/acc/jobs/a/in", "head"),
        ("blob", "DELETE", "/acc/jobs/a/in", "delete"),
    ],
)
def test_operations_have_names(service: str, method: str, target: str, operation: str) -> None:
    assert operation_of(service, method, target) == operation


# With the real SDKs, on a real Azurite.


@pytest.fixture
def stored(azurite: Azurite) -> Iterator[FaultProxy]:
    with FaultProxy(azurite.ports, seed=1) as running:
        yield running


def test_signatures_hold_and_every_request_is_counted(stored: FaultProxy) -> None:
    connection_string = stored.connection_string
    with TableClient.from_connection_string(connection_string, "proxied") as table:
        table.create_table()
        table.submit_transaction(
            [("create", {"PartitionKey": "p", "RowKey": row, "text": "漢 '%&?#"}) for row in ("a", "b")]
        )
        table.upsert_entity({"PartitionKey": "p 'ü", "RowKey": "c", "data": b"\x00" * 1000}, UpdateMode.REPLACE)
        assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 2
        found = table.get_entity("p 'ü", "c")
        condition: Any = {"etag": found.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
        table.update_entity(found, UpdateMode.REPLACE, **condition)
        table.delete_table()
    with QueueClient.from_connection_string(connection_string, "proxied") as queue:
        queue.create_queue()
        queue.send_message("hello")
        messages = list(next(queue.receive_messages(messages_per_page=4).by_page()))
        queue.delete_message(messages[0])
        assert list(queue.receive_messages(messages_per_page=4)) == []
        queue.delete_queue()
    with ContainerClient.from_connection_string(connection_string, "proxied") as container:
        container.create_container()
        container.upload_blob("a/in ü", b"x" * 6_000_000)
        assert container.download_blob("a/in ü").readall() == b"x" * 6_000_000
        container.delete_blob("a/in ü")
        container.delete_container()
    expected = {
        "blob": ["PUT create container", "PUT put", "GET get", "DELETE delete", "DELETE delete container"],
        "queue": [
            *("PUT create queue", "POST send", "GET receive", "GET poll"),
            *("DELETE delete", "DELETE delete queue"),
        ],
        "table": [
            *("POST create table", "POST transaction", "GET query", "GET get"),
            *("PUT update", "PUT update", "DELETE delete table"),
        ],
    }
    assert stored.counts() == Counter(f"{service} {one}" for service, all_ in expected.items() for one in all_)


@pytest.mark.parametrize("fault", [RESET, LOSE_ANSWER, refuse(503, 0), refuse(429, 0), TRUNCATE])
def test_one_fault_of_any_kind_costs_a_job_nothing(stored: FaultProxy, fault: Fault) -> None:
    """The claim of a job and its end, each hit once: written once, by us, whatever was told."""
    store = TableJobStore(Storage(stored.connection_string))
    job = store.create(a_job(), b"sealed")
    rules = [stored.arm(fault, BATCH, nth=1), stored.arm(fault, "table PUT", nth=1)]
    running = store.write(model.claim(job, model.utc_now(), 60_000))
    done = model.complete(running, model.utc_now(), model.StoredBody(2, inline=b"{}"))
    ended = store.write(done, Change(drop_input=True))
    assert [rule.fired for rule in rules] == [1, 1]
    assert store.get(job.job_id) == ended
    assert ended.status is model.Status.COMPLETED


def test_a_lost_answer_of_another_writer_is_not_ours(stored: FaultProxy) -> None:
    """A write that is lost on its way, while somebody else's goes through: no nonce of ours is in the row."""
    store = TableJobStore(Storage(stored.connection_string))
    job = store.create(a_job(), b"sealed")
    store.write(model.claim(job, model.utc_now(), 60_000))
    stored.arm(RESET, "table PUT", nth=1)
    with pytest.raises(LostLeaseError):
        store.write(replace(job, progress_percent=5))


def test_without_retries_each_fault_shows(stored: FaultProxy) -> None:
    with TableClient.from_connection_string(stored.connection_string, "shown", retry_total=0) as table:
        table.create_table()
        row: Any = {"PartitionKey": "p", "RowKey": "lost"}
        stored.arm(LOSE_ANSWER, BATCH, nth=1, body=b"lost")
        with pytest.raises(CUT_OFF):
            table.submit_transaction([("create", row)])
        assert table.get_entity("p", "lost") == row
        stored.arm(RESET, BATCH, nth=1, body=b"never")
        with pytest.raises(CUT_OFF):
            table.submit_transaction([("create", {**row, "RowKey": "never"})])
        with pytest.raises(ResourceNotFoundError):
            table.get_entity("p", "never")
        stored.arm(refuse(503), "table POST", nth=1)
        with pytest.raises(HttpResponseError) as refused:
            table.create_entity({**row, "RowKey": "refused"})
        assert refused.value.status_code == 503
        assert "ServerBusy" in str(refused.value)
        table.delete_table()


def test_a_blob_cut_in_its_middle_is_read_whole(stored: FaultProxy) -> None:
    store = TableJobStore(Storage(stored.connection_string))
    store.put_blob("cut/in", b"0123456789" * 10_000)
    rule = stored.arm(TRUNCATE, "blob GET", nth=1)
    assert store.get_blob("cut/in") == b"0123456789" * 10_000
    assert rule.fired == 1
