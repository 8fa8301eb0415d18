"""Queue triggers and queue outputs against a real Azurite."""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.host.support import Host, peek, peek_raw, queue, send, wait_for

if TYPE_CHECKING:
    from azure.storage.queue import QueueClient

    from infra.local.azurite import Azurite
    from tests.integration.host.conftest import StartHost

pytestmark = pytest.mark.integration


class Setup:
    """A host that runs only queue triggers, with a queue of its own."""

    def __init__(self, start_host: StartHost, azurite: Azurite, *arguments: str, **env: str) -> None:
        self.connection = azurite.connection_string
        self.name = f"q-{uuid.uuid4().hex[:12]}"
        self.jobs = self.queue(self.name)
        self.poison = self.queue(f"{self.name}-poison")
        # In capitals: the host lower-cases queue names.
        env = {"FIXTURE_QUEUE": self.name.upper(), "AzureWebJobsStorage": self.connection, **env}
        self.host: Host = start_host(*(arguments or ("--only-triggers", "queue")), env=env)

    def queue(self, name: str) -> QueueClient:
        return queue(self.connection, name)

    def messages(self, count: int) -> list[dict[str, Any]]:
        """The function's first invocations, once there are that many."""

        def look() -> list[dict[str, Any]] | None:
            events = self.host.events("message")
            return events if len(events) >= count else None

        return wait_for(look)

    def is_empty(self) -> bool:
        """No message left, invisible ones included."""
        return self.jobs.get_queue_properties().approximate_message_count == 0


def test_message_is_processed_and_deleted(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite)
    assert setup.host.port is None  # no HTTP front
    setup.jobs.create_queue()  # after the start: a missing queue is polled quietly
    send(setup.jobs, {"do": "ok", "text": "grüße"})
    [event] = setup.messages(1)
    assert json.loads(event["body"]) == {"do": "ok", "text": "grüße"}
    assert event["dequeue_count"] == 1
    assert event["id"]
    assert event["pop_receipt"]
    assert event["insertion"].endswith("+00:00")
    assert event["expiration"] > event["next_visible"] > event["insertion"]
    wait_for(setup.is_empty)
    assert setup.host.stop() == 0
    assert "cannot be polled" not in setup.host.text()


def test_failing_message_is_retried_at_once_and_then_poisoned(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite)
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "fail"})
    wait_for(lambda: peek(setup.poison))
    events = setup.messages(3)
    assert [event["dequeue_count"] for event in events] == [1, 2, 3]  # maxDequeueCount of the fixture
    assert events[2]["time"] - events[0]["time"] < 2
    assert [json.loads(body) for body in peek(setup.poison)] == [{"do": "fail"}]
    wait_for(setup.is_empty)
    text = f"Message has reached MaxDequeueCount of 3. Moving message to queue '{setup.name}-poison'."
    assert text in setup.host.text()


def test_visibility_timeout_delays_the_retry(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, AzureFunctionsJobHost__extensions__queues__visibilityTimeout="00:00:02")
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "fail"})
    first, second = setup.messages(2)[:2]
    assert second["time"] - first["time"] >= 1.5


def test_message_that_is_not_base64_is_poisoned_unseen(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite)
    setup.jobs.create_queue()
    setup.jobs.send_message('{"do": "ok"}')
    send(setup.jobs, {"do": "ok", "n": 2})
    setup.messages(1)
    assert wait_for(lambda: peek_raw(setup.poison)) == ['{"do": "ok"}']
    wait_for(setup.is_empty)
    assert [json.loads(event["body"])["n"] for event in setup.host.events("message")] == [2]


def test_message_encoding_none(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, AzureFunctionsJobHost__extensions__queues__messageEncoding="none")
    setup.jobs.create_queue()
    setup.jobs.send_message('{"do": "ok"}')
    assert setup.messages(1)[0]["body"] == '{"do": "ok"}'


def test_message_dequeued_too_often_is_poisoned_unseen(start_host: StartHost, azurite: Azurite) -> None:
    connection = azurite.connection_string
    name = f"q-{uuid.uuid4().hex[:12]}"
    jobs = queue(connection, name)
    jobs.create_queue()
    send(jobs, {"do": "ok"})
    for _ in range(3):  # three workers that died with it
        [message] = jobs.receive_messages(visibility_timeout=1)
        jobs.update_message(message, visibility_timeout=0)
    host = start_host(
        "--only-triggers", "queue", env={"FIXTURE_QUEUE": name, "AzureWebJobsStorage": connection}
    )
    wait_for(lambda: peek(queue(connection, f"{name}-poison")))
    assert host.events("message") == []


def test_long_message_stays_hidden_by_renewal(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, HOST_QUEUE_VISIBILITY_SECONDS="2")
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "slow", "seconds": 4.5})
    wait_for(lambda: setup.host.events("slow done"))
    wait_for(setup.is_empty)  # deleted with the receipt of the last renewal
    assert len(setup.host.events("message")) == 1


def test_parallel_messages_are_bounded(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(
        start_host,
        azurite,
        AzureFunctionsJobHost__extensions__queues__batchSize="2",
        AzureFunctionsJobHost__extensions__queues__newBatchThreshold="1",
    )
    setup.jobs.create_queue()
    for _ in range(8):
        send(setup.jobs, {"do": "slow", "seconds": 0.3})

    wait_for(lambda: len(setup.host.events("slow done")) == 8)
    running = peak = 0
    for event in setup.host.events():
        running += 1 if event["event"] == "message" else -1
        peak = max(peak, running)
    assert 2 <= peak <= 3  # batchSize + newBatchThreshold


def test_outputs_of_queue_http_and_mcp_functions(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, "--no-triggers", "timer")
    reply, listed, submitted = (f"out-{uuid.uuid4().hex[:8]}" for _ in range(3))
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "reply", "reply": reply, "ignored": [1], "null": None})
    assert setup.host.client.post(f"/api/enqueue/{listed}", json=["one", "zwei ü"]).text == "sent"
    assert setup.host.call("submit", queue=submitted)["content"][0]["text"] == "submitted"
    wait_for(lambda: peek(setup.queue(reply)))
    assert peek(setup.queue(reply)) == [f"answer to {setup.messages(1)[0]['id']}"]
    assert peek(setup.queue(listed)) == ["one", "zwei ü"]
    assert [json.loads(body) for body in peek(setup.queue(submitted))] == [{"from": "submit"}]


def test_failing_output_fails_the_invocation(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, "--no-triggers", "timer")
    assert setup.host.client.post("/api/enqueue/Not_A_Queue", json=["x"]).status_code == 500
    failed = setup.host.call("submit")  # {mcptoolargs.queue} has no value
    assert failed["isError"] is True
    assert "No value for named parameter 'mcptoolargs.queue'." in setup.host.text()


def test_sigterm_lets_a_message_finish(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite)
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "slow", "seconds": 1})
    setup.messages(1)
    assert setup.host.stop() == 0
    assert setup.host.events("slow done")
    assert setup.is_empty()


def test_function_timeout_leaves_the_message_hidden(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite, AzureFunctionsJobHost__functionTimeout="00:00:01")
    setup.jobs.create_queue()
    send(setup.jobs, {"do": "slow", "seconds": 60})
    assert setup.host.wait() == 75
    assert not setup.is_empty()
    assert peek(setup.jobs) == []


def test_storage_that_is_away_is_reported_once(start_host: StartHost, azurite: Azurite) -> None:
    port = azurite.connection_string.split("QueueEndpoint=http://127.0.0.1:")[1].split("/")[0]
    setup = Setup(
        start_host, azurite, AzureWebJobsStorage=azurite.connection_string.replace(f":{port}/", ":1/")
    )
    wait_for(lambda: "cannot be polled" in setup.host.text())
    assert setup.host.stop() == 0
    assert setup.host.text().count("cannot be polled") == 1


def test_body_that_is_not_text_reaches_the_function(start_host: StartHost, azurite: Azurite) -> None:
    setup = Setup(start_host, azurite)
    setup.jobs.create_queue()
    setup.jobs.send_message(base64.b64encode(b"\xff{").decode())
    assert setup.messages(1)[0]["body"] == "\ufffd{"
    wait_for(setup.is_empty)
