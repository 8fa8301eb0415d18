"""The worker library's native entry gives what its protobuf-shaped one gives, which production uses."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.host.support import Host, peek, queue, send, wait_for

if TYPE_CHECKING:
    from infra.local.azurite import Azurite
    from tests.integration.host.conftest import StartHost

pytestmark = pytest.mark.integration


def observe(host: Host, connection: str, name: str) -> dict[str, Any]:
    """What a client sees of every kind of function."""
    seen: dict[str, Any] = {}
    requests = [
        ("POST", "/api/echo/x?q=1"),
        ("GET", "/api/any_method"),
        ("GET", "/api/boom"),
        ("GET", "/api/number/5"),
        ("GET", "/api/files/a/b"),
    ]
    for method, path in requests:
        response = host.client.request(method, path, content=b"\xc3\xbc" if method == "POST" else None)
        headers = {key: value for key, value in response.headers.items() if key != "date"}
        seen[path] = (response.status_code, response.text.replace(str(host.port), "PORT"), headers)
        headers.pop("content-length")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("echo", {"text": "ü", "tags": []}),
        ("payload", {"n": [1, None]}),
        ("typed", {"n": 1}),
        ("boom_tool", {}),
        ("no_envelope", {}),
        ("property", {"value": 1.5}),
        ("property", {}),
        ("submit", {"queue": f"{name}-out"}),
    ]
    for tool, arguments in calls:
        key = f"{tool} {json.dumps(arguments)}".replace(name, "QUEUE")
        seen[key] = (
            json.dumps(host.call(tool, **arguments)).replace(str(host.port), "PORT").replace(name, "QUEUE")
        )
    for uri in ("file://readme.md", "item://1/part"):
        seen[uri] = host.rpc("resources/read", {"uri": uri})
    seen["prompt"] = host.rpc("prompts/get", {"name": "review", "arguments": {"code": "x"}})
    jobs, reply = queue(connection, name), queue(connection, f"{name}-reply")
    jobs.create_queue()
    send(jobs, {"do": "reply", "reply": f"{name}-reply"})
    send(jobs, {"do": "fail"})
    wait_for(lambda: peek(reply) and peek(queue(connection, f"{name}-poison")))
    events = sorted(
        (json.loads(event["body"])["do"], event["dequeue_count"], type(event["dequeue_count"]).__name__)
        for event in host.events("message")
    )
    seen["messages"] = events
    seen["times"] = [len(event["insertion"]) for event in host.events("message")]
    seen["answers"] = [body.split()[0] for body in peek(reply) + peek(queue(connection, f"{name}-out"))]
    tick = wait_for(lambda: host.events("tick"))[0]
    seen["tick"] = (tick["past_due"], tick["schedule"], sorted(tick["status"]))
    return seen


def test_both_entries_give_the_same(start_host: StartHost, azurite: Azurite) -> None:
    seen = []
    for entry in ("native", "protobuf"):
        name = f"q-{uuid.uuid4().hex[:12]}"
        env = {"FIXTURE_QUEUE": name, "AzureWebJobsStorage": azurite.connection_string}
        host = start_host("--entry", entry, env=env)
        seen.append(observe(host, azurite.connection_string, name))
        assert host.stop() == 0
    assert seen[0] == seen[1]
