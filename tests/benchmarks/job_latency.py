"""`job_latency`: a two-way trivial job, from the call to its result, against a raw loop of the same requests.

Goal: the median at most 1.3 times the loop's. Both have a caller and a worker beside it in one process: the
caller submits and then reads the job's row with the engine's pauses (0.1 s, rising to 1 s); the worker asks the
queue, at once after a message and else every 20 ms. One job at a time; the two take turns on one Azurite.

The first pause hides what a job takes when that is less, so the time until the end is written is given, too.
The reads of the caller are no part of a job's seven requests and are reported apart. The whole app in the local
host stands beside it for orientation: its listener pauses longer when the queue was empty, as Azure's does.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.acceptance.conftest import start_app
from tests.benchmarks.job_engine import Engine, Raw, both_sides, own_azurite, same_requests
from tests.benchmarks.measure import median, ratios, report

ROUNDS = 7
JOBS = 16
#: Seconds between two receives when there was nothing.
POLL = 0.02
APP = Path(__file__).parent / "apps" / "jobs"

#: Seconds of each job: until its end is written, and until its caller has the result.
type Times = tuple[list[float], list[float]]


async def engine_times(engine: Engine) -> Times:
    ended: list[float] = []
    answered = []

    async def work() -> None:
        while len(ended) < JOBS:
            message = await engine.host(engine.queue.receive)
            if message is None:
                await asyncio.sleep(POLL)
                continue
            await engine.handle(message.content)
            ended.append(time.perf_counter() - started)
            await engine.host(engine.queue.delete, message)

    await engine.run(2, 1)  # connections were closed during the other's turn
    started = time.perf_counter()
    worker = asyncio.create_task(work())
    for _ in range(JOBS):
        started = time.perf_counter()
        assert "hello" in await engine.answer(await engine.submit())
        answered.append(time.perf_counter() - started)
    await worker
    return ended, answered


def raw_times(raw: Raw) -> Times:
    ended: list[float] = []
    answered = []

    def work() -> None:
        while len(ended) < JOBS:
            message = raw.queue.receive()
            if message is None:
                time.sleep(POLL)
                continue
            raw.handle(message.content)
            ended.append(time.perf_counter() - started)
            raw.queue.delete(message)

    raw.run(2, 1)
    started = time.perf_counter()
    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(JOBS):
        started = time.perf_counter()
        assert b"hello" in raw.answer(raw.submit())
        answered.append(time.perf_counter() - started)
    worker.join()
    return ended, answered


def whole_app(folder: Path, connection: str, jobs: int = 40) -> list[float]:
    """Milliseconds of each two-way call, one at a time."""
    app = start_app(folder, connection, app_dir=APP)
    found = []
    try:
        for _ in range(jobs):
            started = time.perf_counter()
            result = app.call("trivial", {"text": "hello"}, {"mode": "two-way", "executionMode": "headless"})
            found.append((time.perf_counter() - started) * 1000)
            assert result["structuredContent"]["text"] == "hello"
    finally:
        app.stop()
    return found[jobs // 4 :]


def p95(values: Sequence[float]) -> float:
    return round(statistics.quantiles(values, n=20)[-1], 3)


async def main_async() -> None:
    with own_azurite() as azurite:
        engine, raw = await both_sides(azurite)
        await same_requests(azurite)
        rounds: list[dict[str, float]] = []
        pooled: dict[str, list[float]] = {}
        reads = engine.reads, raw.reads
        for number in range(ROUNDS):
            figures: dict[str, float] = {}
            for name in ("engine", "raw") if number % 2 else ("raw", "engine"):
                times = await (engine_times(engine) if name == "engine" else asyncio.to_thread(raw_times, raw))
                for what, values in zip(("end", "answer"), times, strict=True):
                    milliseconds = [value * 1000 for value in values]
                    figures[f"{name}_{what}"] = statistics.median(milliseconds)
                    figures[f"{name}_{what}_p95"] = p95(milliseconds)
                    pooled.setdefault(f"{name}_{what}", []).extend(milliseconds)
            rounds.append(figures)
        jobs = ROUNDS * JOBS
        report(
            "job_latency",
            p50_ratio=ratios(rounds, "engine_answer", "raw_answer"),
            p95_ratio=ratios(rounds, "engine_answer_p95", "raw_answer_p95"),
            end_p50_ratio=ratios(rounds, "engine_end", "raw_end"),
            end_p95_ratio=ratios(rounds, "engine_end_p95", "raw_end_p95"),
            **{f"{name}_p50_ms": median(values) for name, values in sorted(pooled.items())},
            **{f"{name}_p95_ms": p95(values) for name, values in sorted(pooled.items())},
            waiter_reads_per_job=round((engine.reads - reads[0]) / jobs, 2),
            raw_waiter_reads_per_job=round((raw.reads - reads[1]) / jobs, 2),
        )
        found = await asyncio.to_thread(whole_app, azurite.data_dir, azurite.connection_string)
        report("job_latency", whole_app_p50_ms=median(found), whole_app_p95_ms=p95(found))


def main() -> None:
    asyncio.run(main_async())


if __name__ == "__main__":
    main()
