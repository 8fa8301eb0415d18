"""The MCP conformance suite (npm, nobody here wrote it) against a running app, scenario by scenario.

`conformance.json` says what is to come out of each run: the scenarios in which every check passes, and for the
others the checks that fail, with the reason, which is a limit of the host that this project mirrors. A run that
gives anything else fails, also where it gives more.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local.azurite import Azurite
from tests.acceptance.conftest import ROOT, App, start_app

pytestmark = pytest.mark.acceptance

HERE = Path(__file__).parent
FIXTURE = ROOT / "tests" / "apps" / "conformance"
SUITE = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance"
EXPECTED: Final[dict[str, Any]] = json.loads((HERE / "conformance.json").read_text("utf-8"))
#: Run -> which scenarios, on which wire. There is no requirement set for the oldest of them.
RUNS: Final = {
    "2025-06-18": ("--suite", "all", "--spec-version", "2025-06-18"),
    "2025-11-25": ("--requirements", "2025-11-25"),
    "2026-07-28": ("--requirements", "2026-07-28"),
}
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")

type Outcome = dict[str, list[str]]


@pytest.fixture(scope="module")
def fixture_app(azurite: Azurite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    # Without queues: it must not take the jobs of another app on the same storage.
    folder = tmp_path_factory.mktemp("conformance")
    running = start_app(folder, azurite.connection_string, "--only-triggers", "http,mcp", app_dir=FIXTURE)
    yield running
    assert running.stop() == 0


def run_suite(app: App, options: tuple[str, ...], folder: Path) -> Outcome:
    """Scenario -> the checks in it that failed or warned, sorted; none for one that passed."""
    command = ["node", "--import", (HERE / "conformance_shim.mjs").as_uri(), str(SUITE / "dist" / "index.js")]
    command += ["server", "--url", app.endpoint, "--timeout", "10000", "--output-dir", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)
    # 1: a scenario failed, which many are expected to.
    assert done.returncode in (0, 1), done.stderr
    assert "=== SUMMARY ===" in done.stdout, done.stdout + done.stderr
    outcome: Outcome = {}
    for path in sorted(folder.iterdir()):
        found = _FOLDER.fullmatch(path.name)
        assert found is not None, path.name
        if not is_extension(found["scenario"]):
            checks = json.loads((path / "checks.json").read_text("utf-8"))
            bad = {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")}
            outcome[found["scenario"]] = sorted(bad)
    return outcome


def is_extension(scenario: str) -> bool:
    return any(scenario.startswith(prefix) for prefix in EXPECTED["extensions"])


def listed(run: str) -> Outcome:
    entry = EXPECTED["runs"][run]
    outcome: Outcome = {name: [] for name in entry["pass"]}
    return outcome | {name: failing["checks"] for name, failing in entry["fail"].items()}


@pytest.mark.parametrize("run", RUNS)
def test_the_suite_says_what_is_listed(fixture_app: App, run: str, tmp_path: Path) -> None:
    expected, found = listed(run), run_suite(fixture_app, RUNS[run], tmp_path)
    # Lost is a scenario that did not run, or fails where it was listed as passing; gained is the opposite.
    different = {
        name: {"listed": expected.get(name, "not at all"), "found": found.get(name, "not run")}
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    }
    assert different == {}, "conformance.json says otherwise"


def test_every_expected_failure_has_a_reason() -> None:
    reasons = EXPECTED["reasons"]
    used = {entry["reason"] for run in EXPECTED["runs"].values() for entry in run["fail"].values()}
    assert used == set(reasons)
    assert all(text.strip() for text in [*reasons.values(), *EXPECTED["extensions"].values()])


def test_the_list_was_made_with_the_installed_suite() -> None:
    installed = json.loads((SUITE / "package.json").read_text("utf-8"))["version"]
    wanted = json.loads((ROOT / "package.json").read_text("utf-8"))["devDependencies"]
    assert installed == wanted["@modelcontextprotocol/conformance"] == EXPECTED["suite"]
    assert set(EXPECTED["runs"]) == set(RUNS)


def test_a_failing_tool_says_why(fixture_app: App) -> None:
    """The suite only asks that there is a text; agents need the one that the tool gave."""
    result = fixture_app.call("test_error_handling", {})
    assert result["isError"] is True
    assert result["content"] == [
        {"type": "text", "text": "This tool intentionally returns an error for testing"}
    ]


def test_every_kind_of_block_arrives(fixture_app: App) -> None:
    result = fixture_app.call("every_content_type", {})
    assert result["structuredContent"] == {"blocks": 5}
    by_type = {block["type"]: block for block in result["content"]}
    assert list(by_type) == ["text", "image", "audio", "resource", "resource_link"]
    assert by_type["image"]["mimeType"] == "image/png"
    assert by_type["audio"]["mimeType"] == "audio/wav"
    assert by_type["resource"]["resource"]["blob"] == by_type["image"]["data"]
    assert by_type["resource_link"]["uri"] == "test://static-text"
