"""`cold_start`: what loading the packaged app costs, against a bare app with one tool that says hello.

Each start is a fresh process that drives the real worker library; what counts is the processor time inside the
library's requests that import and index the app. Bounds, of medians over interleaved rounds:

    with the shipped tools     at most 1.3 of the bare app
    each further 20 tools      at most 1.05 of the app before, each of two steps by itself

The further tools are what `dev.py new` makes, decorated ones and contracts in turn. The first call after the
load is reported without a bound. Exit code 1 when a bound is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from infra.local.dev import package, paths, scaffold
from shared.settings import PLACEHOLDER_SEAL_KEY
from tests.benchmarks.measure import median, ratios, report

#: Fewer cannot tell 5 % from noise.
ROUNDS = 41
SHIPPED_BOUND = 1.3
GROWTH_BOUND = 1.05
STEP = 20
BARE = Path(__file__).parent / "apps" / "bare"
PROFILE = json.dumps({"csv": "city,people\nOslo,700000\nBergen,290000\n"})

type Figures = dict[str, float]


def packaged(folder: Path, further: int) -> Path:
    """The app with so many further tools, as its package unpacks."""
    source, unpacked = folder / f"source-{further}", folder / f"app-{further}"
    for name in ("shared", "tools"):
        shutil.copytree(paths.REPO / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("function_app.py", "host.json", "requirements.txt"):
        shutil.copyfile(paths.REPO / name, source / name)
    for number in range(further):
        plan = scaffold.plan(
            f"further-{chr(97 + number // 26)}{chr(97 + number % 26)}", contract=number % 2 == 1
        )
        for path, text in plan.files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text, "utf-8")
    made = package.make(source, folder / f"app-{further}.zip", _clean())
    assert made.faults == [], made.faults
    zipfile.ZipFile(made.path).extractall(unpacked)
    return unpacked


def start(app: Path, *call: str) -> Figures:
    """The figures of one start."""
    command = [sys.executable, "-m", "tests.benchmarks.cold_probe", str(app), *call]
    environment = {
        **_clean(),
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": "some-token",
        "TOOLBOX_SEAL_KEY": PLACEHOLDER_SEAL_KEY,
    }
    done = subprocess.run(
        command, cwd=paths.REPO, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{app.name} could not be started:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    return figures


def _clean() -> dict[str, str]:
    """The environment without settings of the app, which would be measured with it."""
    ours = ("MCP_", "TOOLBOX_", "AzureWebJobs", "APPLICATIONINSIGHTS_", "OTEL_", "CONNECTIONS", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def measure(rounds: int) -> list[dict[str, Figures]]:
    with tempfile.TemporaryDirectory(prefix="toolbox-cold-") as temporary:
        # Its modules are compiled beside it, as the package's are.
        bare = shutil.copytree(BARE, Path(temporary) / "bare", ignore=shutil.ignore_patterns("__pycache__"))
        shipped = packaged(Path(temporary), 0)
        starts: dict[str, tuple[Path, tuple[str, ...]]] = {
            "bare": (bare, ("hello",)),
            "shipped": (shipped, ("csv_profile", PROFILE)),
            f"+{STEP}": (packaged(Path(temporary), STEP), ()),
            f"+{2 * STEP}": (packaged(Path(temporary), 2 * STEP), ()),
        }
        for app, call in starts.values():
            start(app, *call)
        # Each app is as often the first as the last of a round: what one leaves behind is no other one's share.
        names = list(starts)
        turns = [names[turn:] + names[:turn] for turn in range(len(names))]
        return [
            {name: start(starts[name][0], *starts[name][1]) for name in turns[number % len(turns)]}
            for number in range(rounds)
        ]


def check(measured: list[dict[str, Figures]], key: str, one: str, other: str) -> float:
    """The ratio of the two apps' medians in one figure."""
    return round(_median(measured, one, key) / _median(measured, other, key), 3)


def _median(measured: list[dict[str, Figures]], name: str, key: str) -> float:
    return statistics.median(figures[name][key] for figures in measured)


def _by(measured: list[dict[str, Figures]], key: str) -> list[Mapping[str, float]]:
    return [{name: figures[key] for name, figures in row.items() if key in figures} for row in measured]


def main(rounds: int = ROUNDS) -> int:
    measured = measure(rounds)
    bounds = {"shipped": SHIPPED_BOUND, f"+{STEP}": GROWTH_BOUND, f"+{2 * STEP}": GROWTH_BOUND}
    is_missed = False
    before = "bare"
    for name in measured[0]:
        row: dict[str, object] = {
            key: median([figures[name][key] for figures in measured])
            for key in ("load_cpu", "load_wall", "process_cpu", "modules")
        }
        if name != "bare":
            ratio, bound = check(measured, "load_cpu", name, before), bounds[name]
            is_missed = is_missed or ratio > bound
            row |= {
                "against": before,
                "ratio": ratio,
                "bound": bound,
                "within_bound": ratio <= bound,
                "ratio_by_pairs": ratios(_by(measured, "load_cpu"), name, before),
                "ratio_wall": check(measured, "load_wall", name, before),
                "ratio_process": check(measured, "process_cpu", name, before),
            }
        report("cold_start", app=name, rounds=rounds, **row)
        before = name
    for name in ("bare", "shipped"):
        calls = {key: median([row[name][key] for row in measured]) for key in ("call_cpu", "call_wall")}
        report("cold_start", first_call=name, rounds=rounds, **calls)
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
