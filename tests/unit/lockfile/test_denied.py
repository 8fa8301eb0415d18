"""A tool of another server that the policy lets nobody use is no trigger, and asks for nothing at a start."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shared.upstream.lock import LOCK_FILE, Lock
from tests.unit.lockfile.conftest import LockedApp
from tests.unit.upstream.test_lock import TOOL

NAMES = "import function_app\n[tool.name for tool in function_app.toolbox.tools]"


@pytest.mark.parametrize("locked", [True, False], ids=["with a lock", "without"])
def test_a_tool_that_is_denied_to_all_needs_no_seal_key(app: LockedApp, locked: bool) -> None:
    """With `tools.lock.json` as without it: jobs are what a key is needed for, and this is none."""
    other = replace(TOOL, name="docs_other", tool="other")
    (app.folder / LOCK_FILE).write_text(Lock("safe", (TOOL, other)).to_text())
    if locked:
        app.lock()
    denied = json.dumps({"deny": ["mcp:docs:*"]})
    names, _ = app.run(NAMES, TOOLBOX_SEAL_KEY="", TOOLBOX_UPSTREAM_POLICY=denied)
    assert "job_status" in names
    assert not {TOOL.name, other.name} & set(names)

    some = json.dumps({"deny": ["mcp:docs:other"]})
    script = "try:\n import function_app\n said = ''\nexcept Exception as error:\n said = str(error)\nsaid"
    said, _ = app.run(script, TOOLBOX_SEAL_KEY="", TOOLBOX_UPSTREAM_POLICY=some)
    assert said.startswith("TOOLBOX_SEAL_KEY is not set")
    assert f"need it ({TOOL.name})" in said
