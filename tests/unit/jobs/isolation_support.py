"""Tools that run in processes of their own, a worker that runs them, and how to look at what they leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared.contract.envelope import CallPlan
from shared.contract.tool import find_contracts
from shared.jobs import answers
from shared.jobs.isolation.recipe import ToolHomes
from shared.jobs.model import Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.submit import submit
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool.call import ToolCall
from shared.tool.discovery import find_tools
from shared.tool.handler import Handler, ToolEntry
from shared.tool.spec import ExecutionMode, Isolation, JsonObject, Mode, ToolSpec

ROOT = Path(__file__).resolve().parents[3]
SEALER = Sealer((bytes(range(32)),))
SETTINGS = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

DECORATED = '''
import asyncio

from shared.tool import Context, ToolError, tool

_MODES = {"execution_modes": ("inline", "headless"), "isolation": "process"}


@tool(**_MODES)
def adds(n: int, *, context: Context) -> dict[str, int]:
    """Adds one."""
    context.update_progress(40, "adding")
    context.logger.info("first")
    context.logger.warn({"second": n})
    context.update_progress(3.7)
    context.update_progress(float("nan"), object)
    return {"n": n + 1}


@tool(**_MODES)
async def adds_later(n: int) -> int:
    """Adds one."""
    await asyncio.sleep(0)
    return n + 1


@tool(**_MODES)
def fails(how: str, *, context: Context) -> dict[str, int]:
    """Fails."""
    if how == "ToolError":
        raise ToolError(f"No \\ud800 delimiter for {context.auth_token}.")
    if how == "ValueError":
        raise ValueError(f"no \\ud800 {context.auth_token}")
    return {"a": "text"}


@tool
def wrong(n: object(), /) -> int:
    """A declaration with a fault, beside good ones."""
'''
ACTS = '''
"""Does what it is asked."""

import builtins
import json
import os
import re
import signal
import subprocess
import sys
import time

import beside
from shared.errors import JobCancelledError


def invokeHeadless(input, context):
    return globals()[input["do"]](input, context)


def own_error(input, context):
    class MyError(JobCancelledError):
        pass
    raise MyError("enough")


def raises(input, context):
    if input["what"] == "path":
        raise FileNotFoundError(f"no {JobCancelledError.__init__.__code__.co_filename}")
    raise getattr(builtins, input["what"])(f"no {context.authToken}")


def wrong_result(input, context):
    return [1]


def keeps_files(input, context):
    from shared.apis import toolboxAPI
    from shared.apis.toolbox.files import _folder
    toolboxAPI.fileSystem.writeText("a.txt", "x")
    if input.get("fails"):
        raise ValueError(str(_folder()))
    return {"folder": str(_folder())}


def tells_a_token(input, context):
    import logging
    from shared import redaction
    # As a token that was got for a connection, in here.
    redaction.remember("sentinel-of-a-connection")
    context.logger.info("got sentinel-of-a-connection")
    context.updateProgress(50, "with sentinel-of-a-connection")
    logging.getLogger("tool").error("used sentinel-of-a-connection")
    if input.get("fails"):
        raise ValueError("no sentinel-of-a-connection")
    return {"token": "sentinel-of-a-connection"}


def exit(input, context):
    os._exit(input["code"])


def signalled(input, context):
    os.kill(os.getpid(), input["signal"])
    time.sleep(60)


def crash(input, context):
    import ctypes
    ctypes.string_at(0)


def memory(input, context):
    return {"much": len(bytearray(1 << 60))}


def prints(input, context):
    print("x" * 100_000)
    sys.stdout.buffer.write(b"\\x00\\x00\\x00\\x05hello")
    print("to stderr", file=sys.stderr)
    os.write(1, b"raw")
    try:
        given = builtins.input()
    except EOFError:
        given = None
    subprocess.run([sys.executable, "-c", "print('from another process')"], check=True)
    return {"given": given}


def big(input, context):
    return {"text": "ä" * input["size"]}


def facts(input, context):
    with open("/proc/self/cmdline") as file:
        line = file.read()
    from shared.apis import toolboxAPI
    return {
        "line": line, "environ": dict(os.environ), "token": context.authToken, "beside": beside.word,
        "tool": context.tool_name, "id": context.toolId, "mode": context.invocationMode, "owner": context.owner,
        "job": context.jobId, "attempt": context.attempt, "timeout": context.timeoutMs,
        "call": context.call.to_json(), "launch": toolboxAPI.invocation.getLaunchContext(),
        "path": sys.path, "pid": os.getpid(), "main": sys.modules["__main__"].__file__,
    }


def tree(input, context):
    """Starts processes that would outlive a plain kill, and does not come back."""
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    pids = [os.getpid()]
    for options in ({}, {"process_group": 0}, {"start_new_session": True}):
        pids.append(subprocess.Popen(sleep, **options).pid)
    forked = os.fork()
    if not forked:
        time.sleep(60)
    _tell(input, [*pids, forked])
    if input.get("sleeps"):
        time.sleep(60)
    re.match("(a+)+$", "a" * 50 + "b")


def leaves(input, context):
    pids = [os.getpid(), subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid]
    return {"pids": pids}


def listens(input, context):
    _tell(input, [os.getpid()])
    while not context.cancelled:
        time.sleep(0.005)
    try:
        context.update_progress(99)
    except BaseException as error:
        _tell(input, [os.getpid(), repr(error)])
        raise


def floods(input, context):
    with open(input["file"], "wb") as file:
        for number in range(input["lines"]):
            context.logger.info(f"line {number} " + "x" * 100)
            os.pwrite(file.fileno(), b"%8d" % number, 0)
    return {"done": True}


def files(input, context):
    links = [context.artifacts.write("a.txt", "text")]
    links.append(context.artifacts.write("b.bin", bytes(range(256)) * 20_000))

    def parts():
        for number in range(3):
            context.logger.info(f"part {number}")
            yield b"x" * number
    links.append(context.artifacts.write("c.csv", parts(), "text/csv"))
    faults = []
    for name, data in (("../d", b""), ("e", 5), ("f", iter(["text"]))):
        try:
            context.artifacts.write(name, data)
        except Exception as error:
            faults.append([type(error).__name__, str(error)])
    links.append(context.artifacts.write("h", b""))
    return {"links": [[link.uri, link.name, link.mime_type, link.size] for link in links], "faults": faults}


def file_in_thread(input, context):
    import threading
    begun = threading.Event()

    def slow():
        yield b"x"
        begun.set()
        time.sleep(60)
    threading.Thread(target=context.artifacts.write, args=("slow", slow()), daemon=True).start()
    begun.wait()
    return {"n": 1}


def modules(input, context):
    return {"modules": sorted(sys.modules)}


def nested(input, context):
    async def later():
        return {"n": 1}
    return later()


def thread_left(input, context):
    import threading
    threading.Thread(target=time.sleep, args=(60,)).start()
    return {"n": 1}


def at_exit(input, context):
    import atexit
    atexit.register(_tell, input, ["exited"])
    return {"n": 1}


def records(input, context):
    import logging
    logging.getLogger("toolbox.tool.acts").warning("of %s", context.auth_token)
    context.call.logger.warning("of the call")
    return {"n": 1}


def forks(input, context):
    import multiprocessing
    forked = multiprocessing.get_context("fork").Process(target=context.logger.info, args=("from a fork",))
    forked.start()
    forked.join(20)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(len, [[1, 2]])
    return {"code": forked.exitcode, "found": found}


def _tell(input, value):
    with open(input["file"] + ".new", "w") as file:
        json.dump(value, file)
    os.replace(input["file"] + ".new", input["file"])
'''


def contract(folder: Path, code: str, **agents: Any) -> None:
    folder.mkdir()
    config = {
        "agents": {
            "version": "1.0.0",
            "invokable": True,
            "executionModes": ["headless", "inline"],
            "isolation": "process",
            **agents,
        }
    }
    (folder / "pptb.config.json").write_text(json.dumps(config))
    (folder / "headless.py").write_text(code)


@dataclass(frozen=True)
class InThread:
    """The same tool without its isolation."""

    entry: ToolEntry

    @property
    def spec(self) -> ToolSpec:
        spec = self.entry.spec
        return replace(spec, rules=replace(spec.rules, isolation=Isolation.THREAD))

    def load(self) -> Handler:
        return self.entry.load()


@dataclass(frozen=True)
class Ended:
    job: Job
    result: JsonObject | None
    lines: list[str]

    @property
    def seen(self) -> tuple[object, ...]:
        job = self.job
        return job.status, job.error_code, job.error, job.progress_percent, self.result, self.lines


class Bench:
    """The tools of a folder, a store and a worker."""

    def __init__(self, folder: Path) -> None:
        contracts = find_contracts(folder)
        assert contracts.faults == []
        self.found = find_tools(folder, (), contracts.entries)
        self.homes = ToolHomes(folder, self.found.homes)
        self.store = MemoryJobStore()

    def worker(self, *, in_thread: bool = False, renew_ms: int = 20_000) -> Worker:
        tools = {name: InThread(entry) if in_thread else entry for name, entry in self.found.tools.items()}
        settings = SETTINGS._replace(lease_renew_ms=renew_ms)
        return Worker(tools, self.store, SEALER, settings, homes=self.homes)

    async def submit(
        self, name: str, arguments: JsonObject, timeout_ms: int = 30_000, token: str | None = None
    ) -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, timeout_ms, token)
        spec = self.found.tools[name].spec
        return await submit(
            spec,
            arguments,
            plan,
            owner="default",
            store=self.store,
            sealer=SEALER,
            call=ToolCall(tool_name=name),
        )

    async def arun(self, name: str, arguments: JsonObject, worker: Worker, **options: Any) -> Ended:
        job = await self.submit(name, arguments, **options)
        await worker.handle(json.dumps({"jobId": job.job_id}))
        return self.ended(job)

    def run(self, name: str, arguments: JsonObject, *, in_thread: bool = False, **options: Any) -> Ended:
        return asyncio.run(self.arun(name, arguments, self.worker(in_thread=in_thread), **options))

    def act(self, do: str, timeout_ms: int = 30_000, **arguments: Any) -> Ended:
        return self.run("acts", {"do": do, **arguments}, timeout_ms=timeout_ms, token="sentinel-token")

    def ended(self, job: Job) -> Ended:
        found = self.store.with_logs(job.job_id)
        assert found is not None
        result = None
        if found[0].status is Status.COMPLETED:
            result = answers.result_of(found[0], self.store).structured
        return Ended(found[0], result, [line.message for line in found[1]])


def is_gone(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat[stat.rindex(")") + 2] in "ZX"


def wait_for(condition: Callable[[], Any], seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError("it did not happen")


def told(file: Path) -> Any:
    with contextlib.suppress(FileNotFoundError):
        return json.loads(file.read_text())
