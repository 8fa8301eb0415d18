"""One cold start: `python -m tests.benchmarks.cold_probe APP_DIR [TOOL ARGUMENTS]`, in a process of its own.

Loads the app through the worker library and prints one JSON line, in ms:

    load_cpu, load_wall   inside the library's own requests: the app is imported and indexed
    process_cpu           of the whole process until then, interpreter and library included
    call_cpu, call_wall   the first call of the tool, if one is named
    modules               how many modules the app's load has brought
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def probe(app: Path, tool: str = "", arguments: str = "{}") -> None:
    from infra.local.host import worker
    from infra.local.host.values import Kind, Value

    # The app's own folder comes first, as in the real worker; the repository is not there for it.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path.cwd().resolve()]
    worker.add_to_path(app)
    os.chdir(app)
    spent = {"cpu": 0.0, "wall": 0.0}

    def timed(name: str) -> None:
        original = getattr(worker.library, name)

        async def request(message: Any) -> Any:
            cpu, wall = time.process_time(), time.perf_counter()
            try:
                return await original(message)
            finally:
                spent["cpu"] += time.process_time() - cpu
                spent["wall"] += time.perf_counter() - wall

        setattr(worker.library, name, request)

    for name in ("worker_init_request", "functions_metadata_request", "function_load_request"):
        timed(name)
    modules = len(sys.modules)

    async def run() -> dict[str, float]:
        loaded = await worker.Worker.load(app)
        figures: dict[str, float] = {
            "load_cpu": spent["cpu"],
            "load_wall": spent["wall"],
            "process_cpu": time.process_time(),
        }
        brought = len(sys.modules) - modules
        if tool:
            function = next(one for one in loaded.functions if one.bindings[0].fields.get("toolName") == tool)
            payload = Value(Kind.JSON, json.dumps({"name": tool, "arguments": json.loads(arguments)}))
            cpu, wall = time.process_time(), time.perf_counter()
            outcome = await loaded.invoke(function, "first", [(function.bindings[0].name, payload)], {})
            figures |= {"call_cpu": time.process_time() - cpu, "call_wall": time.perf_counter() - wall}
            assert outcome.ok, outcome.error
            assert '"isError":true' not in str(outcome.returned).replace("\\", ""), outcome.returned
        return {name: seconds * 1000 for name, seconds in figures.items()} | {"modules": brought}

    print(json.dumps(asyncio.run(run())), flush=True)
    # What the app would still write in the background (its invocation log) has no storage here.
    os._exit(0)


if __name__ == "__main__":
    probe(Path(sys.argv[1]).resolve(), *sys.argv[2:])
