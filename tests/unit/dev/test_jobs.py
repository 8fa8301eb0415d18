"""`dev.py jobs`: what it does to jobs, what it refuses, and what it shows."""

from __future__ import annotations

import argparse
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.local.azurite import connection_string
from infra.local.dev import cli, jobs, jobs_actions, jobs_options, paths
from infra.local.dev.connection_storage import Place
from infra.local.dev.console import DevError
from infra.local.dev.jobs_actions import NotDoneError
from infra.local.dev.jobs_output import full_json, to_json
from shared.errors import LostLeaseError
from shared.jobs import keys, model
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.store import KeyRow, Query
from shared.jobs.testing import MemoryJobStore
from shared.jobs.window import Window
from tests.unit.jobs.bench import Bench
from tests.unit.jobs.test_health import MINUTE, NOW, made

SECRET = "sentinel-71c9-of-the-input"


def options(*arguments: str) -> argparse.Namespace:
    return cli._parser().parse_args(["jobs", *arguments])


def act(store: MemoryJobStore, *arguments: str) -> int:
    given = options(*arguments)
    return jobs._ACTIONS[given.action](given, store, Place(None, "here"))


def got(store: MemoryJobStore, job: Job) -> Job:
    found = store.get(job.job_id)
    assert found is not None
    return found


def ended(store: MemoryJobStore, minutes: int, **values: Any) -> Job:
    at = NOW - minutes * MINUTE
    return made(store, minutes, status=Status.COMPLETED, completed_at=at, input_at="", **values)


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


class TestOptions:
    def test_the_words_of_the_command_line_are_the_models(self) -> None:
        assert tuple(str(status) for status in Status) == jobs_options.STATUSES

    @pytest.mark.parametrize(("text", "seconds"), [("7d", 604_800), ("12h", 43_200), ("30m", 1_800)])
    def test_ages(self, text: str, seconds: int) -> None:
        assert options("purge", f"--older-than={text}").older_than == seconds

    @pytest.mark.parametrize(
        "arguments",
        [
            ["resend"],
            ["resend", "x", "--all-pending"],
            ["purge"],
            ["purge", "x", "--older-than=1d"],
            ["purge", "--older-than=7"],
            ["purge", "--older-than=0d"],
            ["list", "--limit=0"],
            ["list", "--limit=1001"],
            ["list", "--status=done"],
            ["show"],
        ],
    )
    def test_illegal_ones_end_with_2(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as caught:
            options(*arguments)
        assert caught.value.code == 2
        assert "jobs" in capsys.readouterr().err

    @pytest.mark.parametrize("job_id", ["x", "../etc", "", "0" * 36])
    def test_an_id_that_is_none_is_a_wrong_command_line(self, store: MemoryJobStore, job_id: str) -> None:
        for action in (["show"], ["cancel"], ["resend"], ["purge", "--yes"]):
            if job_id or action[0] in ("show", "cancel"):
                with pytest.raises(DevError) as caught:
                    act(store, *action, job_id)
                assert caught.value.exit_code == 2
        assert store.requests.total() == 0


class TestList:
    def test_newest_first_of_all_owners_or_one(self, store: MemoryJobStore) -> None:
        new, old = made(store, 1, owner="ana"), made(store, 5)
        assert [job.job_id for job in jobs_actions.find(store, Query(), 20).jobs] == [new.job_id, old.job_id]
        assert [job.job_id for job in jobs_actions.find(store, Query(owner="ana"), 20).jobs] == [new.job_id]

    def test_it_changes_nothing(self, store: MemoryJobStore, capsys: pytest.CaptureFixture[str]) -> None:
        lost = store.write(model.claim(made(store, 50), NOW - 40 * MINUTE, 60_000))
        late = made(store, 40)
        before = dict(store.rows)
        assert act(store, "list") == 0
        assert store.rows == before
        assert not store.messages
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["JOB", "STATUS", "CREATED", "TOOL", "OWNER", "NOTE"]
        (shown,) = [line for line in lines if lost.job_id in line]
        assert shown.endswith("worker lost")
        (shown,) = [line for line in lines if late.job_id in line]
        assert shown.endswith("message overdue")

    def test_a_cut_list_says_so(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for number in range(5):
            made(store, number)
        monkeypatch.setattr(jobs_actions, "PAGE", 1)
        monkeypatch.setattr(jobs_actions, "SCANS", 2)
        act(store, "list", "--json")
        body = json.loads(capsys.readouterr().out)
        assert (len(body["jobs"]), body["complete"]) == (2, False)
        act(store, "list", "--limit=2", "--json")
        assert json.loads(capsys.readouterr().out)["complete"] is True


class TestShow:
    def test_input_token_and_values_of_results_stay_hidden(self, capsys: pytest.CaptureFixture[str]) -> None:
        def echo(text: str) -> dict[str, str]:
            return {"echo": text}

        bench = Bench(echo)
        job = bench.submit({"text": SECRET}, token=SECRET)
        assert act(bench.store, "show", job.job_id, "--json") == 0
        pending = json.loads(capsys.readouterr().out)["job"]
        assert (pending["status"], pending["owner"]) == ("pending", "default")
        assert "resultSummary" not in pending
        bench.deliver()
        act(bench.store, "show", job.job_id, "--json")
        act(bench.store, "show", job.job_id)
        printed = capsys.readouterr().out
        done = json.loads(printed.splitlines()[0])["job"]
        assert done["status"] == "completed"
        assert done["resultSummary"]["fields"] == ["echo"]
        assert done["logs"][-1]["message"] == "completed"
        assert "completed" in printed
        assert SECRET not in printed
        assert SECRET not in json.dumps(pending)

    def test_a_job_that_is_not_there(self, store: MemoryJobStore) -> None:
        with pytest.raises(NotDoneError, match="There is no job"):
            act(store, "show", keys.new_job_id())


class TestCancel:
    def test_a_pending_job_of_any_owner_ends(self, store: MemoryJobStore) -> None:
        job = made(store, 1, owner="ana")
        assert act(store, "cancel", job.job_id) == 0
        found = got(store, job)
        assert (found.status, found.error_code) == (Status.FAILED, ErrorCode.CANCELLED)

    def test_a_running_one_is_asked_to_stop(
        self, store: MemoryJobStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        job = store.write(model.claim(made(store, 1), model.utc_now(), 60_000))
        act(store, "cancel", job.job_id)
        assert got(store, job).cancel_requested
        assert "was asked to stop" in capsys.readouterr().out

    def test_an_ended_one_is_told(self, store: MemoryJobStore) -> None:
        with pytest.raises(NotDoneError, match="has ended already: it is completed"):
            act(store, "cancel", ended(store, 5).job_id)


class TestResend:
    def test_a_pending_job_runs_then(self) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.messages.clear()  # the message was lost
        assert act(bench.store, "resend", job.job_id) == 0
        assert bench.job(job).sends == 2
        bench.deliver()
        assert bench.job(job).status is Status.COMPLETED

    def test_an_ended_job_says_why_it_cannot(self, store: MemoryJobStore) -> None:
        with pytest.raises(NotDoneError, match="has ended") as caught:
            act(store, "resend", ended(store, 5).job_id)
        assert caught.value.hint == "Call the tool again: a job's input is erased when it ends."
        assert not store.messages

    def test_a_running_and_a_windowed_one_are_left_alone(self, store: MemoryJobStore) -> None:
        running = store.write(model.claim(made(store, 1), model.utc_now(), 60_000))
        with pytest.raises(NotDoneError, match=r"is being run \(attempt 1 of 3\)"):
            act(store, "resend", running.job_id)
        windowed = made(store, 1, window=Window())
        with pytest.raises(NotDoneError, match="waits for a person"):
            act(store, "resend", windowed.job_id)
        assert not store.messages

    def test_a_lost_worker_is_dealt_with_as_the_app_does(self, store: MemoryJobStore) -> None:
        again = store.write(model.claim(made(store, 9, max_attempts=2), NOW - 8 * MINUTE, 60_000))
        once = store.write(model.claim(made(store, 9, max_attempts=1), NOW - 8 * MINUTE, 60_000))
        act(store, "resend", again.job_id)
        assert got(store, again).status is Status.PENDING
        assert len(store.messages) == 1
        with pytest.raises(NotDoneError, match="The worker was lost"):
            act(store, "resend", once.job_id)
        assert got(store, once).error_code is ErrorCode.WORKER_LOST
        assert len(store.messages) == 1

    def test_what_a_cut_off_call_left_must_not_run(self, store: MemoryJobStore) -> None:
        job = made(store, 1, idempotency="digest")
        with pytest.raises(NotDoneError, match="must not run"):
            act(store, "resend", job.job_id)
        store.take_key(KeyRow("digest", job.job_id, "print"))
        assert act(store, "resend", job.job_id) == 0

    def test_all_pending_go_oldest_first_and_others_stay(
        self, store: MemoryJobStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        waits = [made(store, number) for number in (3, 2, 1)]
        ended(store, 4)
        made(store, 5, window=Window())
        cut_off = made(store, 6, idempotency="digest")
        assert act(store, "resend", "--all-pending", "--json") == 0
        body = json.loads(capsys.readouterr().out)
        assert [json.loads(message)["jobId"] for message in store.messages] == [job.job_id for job in waits]
        assert [job["jobId"] for job in body["jobs"]] == [job.job_id for job in waits]
        assert [one["jobId"] for one in body["notSent"]] == [cut_off.job_id]

    def test_a_job_that_moves_meanwhile_is_read_again(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = made(store, 1)
        write, lost = store.write, [True, True]

        def quarrel(*args: Any) -> Job:
            if lost:
                lost.pop()
                raise LostLeaseError
            return write(*args)

        monkeypatch.setattr(store, "write", quarrel)
        act(store, "resend", job.job_id)
        assert len(store.messages) == 1

    def test_a_message_that_cannot_be_sent_is_told(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = made(store, 1)

        def broken(job_id: str) -> None:
            raise ConnectionError

        monkeypatch.setattr(store, "send", broken)
        with pytest.raises(ConnectionError):
            act(store, "resend", job.job_id)


class TestPurge:
    def test_an_ended_job_goes_with_all_that_is_its(self, store: MemoryJobStore) -> None:
        job, other = ended(store, 5), ended(store, 6)
        store.put_blob(keys.result_blob(job.job_id, 1), b"x")
        store.put_blob(keys.result_blob(other.job_id, 1), b"x")
        assert act(store, "purge", job.job_id, "--yes") == 0
        assert store.get(job.job_id) is None
        assert list(store.blobs) == [keys.result_blob(other.job_id, 1)]
        assert store.get(other.job_id) is not None

    def test_one_that_has_not_ended_stays_whatever_is_said(self, store: MemoryJobStore) -> None:
        job = made(store, 50_000)
        with pytest.raises(NotDoneError, match="is pending: only ended jobs can be removed"):
            act(store, "purge", job.job_id, "--yes")
        assert act(store, "purge", "--older-than=1d", "--yes") == 0
        assert store.get(job.job_id) is not None

    def test_older_ones_count_from_their_end(
        self, store: MemoryJobStore, capsys: pytest.CaptureFixture[str]
    ) -> None:
        young, old = ended(store, 5), ended(store, 200)
        long_ago_ended_now = made(store, 700, status=Status.FAILED, completed_at=NOW, input_at="")
        assert act(store, "purge", "--older-than=1h", "--yes", "--json") == 0
        assert json.loads(capsys.readouterr().out)["removed"] == [old.job_id]
        assert [store.get(job.job_id) is not None for job in (young, old, long_ago_ended_now)] == [
            True,
            False,
            True,
        ]

    def test_without_yes_nothing_goes(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        job = ended(store, 200)
        monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
        for arguments in (["--older-than=1h"], [job.job_id], [job.job_id, "--json"]):
            with pytest.raises(DevError, match="Nothing was removed: 1 ended job of here") as caught:
                act(store, "purge", *arguments)
            assert (caught.value.exit_code, caught.value.hint) == (2, "Say --yes to do it.")
        assert store.get(job.job_id) is not None

    @pytest.mark.parametrize(("typed", "gone"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False)])
    def test_a_person_is_asked(
        self,
        store: MemoryJobStore,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        typed: str,
        gone: bool,
    ) -> None:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        job = ended(store, 200)
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        if gone:
            act(store, "purge", job.job_id)
        else:
            with pytest.raises(DevError, match="Nothing was removed"):
                act(store, "purge", job.job_id)
        assert "Remove 1 ended job of here for good" in capsys.readouterr().out
        assert (store.get(job.job_id) is None) == gone


class TestStorage:
    """The command as a whole, where there is nothing to work on."""

    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(paths, "LOCAL_SETTINGS", tmp_path / "none.json")
        monkeypatch.setattr(jobs, "use_settings", lambda settings: None)

    def run(self, capsys: pytest.CaptureFixture[str], **environ: str) -> tuple[int, Any]:
        code = jobs.run(options("list", "--json"), environ)
        return code, json.loads(capsys.readouterr().out)

    def test_none_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, body = self.run(capsys)
        assert (code, body["ok"]) == (1, False)
        assert body["error"] == "AzureWebJobsStorage is not set: there is no storage account to look at."
        with pytest.raises(DevError, match="AzureWebJobsStorage is not set"):
            jobs.run(options("list"), {})

    def test_an_emulator_that_is_away_is_told_at_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, body = self.run(capsys, AzureWebJobsStorage=connection_string((1, 1, 1)))
        assert (code, body["error"]) == (1, "Azurite is not running: nothing listens on 127.0.0.1:1.")
        assert "AccountKey" not in json.dumps(body)

    def test_an_illegal_setting_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, body = self.run(capsys, AzureWebJobsStorage__accountName="No Account")
        assert code == 1
        assert body["error"].startswith("AzureWebJobsStorage__accountName must be")


def test_notes() -> None:
    store = MemoryJobStore()
    fresh = made(store, 1)
    notes = {
        "": fresh,
        "asked to stop": replace(model.claim(fresh, NOW, 60_000), cancel_requested=True),
        "waits for a person": replace(fresh, window=Window(), timeout_ms=600_000),
        "window over": replace(fresh, window=Window(), timeout_ms=1),
        "cancelled": model.fail(fresh, NOW, ErrorCode.CANCELLED, "x"),
    }
    assert {text: jobs_actions.note(job, NOW) for text, job in notes.items()} == {text: text for text in notes}


def test_what_is_not_known_is_left_out() -> None:
    job = made(MemoryJobStore(), 1)
    assert {"leaseUntil", "deliveryError", "messageSentAt"}.isdisjoint(to_json(job, NOW))
    assert full_json(job, (), NOW)["logs"] == []
