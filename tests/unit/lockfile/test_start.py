"""A start with `tools.lock.json`: what it registers, what it imports, and when the file is not used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest

from tests.unit.lockfile.conftest import LockedApp

LOADED = """
import function_app
functions = function_app.app.get_functions()
{"functions": sorted((one.get_function_name(), list(map(json.loads, one.get_raw_bindings()))) for one in
 functions),
 "modules": sorted(sys.modules), "tools": [tool.name for tool in function_app.toolbox.tools],
 "imported": hasattr(sys, "greet_was_imported")}
""".strip().replace("\n ", " ")
CALL = """
import asyncio, function_app
toolbox = function_app.toolbox
def run(kind, name, *given):
    entry = next(one for one in getattr(toolbox, kind + "s") if one.name == name)
    return asyncio.run(getattr(toolbox, kind + "_trigger")(entry)(*given))
class Context: invocation_id = "11111111-1111-1111-1111-111111111111"; trace_context = None
class Asked: arguments = {"code": "x"}; transport = None
results = {}
"""
CONTRACT = {
    "invocation": {"version": "1.0.0", "prefill": {"properties": {"text": {"type": "string"}}}},
    "agents": {"version": "1.0.0", "invokable": True, "executionModes": ["inline"]},
}


def structured(answer: str) -> object:
    """What a client gets of a tool's answer to the host."""
    return json.loads(json.loads(answer)["content"])["structuredContent"]


def contract(app: LockedApp) -> None:
    app.write("shout/pptb.config.json", json.dumps(CONTRACT))
    app.write("shout/headless.py", "def invokeHeadless(input, context):\n    'Shouts.'\n    return {'a': 1}\n")


@pytest.mark.parametrize("options", [(), ("--packaged",)])
def test_a_start_with_a_lock_registers_the_same_and_imports_no_tool(
    app: LockedApp, greet: Callable[..., None], options: tuple[str, ...]
) -> None:
    greet()
    contract(app)
    before, _ = app.run(LOADED)
    assert before["imported"] is True
    told = app.lock(*options)
    assert told["faults"] == []
    after, log = app.run(LOADED)
    assert after["functions"] == before["functions"]
    assert {"greet", "shout", "job_status"} <= set(after["tools"])
    assert after["imported"] is False
    assert "tools.lock.json" not in log
    shared = {name for name in after["modules"] if name.startswith("shared.")}
    if "--packaged" not in options:
        shared.remove("shared.lockfile.sources")  # which looks into every file
    # Whatever is added here is paid by every cold start: `dev.py bench cold_start` tells how much.
    assert shared <= {
        "shared.account", "shared.errors", "shared.jobs", "shared.jobs.queues", "shared.lockfile",
        "shared.lockfile.reading", "shared.settings", "shared.startup", "shared.toolbox",
    }  # fmt: skip
    assert not {"pydantic", "jsonschema", "opentelemetry", "tools.greet"} & set(after["modules"])


def test_a_tool_of_a_package_that_says_something_else_now_is_told_of_at_its_call(
    app: LockedApp, greet: Callable[..., None]
) -> None:
    """Nobody looks at a package's files at the start: it is replaced as a whole."""
    greet()
    app.lock("--packaged")
    greet("Greets somebody.")
    ask = json.dumps({"name": "x", "arguments": {"who": "Ana"}})
    answer, log = app.run(CALL + f"run('tool', 'greet', {ask!r}, Context)")
    assert structured(answer) == {"text": "Hello Ana"}
    assert "tool 'greet' declares something else than tools.lock.json says" in log
    assert "is not used" not in log


def test_calls_work_from_the_lock_and_load_only_their_tool(app: LockedApp, greet: Callable[..., None]) -> None:
    greet()
    contract(app)
    app.lock()
    ask = json.dumps({"name": "x", "arguments": {"who": "Ana"}})
    shout = json.dumps({"name": "x", "arguments": {"text": "a"}})
    results, log = app.run(
        CALL
        + f"results['shout'] = run('tool', 'shout', {shout!r}, Context)\n"
        + "results['not yet'] = hasattr(sys, 'greet_was_imported')\n"
        + f"results['greet'] = run('tool', 'greet', {ask!r}, Context)\n"
        + "results['note'] = run('resource', 'note', json.dumps({'uri': 'notes://a'}))\n"
        + "results['review'] = run('prompt', 'review', Asked)\n"
        + "results['docs'] = run('resource', 'tools_overview', json.dumps({'uri': 'toolbox://tools'}))\n"
        + "results"
    )
    assert results["not yet"] is False
    assert structured(results["greet"]) == {"text": "Hello Ana"}
    assert structured(results["shout"]) == {"a": 1}
    assert "note a" in results["note"]
    assert "Review x" in results["review"]
    assert "Greets." in results["docs"]
    assert "declares something else" not in log


@pytest.mark.parametrize("locked", [True, False])
def test_a_folder_that_breaks_only_here_is_told_without_a_path(
    app: LockedApp, greet: Callable[..., None], locked: bool
) -> None:
    """With a lock at the first call of its tool, without one at the start; in full in the log."""
    greet()
    secret = "sentinel-of-this-machine"
    code = (
        "import os\nif os.environ.get('BREAKS'):\n"
        "    raise RuntimeError(f'{os.getcwd()} ' + os.environ['BREAKS'])\n"
        "from shared.tool import tool\n@tool\ndef breaks() -> str:\n    'Breaks.'\n    return 'well'\n"
    )
    app.write("breaks/__init__.py", code)
    contract(app)
    app.write(
        "shout/headless.py",
        "import os\nos.environ.get('BREAKS') and open('/srv/' + os.environ['BREAKS'])\n"
        "def invokeHeadless(input, context):\n    'Shouts.'\n    return {'a': 1}\n",
    )
    if locked:
        app.lock()
    ask = json.dumps({"name": "x", "arguments": {}})
    results, log = app.run(
        CALL
        + "known = [tool.name for tool in toolbox.tools]\n"
        + "wanted = [name for name in ('breaks', 'shout') if name in known]\n"
        + f"results = {{name: run('tool', name, {ask!r}, Context) for name in wanted}}\n"
        + "results['faults'] = [fault.reason for fault in toolbox.runtime.found.faults]\n"
        + "results",
        BREAKS=secret,
    )
    place = "cannot be imported: RuntimeError in __init__.py, line 3"
    if locked:
        content = json.loads(json.loads(results["breaks"])["content"])
        assert content["content"][0]["text"] == f"tool 'breaks': tools/breaks: {place}"
        assert content["_meta"]["toolbox/errorCode"] == "declaration"
    else:
        assert results["faults"] == [place]
    (said,) = json.loads(json.loads(results["shout"])["content"])["content"]
    assert (
        said["text"] == "tool 'shout': headless.py cannot be loaded: FileNotFoundError in headless.py, line 2"
    )
    for hidden in (secret, str(app.folder), "/srv"):
        assert hidden not in json.dumps(results)
        assert hidden in log


@pytest.mark.parametrize(
    ("change", "option", "said"),
    [
        ("text", "", "files of the app were added, removed or changed"),
        ("folder", "--packaged", "files of the app were added, removed or changed"),
        ("no folder", "--packaged", "files of the app were added, removed or changed"),
        ("servers", "--packaged", "files of the app were added, removed or changed"),
        ("timeout", "", "longest timeout"),
        ("version", "", "version"),
        ("broken", "", "not of the form"),
        ("cut", "--packaged", "not of the form"),
    ],
)
def test_a_stale_lock_is_told_of_and_not_used(
    app: LockedApp,
    greet: Callable[..., None],
    locked: Callable[..., None],
    change: str,
    option: str,
    said: str,
) -> None:
    locked(*[option] * bool(option))
    settings = {}
    path = app.folder / "tools.lock.json"
    if change == "text":
        greet("Greets somebody.")
    elif change == "folder":
        contract(app)
    elif change == "no folder":
        shutil.rmtree(app.folder / "tools" / "greet")
    elif change == "servers":
        (app.folder / "upstream.lock.json").write_text("{}")
    elif change == "cut":  # in the middle of the bindings
        path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:4]))
    elif change == "timeout":
        settings["TOOLBOX_MAX_TIMEOUT_MS"] = "60000"
    elif change == "version":
        path.write_text(path.read_text().replace('"version":2', '"version":3', 1))
    else:
        path.write_text("[]")
    loaded, log = app.run(LOADED, **settings)
    assert loaded["imported"] is (change != "no folder")
    assert "tools.lock.json is not used" in log
    assert said in log
    if change == "text":
        assert "Greets somebody." in json.dumps(loaded["functions"])
    if change == "folder":
        assert "shout" in loaded["tools"]


def test_a_name_made_of_a_setting_holds_for_its_value_only(app: LockedApp, greet: Callable[..., None]) -> None:
    greet(name="%TEAM%_greet")
    assert app.lock(TEAM="sales")["settings"] == ["TEAM"]
    same, _ = app.run(LOADED, TEAM="sales")
    assert ("sales_greet" in same["tools"], same["imported"]) == (True, False)
    other, log = app.run(LOADED, TEAM="ops")
    assert ("ops_greet" in other["tools"], other["imported"]) == (True, True)
    assert "app setting TEAM" in log


def test_what_is_left_out_is_told_at_each_start(app: LockedApp, greet: Callable[..., None]) -> None:
    greet()
    app.write("broken/__init__.py", "import no_such_package\n")
    (fault,) = app.lock()["faults"]
    assert fault["folder"] == "broken"
    _, log = app.run(LOADED)
    assert "tools/broken: left out: cannot be imported: ModuleNotFoundError" in log
    faults, _ = app.run("import function_app\n[f.folder for f in function_app.toolbox.runtime.found.faults]")
    assert faults == ["broken"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"TOOLBOX_SEAL_KEY": ""}, "TOOLBOX_SEAL_KEY"),
        ({"CONNECTIONS": "{"}, "CONNECTIONS"),
        ({"TOOLBOX_UPSTREAM_POLICY": "{"}, "TOOLBOX_UPSTREAM_POLICY"),
        ({"TOOLBOX_PROJECTS": "{"}, "TOOLBOX_PROJECTS"),
    ],
)
def test_illegal_settings_stop_a_start_with_a_lock(
    app: LockedApp, locked: Callable[..., None], settings: dict[str, str], named: str
) -> None:
    locked()
    script = (
        "from shared.errors import SettingsError\nsaid = ''\n"
        "try:\n    import function_app\nexcept SettingsError as error:\n    said = error.message\nsaid"
    )
    said, _ = app.run(script, **settings)
    assert said.startswith(named)
