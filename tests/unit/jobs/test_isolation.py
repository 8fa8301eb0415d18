"""Tools in processes of their own, run by the real worker: the answers of a thread, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import DeclarationError, JobCancelledError, ToolError
from shared.jobs import model
from shared.jobs.isolation import frames, process, run
from shared.jobs.isolation.recipe import recipe_of
from shared.jobs.model import ErrorCode, Status
from shared.tool.call import ToolCall
from shared.tool.context import Context, Sink
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.jobs.isolation_support import (
    ACTS,
    DECORATED,
    LINUX,
    ROOT,
    Bench,
    Ended,
    contract,
    is_gone,
    told,
    wait_for,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("app")
    tools = root / "apart_tools"
    (tools / "plain").mkdir(parents=True)
    (tools / "plain" / "__init__.py").write_text(DECORATED)
    (tools / "breaks").mkdir()
    (tools / "breaks" / "__init__.py").write_text(
        "import os\nfrom shared.tool import tool\n"
        "if 'BREAKS' in os.environ:\n    raise RuntimeError(os.environ['BREAKS'])\n"
        "@tool(execution_modes=('headless',), isolation='process')\n"
        "def breaks() -> str:\n    'Breaks.'\n    return 'well'\n"
    )
    contract(tools / "acts", ACTS)
    (tools / "acts" / "beside.py").write_text("word = 'found'")
    object_export = """
        class _Tool:
            async def invokeHeadless(self, input, context):
                context.updateProgress(60, "half way")
                return {"greeting": f"hello {input['name']}"}
        default = _Tool()
    """
    contract(tools / "object", textwrap.dedent(object_export))
    loads_badly = "import os\nos._exit(7) if os.environ.get('CRASHES') else None\nraise ValueError('at import')"
    contract(tools / "unloadable", loads_badly, executionModes=["headless"])
    sys.path.append(str(root))
    yield tools
    sys.path.remove(str(root))
    for name in [name for name in sys.modules if name.startswith("apart_tools")]:
        del sys.modules[name]


@pytest.fixture
def bench(folder: Path) -> Bench:
    return Bench(folder)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("adds", {"n": 1}),
        ("adds_later", {"n": 1}),
        ("object", {"name": "Ana"}),
        ("fails", {"how": "ToolError"}),
        ("fails", {"how": "ValueError"}),
        ("fails", {"how": "returns"}),
        ("acts", {"do": "own_error"}),
        ("acts", {"do": "raises", "what": "KeyError"}),
        ("acts", {"do": "raises", "what": "SystemExit"}),
        ("acts", {"do": "raises", "what": "StopIteration"}),
        ("acts", {"do": "raises", "what": "path"}),
        ("acts", {"do": "wrong_result"}),
        ("acts", {"do": "nested"}),
        ("acts", {"do": "no_such_thing"}),
    ],
)
def test_a_tool_answers_as_it_does_on_a_thread(bench: Bench, name: str, arguments: JsonObject) -> None:
    apart = bench.run(name, arguments, token="sentinel-token")
    assert apart.seen == bench.run(name, arguments, token="sentinel-token", in_thread=True).seen
    assert "sentinel" not in repr(bench.store.rows)


def test_reports_arrive_in_their_order(bench: Bench) -> None:
    ended = bench.run("adds", {"n": 1})
    assert (ended.job.status, ended.result) == (Status.COMPLETED, {"n": 2})
    assert ended.lines == ["running (attempt 1 of 1)", "first", "{'second': 1}", "completed"]

    sink = Told()
    asyncio.run(run.run_isolated(recipe(bench, "adds"), make_context("adds", {"n": 1}, sink=sink), str))
    assert sink.reports == [
        (40, "adding"),
        ("info", "first"),
        ("warn", "{'second': 1}"),
        (3, None),
        (None, "<class 'object'>"),
    ]


def test_an_exceptions_traceback_goes_to_the_log_only(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    ended = bench.act("raises", what="KeyError")
    assert ended.job.error == "Tool 'acts' failed: KeyError: 'no [redacted]'"
    assert "Traceback" in caplog.text
    assert "in raises" in caplog.text
    assert "sentinel" not in caplog.text


@pytest.mark.parametrize(
    ("do", "arguments", "said"),
    [
        ("exit", {"code": 3}, "its process ended with exit code 3"),
        ("exit", {"code": 0}, "its process ended with exit code 0"),
        ("crash", {}, "its process ended with signal SIGSEGV"),
        ("signalled", {"signal": signal.SIGKILL}, "its process ended with signal SIGKILL; the system does"),
        ("memory", {}, "its process ran out of memory"),
    ],
)
def test_a_process_that_ends_by_itself_fails_the_job(
    bench: Bench, do: str, arguments: JsonObject, said: str
) -> None:
    ended = bench.act(do, **arguments)
    assert (ended.job.status, ended.job.error_code) == (Status.FAILED, ErrorCode.TOOL_ERROR)
    assert ended.job.error.startswith(f"Tool 'acts' failed: {said}")
    assert ended.lines[-1] == ended.job.error


def test_an_entry_that_runs_apart_only_is_not_loaded_by_the_app(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError, match="process of its own"):
        bench.found.tools["unloadable"].load().run({}, None)
    error = bench.run("unloadable", {}).job.error
    assert "headless.py cannot be loaded: ValueError in headless.py, line" in error
    assert "at import" not in error
    monkeypatch.setenv("CRASHES", "1")
    assert "exit code 7" in bench.run("unloadable", {}).job.error


def test_a_module_that_breaks_in_the_process_only_is_told_without_what_it_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BREAKS", "sentinel in /srv/secret")
    job = bench.run("breaks", {}).job
    assert job.error == "tool 'breaks' cannot be loaded: RuntimeError in __init__.py, line 4"
    assert job.error_code is ErrorCode.TOOL_ERROR
    assert "sentinel" not in repr(bench.store.rows)
    assert "RuntimeError: sentinel in /srv/secret" in caplog.text


@LINUX
def test_the_deadline_ends_the_process_and_all_that_it_started(bench: Bench, tmp_path: Path) -> None:
    """Also while it keeps Python busy, and whatever groups and sessions its children have made."""
    files = {sleeps: tmp_path / f"pids-{sleeps}" for sleeps in (False, True)}

    async def both() -> list[Ended]:
        worker = bench.worker()
        arguments = ({"do": "tree", "file": str(file), "sleeps": sleeps} for sleeps, file in files.items())
        return await asyncio.gather(*(bench.arun("acts", each, worker, timeout_ms=2500) for each in arguments))

    for ended in asyncio.run(both()):
        assert (ended.job.error_code, ended.job.error) == (
            ErrorCode.TIMEOUT,
            "Headless execution timed out after 2500 ms",
        )
    for file in files.values():
        pids = told(file)
        assert len(pids) == 5
        for pid in pids:
            wait_for(lambda pid=pid: is_gone(pid))  # type: ignore[misc]


@LINUX
def test_what_a_tool_leaves_behind_ends_with_its_job(bench: Bench) -> None:
    result = bench.act("leaves").result
    assert result is not None
    assert all(map(is_gone, result["pids"]))


def test_a_thread_that_is_left_behind_is_not_waited_for(bench: Bench) -> None:
    assert bench.act("thread_left").result == {"n": 1}


def test_what_is_registered_for_the_end_happens(bench: Bench, tmp_path: Path) -> None:
    assert bench.act("at_exit", file=str(tmp_path / "end")).result == {"n": 1}
    assert told(tmp_path / "end") == ["exited"]


def test_what_a_tool_prints_disturbs_nothing(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    assert bench.act("prints").result == {"given": None}
    out, err = capfd.readouterr()
    assert out == ""
    for text in ("x" * 100_000, "hello", "to stderr", "raw", "from another process"):
        assert text in err


def test_records_of_logging_go_to_the_apps_log(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    assert bench.act("records").result == {"n": 1}
    found = [(record.name, record.levelname, record.message) for record in caplog.records]
    assert ("toolbox.tool.acts", "WARNING", "of [redacted]") in found
    assert ("toolbox.tool.acts", "WARNING", "[] of the call") in found


def test_processes_that_the_tool_forks_or_spawns_disturb_nothing(bench: Bench) -> None:
    ended = bench.act("forks")
    assert ended.result == {"code": 0, "found": [2]}
    assert ended.lines == ["running (attempt 1 of 1)", "completed"]


@pytest.mark.parametrize("size", [2_600_000, 33_000_000])
def test_large_results_pass(bench: Bench, size: int) -> None:
    result = bench.act("big", size=size).result
    assert result is not None
    assert len(result["text"]) == size


def test_a_result_that_is_too_large_is_refused(bench: Bench) -> None:
    ended = bench.act("big", size=36_000_000)
    assert ended.job.error_code is ErrorCode.INVALID_RESULT
    assert "64 MiB" in ended.job.error


def test_files_are_stored_as_on_a_thread(bench: Bench) -> None:
    apart = bench.act("files")
    assert apart.result is not None, apart.job.error
    on_thread = bench.run("acts", {"do": "files"}, in_thread=True)
    assert on_thread.result is not None
    assert json.dumps(apart.result).replace(apart.job.job_id, "ID") == json.dumps(on_thread.result).replace(
        on_thread.job.job_id, "ID"
    )
    assert apart.lines == on_thread.lines
    stored = {
        name.rpartition("/")[2]: data for name, data in bench.store.blobs.items() if apart.job.job_id in name
    }
    assert stored == {"a.txt": b"text", "b.bin": bytes(range(256)) * 20_000, "c.csv": b"xxx", "h": b""}


def test_a_file_that_storage_refuses_is_an_error_of_the_tools(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str, data: Any, mime_type: str) -> None:
        next(iter(data))
        raise ConnectionError("sentinel of storage")

    monkeypatch.setattr(bench.store, "put_artifact", broken)
    ended = bench.act("files")
    assert ended.job.error == "The artifact could not be stored (ConnectionError)."


def test_a_result_in_the_middle_of_a_file_ends_both(bench: Bench) -> None:
    assert bench.act("file_in_thread").result == {"n": 1}
    assert not any("slow" in name for name in bench.store.blobs)


@LINUX
def test_the_token_travels_through_the_pipe_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in process.OWN_SECRETS:
        monkeypatch.setenv(name, "own-secret")
    monkeypatch.setenv("A_SETTING_OF_THE_TOOLS", "kept")
    context = make_context("acts", {"do": "facts", "n": 1}, timeout_ms=30_000)
    # Not through the worker, which takes the token out of what is stored.
    found = asyncio.run(run.run_isolated(recipe(bench, "acts"), context, str)).structured
    assert found is not None
    assert "sentinel" not in found["line"]
    assert "sentinel" not in str(found["environ"])
    assert "own-secret" not in str(found["environ"])
    assert found["environ"]["A_SETTING_OF_THE_TOOLS"] == "kept"
    assert found["pid"] != os.getpid()
    told_to_tool = {name: found[name] for name in ("token", "tool", "id", "mode", "owner", "job", "attempt")}
    assert told_to_tool == {
        "token": "sentinel-token",
        "tool": "acts",
        "id": "the-id",
        "mode": "two-way",
        "owner": "ana",
        "job": "the-job",
        "attempt": 2,
    }
    assert found["beside"] == "found"
    assert found["call"] == {"tool_name": "ACTS", "headers": {"user-agent": "x"}}
    assert found["launch"]["n"] == 1
    assert found["launch"]["__pptb"]["expectsResponse"] is True
    assert found["path"] == process.import_path()


def test_a_process_loads_little_beside_its_tool(bench: Bench) -> None:
    """The start of a process is part of each of its jobs' time."""
    result = bench.act("modules").result
    assert result is not None
    heavy = ("asyncio", "azure", "cryptography", "jsonschema", "pydantic", "shared.jobs.worker", "werkzeug")
    assert [name for name in result["modules"] if name.startswith(heavy)] == []


def test_the_working_folder_does_not_matter(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise ImportError('a stranger')")
    (tmp_path / "shared").mkdir()
    monkeypatch.chdir(tmp_path)
    assert bench.run("object", {"name": "Ana"}).result == {"greeting": "hello Ana"}


def test_a_lost_lease_is_told_to_the_tool(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "told"

    async def lose() -> Ended:
        worker = bench.worker(renew_ms=20)
        job = await bench.submit("acts", {"do": "listens", "file": str(file)})
        handled = asyncio.create_task(worker.handle(json.dumps({"jobId": job.job_id})))
        await asyncio.to_thread(wait_for, lambda: told(file))
        while True:
            # The worker's own renewals come in between.
            with contextlib.suppress(Exception):
                bench.store.write(
                    model.fail(bench.ended(job).job, model.utc_now(), ErrorCode.WORKER_LOST, "gone")
                )
                break
        await handled
        return bench.ended(job)

    ended = asyncio.run(lose())
    assert (ended.job.status, ended.job.error) == (Status.FAILED, "gone")
    pid, error = told(file)
    assert error == "JobCancelledError('The job has moved on without this worker.')"
    assert is_gone(pid)


class Told(Sink):
    """A sink that tells when its job is not wanted any more."""

    def __init__(self) -> None:
        self.reason = ""
        self.callback: Callable[[], None] = lambda: None
        self.reports: list[tuple[object, object]] = []

    @property
    def cancelled(self) -> bool:
        return bool(self.reason)

    def on_unwanted(self, callback: Callable[[], None]) -> None:
        self.callback = callback

    def cancel(self, reason: str) -> None:
        self.reason = reason
        self.callback()

    def progress(self, percent: object, message: object) -> None:
        if self.reason:
            raise JobCancelledError(self.reason)
        self.reports.append((percent, message))

    def log(self, level: str, message: object) -> None:
        self.reports.append((level, message))


@LINUX
@pytest.mark.parametrize("do", ["listens", "tree"])
def test_cancelling_is_told_and_then_enforced(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: str
) -> None:
    if do == "tree":
        monkeypatch.setattr(run, "GRACE", 0.2)
    file, sink = tmp_path / "told", Told()
    context = make_context("acts", {"do": do, "file": str(file)}, sink=sink)

    async def cancel() -> None:
        running = asyncio.create_task(run.run_isolated(recipe(bench, "acts"), context, str))
        await asyncio.to_thread(wait_for, lambda: told(file))
        sink.cancel("not wanted")
        with pytest.raises(JobCancelledError, match="not wanted"):
            await running

    asyncio.run(cancel())
    found = told(file)
    assert is_gone(found[0])
    if do == "listens":
        assert found[1] == "JobCancelledError('not wanted')"


@LINUX
def test_a_cancelled_call_leaves_no_process(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "told"
    context = make_context("acts", {"do": "tree", "file": str(file)})

    async def cancel() -> None:
        running = asyncio.create_task(run.run_isolated(recipe(bench, "acts"), context, str))
        await asyncio.to_thread(wait_for, lambda: told(file))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())
    assert is_gone(told(file)[0])


@LINUX
@pytest.mark.parametrize("by", ["lifeline", "standard input"])
def test_a_killed_worker_leaves_no_process(bench: Bench, tmp_path: Path, by: str) -> None:
    """By its watcher, even while the tool keeps Python busy; by itself, where there can be none."""
    file = tmp_path / "pids"
    script = f"""
        import asyncio, json, sys
        from shared.jobs.isolation import process, run
        from shared.tool.context import Context
        from shared.tool.spec import ExecutionMode, Mode
        if {by != "lifeline"}:
            process.Lifeline.argument, process.Lifeline.passed = "-", ()
        given = json.load(sys.stdin)
        context = Context(
            tool_id="acts", tool_name="acts", invocation_mode=Mode.TWO_WAY, owner="ana", timeout_ms=60_000,
            execution_mode=ExecutionMode.HEADLESS, correlation_id="x", arguments=given["arguments"],
        )
        asyncio.run(run.run_isolated(given["recipe"], context, str))
    """
    arguments = {"do": "tree", "file": str(file), "sleeps": by != "lifeline"}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, cwd=ROOT, text=True
    ) as parent:
        assert parent.stdin is not None
        json.dump({"recipe": recipe(bench, "acts"), "arguments": arguments}, parent.stdin)
        parent.stdin.close()
        pids = wait_for(lambda: told(file))
        parent.kill()
    for pid in pids:
        # Without its watcher, a tool's process ends alone.
        if pid == pids[0] or by == "lifeline":
            wait_for(lambda pid=pid: is_gone(pid))  # type: ignore[misc]
        else:
            os.kill(pid, signal.SIGKILL)


def test_a_flood_waits_for_its_reader(bench: Bench, tmp_path: Path) -> None:
    file, go_on = tmp_path / "count", threading.Event()

    class Slow(Told):
        count = 0

        def log(self, level: str, message: object) -> None:
            assert go_on.wait(20)
            self.count += 1

    sink = Slow()
    context = make_context("acts", {"do": "floods", "lines": 50_000, "file": str(file)}, sink=sink)

    async def flood() -> int:
        running = asyncio.create_task(run.run_isolated(recipe(bench, "acts"), context, str))
        written, seen = 0, -1
        while not written or written != seen:
            seen = written
            await asyncio.sleep(0.1)
            with contextlib.suppress(FileNotFoundError, ValueError):
                written = int(file.read_bytes())
        go_on.set()
        assert (await running).structured == {"done": True}
        return written

    # What the pipe holds, and no more.
    assert 0 < asyncio.run(flood()) < 5_000
    assert sink.count == 50_000


def test_of_a_flood_the_newest_lines_are_kept(bench: Bench, tmp_path: Path) -> None:
    ended = bench.act("floods", lines=20_000, file=str(tmp_path / "count"))
    assert ended.result == {"done": True}
    assert len(ended.lines) <= 200
    assert ended.lines[-2].startswith("line 19999")


def test_a_python_that_cannot_be_started_fails_the_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    ended = bench.act("nested")
    assert ended.job.error == (
        "Tool 'acts' failed: its process could not be started: No such file or directory"
    )


def test_a_tool_that_is_in_no_folder_is_never_run_on_a_thread_instead(bench: Bench) -> None:
    with pytest.raises(DeclarationError, match="'adds' is in no folder"):
        recipe_of(bench.found.tools["adds"], None)


def test_every_field_of_a_context_travels() -> None:
    """A new field of `Context` that has no JSON form needs a way of its own into the process."""
    context = make_context("acts", {"n": 1})
    child = process.Child({}, context, str, lambda: None, Unasked())
    sent = frames.packed(child._launch())
    assert set(Context.__dataclass_fields__) - set(json.loads(sent[4:])["context"]) == {
        "artifacts",
        "call",
        "checkpoint",
        "connections",
        "sink",
    }


class Unasked:
    """For processes that ask for nothing."""

    def asked(self, message: JsonObject, answer: Callable[[JsonObject], None]) -> None:
        raise AssertionError("nothing was to be asked")

    def drop(self, number: int) -> None:
        raise AssertionError("nothing was to be dropped")


@pytest.mark.parametrize(
    "sent", [b"\0", b"\0\0\0\x05ab", b"\xff\xff\xff\xff", b"\0\0\0\x02no", b"\0\0\0\x02[]"]
)
def test_what_is_no_frame_is_refused(sent: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, sent)
    os.close(writing)
    with pytest.raises(frames.FrameError):
        frames.read(reading)
    os.close(reading)


def recipe(bench: Bench, name: str) -> JsonObject:
    return recipe_of(bench.found.tools[name], bench.homes)


def make_context(name: str, arguments: JsonObject, *, timeout_ms: int = 30_000, **more: Any) -> Context:
    return Context(
        tool_id="the-id",
        tool_name=name,
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.HEADLESS,
        correlation_id="mcp-x",
        job_id="the-job",
        attempt=2,
        timeout_ms=timeout_ms,
        owner="ana",
        arguments=arguments,
        auth_token="sentinel-token",
        call=ToolCall(tool_name="ACTS", headers={"user-agent": "x"}),
        **more,
    )


# What a process has of its own.


@pytest.mark.parametrize("fails", [False, True])
def test_the_files_of_an_invocation_go_with_its_process(bench: Bench, fails: bool) -> None:
    ended = bench.act("keeps_files", fails=fails)
    told = ended.job.error if fails else str((ended.result or {})["folder"])
    where = Path(re.search(r"/[^ ]*toolbox-files-[^ ]*", told)[0].rstrip("."))  # type: ignore[index]
    assert where.parent.is_dir()
    assert not where.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_tokens_that_a_process_got_stay_in_it(
    bench: Bench, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    ended = bench.act("tells_a_token", fails=fails)
    job = ended.job
    assert "got [redacted]" in ended.lines
    assert "used [redacted]" in caplog.text
    if fails:
        assert "ValueError: no [redacted]" in job.error
    else:
        assert ended.result == {"token": "[redacted]"}
    assert "sentinel-of-a-connection" not in f"{bench.store.rows} {bench.store.blobs} {caplog.text}"
