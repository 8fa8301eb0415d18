"""What an operator does to the running app: looks at health and at jobs of all owners, exchanges secrets."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.local.azurite import Azurite
from infra.local.dev import paths
from shared.web.answers import SECURITY_HEADERS
from tests.acceptance.conftest import OTHER_TOKEN, SEAL_KEY, TOKEN, App, start_app, wait_until

pytestmark = pytest.mark.acceptance

NEW_KEY = base64.b64encode(bytes(range(32, 64))).decode()
NEW_TOKEN, NEW_OTHER = "acceptance-token-of-default-2", "acceptance-token-of-ana-2"
CSV = {"csv": "a,b\nsentinel-of-the-input,2\n"}
ONE_WAY = {"executionMode": "headless", "mode": "one-way"}
#: Jobs stay pending: the function that takes them is switched off, as an operator would do it.
NO_WORKER = {"AzureWebJobs.job_worker.Disabled": "true"}


class Site:
    """One storage account, and apps on it, one after another."""

    def __init__(self, connection: str, folder: Path) -> None:
        self.connection = connection
        self.folder = folder
        self.apps: list[App] = []

    def start(self, **settings: Any) -> App:
        folder = self.folder / f"app-{len(self.apps)}"
        folder.mkdir()
        app = start_app(folder, self.connection, **settings)
        self.apps.append(app)
        return app

    def stop(self) -> None:
        for app in self.apps:
            if app.process.poll() is None:
                app.stop()

    def dev(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`dev.py jobs …` against the account. It is not given the seal key: it needs none."""
        environ = {**os.environ, "AzureWebJobsStorage": self.connection, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, str(paths.REPO / "dev.py"), "jobs", *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
        printed = done.stdout + done.stderr
        assert "Traceback" not in printed
        assert "sentinel-of-the-input" not in printed
        assert TOKEN not in printed
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        done = self.dev(*arguments, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def site(tmp_path: Path, new_storage: Callable[[], str]) -> Iterator[Site]:
    made = Site(new_storage(), tmp_path)
    try:
        yield made
    finally:
        made.stop()


def get(app: App, path: str, token: str | None = TOKEN, method: str = "GET", **params: str) -> httpx.Response:
    headers = {} if token is None else {"X-MCP-Auth-Token": token}
    return app.http.request(method, path, headers=headers, params=params)


def submit(app: App, token: str = TOKEN, **envelope: str) -> str:
    answer = app.call("csv_profile", CSV, {**ONE_WAY, **envelope}, {"X-MCP-Auth-Token": token})
    job_id: str = answer["structuredContent"]["jobId"]
    return job_id


def test_health_of_the_running_app(app: App) -> None:
    alive = get(app, "/healthz", None)
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert all(alive.headers[name] == value for name, value in SECURITY_HEADERS.items())
    head = get(app, "/healthz", None, "HEAD")
    assert (head.status_code, head.content) == (200, b"")
    assert get(app, "/healthz", None, "POST").headers["allow"] == "GET, HEAD"

    for token in (None, "wrong"):
        refused = get(app, "/mcp/health", token)
        assert (refused.status_code, "checks" in refused.text) == (401, False)
    full, flags = get(app, "/mcp/health").json(), get(app, "/mcp/health", OTHER_TOKEN).json()
    assert full["checks"]["storage"]["detail"].items() >= {"table": "ok", "queue": "ok", "blob": "ok"}.items()
    assert full["checks"]["sealKey"] == {"ok": True, "detail": {"keys": 1}}
    assert full["checks"]["worker"]["ok"]
    assert full["checks"]["upstream"] == {"ok": True, "detail": {"faults": 0}}
    assert len(full["instance"]) >= 8
    assert set(flags) == {"status", "checks"}
    assert all(set(check) == {"ok"} for check in flags["checks"].values())
    assert flags["checks"].keys() == full["checks"].keys()


def test_the_timer_is_seen_to_run_and_a_lost_storage_is_told(tmp_path: Path) -> None:
    with Azurite.start(tmp_path / "storage", free_ports=True) as azurite:
        app = start_app(tmp_path, azurite.connection_string, TOOLBOX_REAPER_SCHEDULE="* * * * * *")
        try:

            def ran() -> Any:
                return get(app, "/mcp/health").json()["checks"]["reaper"]["detail"]["lastRun"]

            assert wait_until(ran).endswith("Z")
            azurite.stop()

            def down() -> Any:
                answer = get(app, "/mcp/health")
                return answer if answer.status_code == 503 else None

            answer = wait_until(down)
            assert answer.elapsed.total_seconds() < 10
            assert not answer.json()["checks"]["storage"]["ok"]
            assert get(app, "/healthz", None).status_code == 200
        finally:
            app.stop()


def test_jobs_from_the_command_line(site: Site) -> None:
    idle = site.start(**NO_WORKER)
    mine, anas = submit(idle), submit(idle, OTHER_TOKEN)
    listed = site.json("list")
    assert [job["jobId"] for job in listed["jobs"]] == [anas, mine]
    assert [job["owner"] for job in site.json("list", "--owner=ana", "--status=pending")["jobs"]] == ["ana"]
    assert site.json("list", "--tool=other")["jobs"] == []
    text = site.dev("list").stdout
    assert mine in text
    assert "pending" in text

    assert site.json("cancel", anas)["jobs"][0]["errorCode"] == "cancelled"
    assert "has ended already" in site.json("cancel", anas, code=1)["error"]
    assert "input is erased" in site.json("resend", anas, code=1)["hint"]
    assert site.json("purge", mine, "--yes", code=1)["error"].endswith("only ended jobs can be removed.")
    assert get(idle, "/mcp/health").json()["checks"]["pendingJobs"]["detail"]["count"] == 1

    # The queue is emptied by accident; nobody would run the job for a quarter of an hour.
    from shared.jobs.store import QUEUE
    from shared.storage import Storage

    Storage(site.connection).queue(QUEUE).clear_messages()
    idle.stop()
    app = site.start()
    assert site.json("resend", "--all-pending")["jobs"][0]["jobId"] == mine
    assert app.ended(mine)["status"] == "completed"

    shown = site.json("show", mine)["job"]
    assert (shown["status"], shown["messagesSent"]) == ("completed", 2)
    assert "row_count" in shown["resultSummary"]["fields"]
    assert "completed" in site.dev("show", mine).stdout

    refused = site.dev("purge", "--older-than=1m")
    assert (refused.returncode, refused.stdout) == (0, "There is nothing to remove.\n")
    refused = site.dev("purge", mine)
    assert refused.returncode == 2
    assert "Say --yes" in refused.stderr
    assert app.job(mine).status_code == 200
    assert site.json("purge", mine, "--yes")["removed"] == [mine]
    assert app.job(mine).status_code == 404
    assert "There is no job" in site.dev("show", mine).stderr


def test_seal_key_and_tokens_are_exchanged_without_a_gap(site: Site) -> None:
    """The steps of docs/operations.md, and what callers see at each of them."""
    before = site.start(**NO_WORKER)
    sealed = submit(before)
    keyed = submit(before, idempotencyKey="order-1")
    page = get(before, "/mcp/jobs", limit="1").json()
    assert [job["jobId"] for job in page["jobs"]] == [keyed]
    before.stop()

    # Steps 1 and 2 side by side, as while instances restart: what the new one seals, the old one opens.
    every_key = f"{SEAL_KEY} {NEW_KEY}"
    old = site.start(TOOLBOX_SEAL_KEYS=every_key)
    new = site.start(TOOLBOX_SEAL_KEY=NEW_KEY, TOOLBOX_SEAL_KEYS=every_key, **NO_WORKER)
    between = submit(new)
    assert old.ended(between)["status"] == "completed"
    assert old.ended(sealed)["status"] == "completed"
    assert submit(old, idempotencyKey="order-1") == submit(new, idempotencyKey="order-1") == keyed
    later = submit(new, OTHER_TOKEN, idempotencyKey="order-2")
    assert submit(old, OTHER_TOKEN, idempotencyKey="order-2") == later
    old.stop()
    new.stop()

    # Step 2 everywhere; each owner has two tokens.
    both = site.start(
        TOOLBOX_SEAL_KEY=NEW_KEY,
        TOOLBOX_SEAL_KEYS=every_key,
        MCP_AUTH_TOKEN=TOKEN,
        MCP_AUTH_TOKENS=json.dumps({"default": NEW_TOKEN, "ana": [OTHER_TOKEN, NEW_OTHER]}),
    )
    for token in (TOKEN, NEW_TOKEN):
        assert both.ended(sealed, token)["status"] == "completed"
        assert submit(both, token, idempotencyKey="order-1") == keyed
    rest = get(both, "/mcp/jobs", NEW_TOKEN, cursor=page["cursor"])
    assert [job["jobId"] for job in rest.json()["jobs"]] == [sealed]
    for token in (OTHER_TOKEN, NEW_OTHER):
        assert submit(both, token, idempotencyKey="order-2") == later
        assert both.ended(later, token)["status"] == "completed"
    assert both.job(later, NEW_TOKEN).status_code == 404, "a token of another owner, old or new"
    assert get(both, "/mcp/health").json()["checks"]["sealKey"]["detail"] == {"keys": 2}
    both.stop()

    # Step 3: the old ones go once nothing depends on them.
    after = site.start(
        TOOLBOX_SEAL_KEY=NEW_KEY, MCP_AUTH_TOKEN=NEW_TOKEN, MCP_AUTH_TOKENS=json.dumps({"ana": NEW_OTHER})
    )
    for token in (TOKEN, OTHER_TOKEN):
        assert get(after, "/mcp/jobs", token).status_code == 401
    assert after.job(sealed, NEW_TOKEN).json()["status"] == "completed", "results are not sealed"
    assert submit(after, NEW_OTHER, idempotencyKey="order-2") == later, "it was made under the new key"
    assert get(after, "/mcp/jobs", NEW_TOKEN, cursor=page["cursor"]).status_code == 400
    assert submit(after, NEW_TOKEN, idempotencyKey="order-1") != keyed, "a key of the old seal key is forgotten"


def test_a_key_that_went_too_soon_is_named_in_the_job(site: Site) -> None:
    before = site.start(**NO_WORKER)
    sealed = submit(before)
    before.stop()
    body = site.start(TOOLBOX_SEAL_KEY=NEW_KEY).ended(sealed)
    assert (body["status"], body["errorCode"]) == ("failed", "tool_error")
    assert "TOOLBOX_SEAL_KEY and TOOLBOX_SEAL_KEYS" in body["error"]
