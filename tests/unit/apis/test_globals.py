"""The names that a headless module has without an import, and what they say on a thread without the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.contract.tool import check_contract
from tests.unit.apis.test_launch_context import Bench


@pytest.fixture(autouse=True)
def resolver() -> Iterator[None]:
    """Connections as the app has them."""
    use_resolver(Environments(ConnectionBook("")).resolve)
    yield
    use_resolver(None)


def run(folder: Path, body: str) -> Any:
    """What a headless entry with this body gives."""
    tool = folder / "sample"
    tool.mkdir()
    config = {"agents": {"version": "1.0.0", "invokable": True, "modes": ["two-way"]}}
    (tool / "pptb.config.json").write_text(json.dumps(config))
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (tool / "headless.py").write_text(f"def invokeHeadless(input, context):\n{lines}")
    checked = check_contract(tool)
    assert checked.errors == []
    return asyncio.run(Bench(checked.tool).answer({"n": 7})).structured


LOOKS = """
import types
from shared import apis
def looks(place):
    return [callable(place.toolboxAPI.getToolContext), callable(place.dataverseAPI.queryData),
            callable(place.powerplatformAPI.Licensing.Get),
            place.toolboxAPI.invocation.getLaunchContext()['n'], hasattr(place, 'document')]
bare = types.SimpleNamespace(
    toolboxAPI=toolboxAPI, dataverseAPI=dataverseAPI, powerplatformAPI=powerplatformAPI)
try:
    is_page = document is not None
except NameError:
    is_page = False
return {'bare': looks(bare), 'window': looks(window), 'globalThis': looks(globalThis),
        'imported': looks(apis), 'document': is_page}
"""


def test_window_and_global_this_carry_the_three_and_there_is_no_document(tmp_path: Path) -> None:
    seen = [True, True, True, 7, False]
    everywhere = dict.fromkeys(("bare", "window", "globalThis", "imported"), seen)
    assert run(tmp_path, LOOKS) == {**everywhere, "document": False}


USES = """
import contextvars, threading
uses = {'context': lambda: toolboxAPI.getToolContext().toolName,
        'connections': lambda: toolboxAPI.connections.getConnections(),
        'settings': lambda: toolboxAPI.settings.getAll(),
        'fileSystem': lambda: toolboxAPI.fileSystem.exists('x'),
        'events': lambda: toolboxAPI.events.getHistory(),
        'launchTool': lambda: toolboxAPI.invocation.launchTool('sample', {}),
        'returnData': lambda: toolboxAPI.invocation.returnData({}),
        'dataverseAPI': lambda: dataverseAPI.queryData('accounts'),
        'iterateQuery': lambda: list(dataverseAPI.iterateQuery('accounts')),
        'powerplatformAPI': lambda: powerplatformAPI.Licensing.Get('x')}
told = {}
def ask(name, use, key):
    try:
        use()
        said = ''
    except Exception as error:
        said = f'{type(error).__name__}: {error}'
    told.setdefault(name, {})[key] = said
for name, use in uses.items():
    within = threading.Thread(target=contextvars.copy_context().run, args=(ask, name, use, 'within'))
    without = threading.Thread(target=ask, args=(name, use, 'without'))
    for thread in (within, without):
        thread.start()
        thread.join()
return told
"""


def test_a_thread_without_the_call_is_told_how_to_get_it(tmp_path: Path) -> None:
    """It is served neither as some other call nor as one that has nothing."""
    found = run(tmp_path, USES)
    assert len(found) == 10
    for name, said in found.items():
        assert "NoInvocationError" not in said["within"], name
        assert said["without"].startswith("NoInvocationError: "), (name, said)
        assert "is only available inside a tool's invocation. In a thread of your own" in said["without"]
        assert "contextvars.copy_context().run(function)" in said["without"]
