"""`dev.py new`, and the two pages that it leads to: what they quote is what the code says."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.local.dev import paths, scaffold
from infra.local.dev.console import DevError
from shared import settings as app_settings
from shared.contract import validation
from shared.contract.differences import DIFFERENCES
from shared.contract.names import slug
from shared.contract.tool import ContractTool, check_contract, find_contracts
from shared.errors import InputError, ResultError
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.store import QUEUE
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.startup import host_findings, job_findings
from shared.tool import Context
from shared.tool.discovery import find_tools
from shared.tool.spec import ExecutionMode, Mode

CONTRACT_PAGE = (paths.REPO / "docs" / "contract.md").read_text("utf-8")
HELP_PAGE = (paths.REPO / "docs" / "troubleshooting.md").read_text("utf-8")


@pytest.mark.parametrize("contract", [False, True])
@pytest.mark.parametrize("name", ["a", "hello", "word_count", "word-count", "x2", "a" * scaffold.MAX_NAME])
def test_legal_names(name: str, contract: bool, tmp_path: Path) -> None:
    planned = scaffold.plan(name, contract=contract)
    folder = name.replace("-", "_")
    assert planned.folder == Path("tools") / folder
    assert planned.test == Path("tests") / "tools" / f"test_{folder}.py"
    assert planned.tool == (slug(folder) if contract else folder)
    assert scaffold.create(planned, tmp_path, []) == list(planned.files)
    for path, text in planned.files.items():
        assert (tmp_path / path).read_text("utf-8") == text
        assert not re.search(r"<[a-z]+>", text)
        if path.suffix == ".py":
            compile(text, path.name, "exec")
    made = {path.name for path in (tmp_path / planned.folder).iterdir()}
    assert made == ({"pptb.config.json", "headless.py"} if contract else {"__init__.py"})


@pytest.mark.parametrize(
    "name",
    ["", "Hello", "2x", "_x", "x_", "x__y", "x-_y", "a b", "a.b", "../x", "a/b", "é", "x\n", "²", "a" * 41],
)
def test_illegal_names_are_refused_with_the_rule(name: str) -> None:
    with pytest.raises(DevError) as refused:
        scaffold.plan(name, contract=False)
    assert "cannot be the name of a tool" in refused.value.message
    assert scaffold.LEGAL in refused.value.hint


@pytest.mark.parametrize("name", ["class", "list", "print", "none", "tool", "annotations"])
def test_names_that_mean_something_in_python_are_refused(name: str) -> None:
    with pytest.raises(DevError, match="means something in Python"):
        scaffold.plan(name, contract=True)


@pytest.mark.parametrize(
    "there",
    ["tools/word_count/", "tools/Word-Count/", "tools/word_count", "tests/tools/test_word_count.py"],
)
def test_nothing_is_overwritten(there: str, tmp_path: Path) -> None:
    path = tmp_path / there
    path.parent.mkdir(parents=True)
    if there.endswith("/"):
        path.mkdir()
    else:
        path.write_text("mine", "utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DevError, match="is there already"):
        scaffold.create(scaffold.plan("word-count", contract=False), tmp_path, [])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_tool_of_that_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DevError, match="There is a tool called 'Word-Count' already"):
        scaffold.create(scaffold.plan("word_count", contract=True), tmp_path, ["other", "Word-Count"])
    assert list(tmp_path.iterdir()) == []


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    planned = scaffold.plan("hello", contract=True)
    (tmp_path / "tests").write_text("in the way", "utf-8")
    with pytest.raises(OSError, match="tests"):
        scaffold.create(planned, tmp_path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["tests"]


def test_names_in_use_are_read_from_the_checkout() -> None:
    assert "csv_profile" in scaffold.tool_names(paths.REPO)


def test_a_checkout_whose_tools_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(DevError, match="could not be read") as refused:
        scaffold.tool_names(tmp_path)
    assert "validate" in refused.value.hint


# docs/contract.md


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


def example(folder: Path) -> Path:
    """The page's complete folder."""
    home = folder / "greeter"
    home.mkdir()
    (home / "pptb.config.json").write_text(blocks(CONTRACT_PAGE, "json")[0], "utf-8")
    for name, code in re.findall(r"```python file=(\S+)\n(.*?)```", CONTRACT_PAGE, re.DOTALL):
        (home / name).write_text(code, "utf-8")
    return home


def called(tool: ContractTool, arguments: dict[str, Any]) -> Any:
    context = Context(
        tool_id=tool.spec.tool_id,
        tool_name=tool.spec.name,
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.INLINE,
        correlation_id="test",
        timeout_ms=1000,
        owner="default",
    )
    handler = tool.load()
    return handler.finish(handler.run(handler.check_input(arguments), context)).structured


@pytest.mark.parametrize("statement", ["import phrases", "from . import phrases"])
def test_the_complete_folder_answers_as_the_page_says(statement: str, tmp_path: Path) -> None:
    home = example(tmp_path)
    entry = home / "headless.py"
    entry.write_text(entry.read_text("utf-8").replace("import phrases", statement), "utf-8")
    checked = check_contract(home, strict=True)
    assert checked.findings == ()
    assert checked.tool is not None
    ((given, answer),) = re.findall(r"Called with `(\{.*?\})` it answers `(\{.*?\})`", CONTRACT_PAGE)
    assert called(checked.tool, json.loads(given)) == json.loads(answer)


def field_rows() -> list[tuple[str, str, str, str]]:
    """(section, field, a wrong value as JSON, what the page says of it)."""
    found = []
    for section, part in re.findall(r"^### `(\w+)`.*?\n(.*?)(?=^##)", CONTRACT_PAGE, re.MULTILINE | re.DOTALL):
        cells = [line.strip("| \n").split(" | ") for line in part.splitlines() if line.startswith("| `")]
        found += [(section, row[0].split("`")[1], row[3].strip("`"), row[4].strip("`")) for row in cells]
    return found


def test_every_field_is_on_the_page_in_the_codes_order() -> None:
    shown = [(section, field) for section, field, _, _ in field_rows()]
    known = [("invocation", field) for field in validation._INVOCATION]
    known += [("agents", field) for field in validation._AGENTS]
    assert shown == known + [("agents", f"window.{field}") for field in validation._WINDOW]
    for tag in validation.KNOWN_TAGS:
        assert f"`{tag}`" in CONTRACT_PAGE


@pytest.mark.parametrize(("section", "field", "wrong", "said"), field_rows(), ids=lambda value: value[:20])
def test_what_the_page_says_of_a_wrong_value(
    section: str, field: str, wrong: str, said: str, tmp_path: Path
) -> None:
    home = example(tmp_path)
    document: dict[str, Any] = {
        "invocation": {"version": "1.0.0"},
        "agents": {"version": "1.0.0", "invokable": True},
    }
    target = document[section]
    *outer, name = field.split(".")
    for step in outer:
        target = target.setdefault(step, {})
    target[name] = json.loads(wrong)
    (home / "pptb.config.json").write_text(json.dumps(document), "utf-8")
    # What `validate` takes for the app's limit where no setting says otherwise.
    limit = app_settings.load({}).max_timeout_ms
    assert check_contract(home, max_timeout_ms=limit).errors == [said]


def test_what_is_left_out_counts_as_the_page_says(tmp_path: Path) -> None:
    home = example(tmp_path)
    for given, expected in (
        ({}, ("two-way", 1)),
        ({"idempotent": True, "modes": ["two-way", "one-way"]}, ("one-way", 3)),
        ({"modes": ["one-way"], "headless": True}, ("one-way", 1)),
    ):
        document = {"agents": {"version": "1.0.0", "invokable": True, **given}}
        (home / "pptb.config.json").write_text(json.dumps(document), "utf-8")
        tool = check_contract(home).tool
        assert tool is not None
        spec, rules = tool.spec, tool.spec.rules
        assert (rules.resolve_mode(returns_data=False), rules.max_attempts) == expected
        assert (spec.timeout_ms, rules.execution_modes, spec.result_schema) == (120_000, ("headless",), None)
        assert called(tool, {"name": "Ana", "anything": None}) == {"greeting": "hello Ana"}
    (home / "pptb.config.json").write_text(json.dumps({"agents": {"version": "1.0.0"}}), "utf-8")
    assert (check_contract(home).tool, check_contract(home).errors) == (None, [])


def differences_table() -> str:
    lines = ["| field | value | there | here | |", "|---|---|---|---|---|"]
    for row in DIFFERENCES:
        field = row.field if row.field.startswith("(") else f"`{row.field}`"
        lines.append(f"| {field} | {row.value} | {row.original} | {row.severity} | {row.here} |")
    return "\n".join(lines)


def test_the_table_of_differences_is_the_codes() -> None:
    shown = re.findall(r"<!-- differences.*?-->\n(.*?)\n<!-- /differences -->", CONTRACT_PAGE, re.DOTALL)
    assert shown == [differences_table()]


# docs/troubleshooting.md


def help_lines() -> list[list[str]]:
    return [block.splitlines() for block in blocks(HELP_PAGE, "text")]


DECORATED = (
    'from shared.tool import tool\n@tool\ndef hello() -> str:\n    """Says hello."""\n    return "hello"\n'
)
BROKEN: dict[str, dict[str, str]] = {
    "Hello": {"__init__.py": DECORATED},
    "a_clash": {"__init__.py": DECORATED},
    "bad_import": {"__init__.py": "import no_such_package\n"},
    "bad_tool": {
        "__init__.py": "from shared.tool import tool\n@tool\ndef greet(name) -> str:\n    return name\n"
    },
    "no_entry": {"pptb.config.json": '{"agents": {"version": "1.0.0", "invokable": true}}'},
    "no_tool": {"__init__.py": ""},
    "no_version": {
        "pptb.config.json": '{"agents": {"invokable": true}}',
        "headless.py": "def invokeHeadless(input, context):\n    return {}\n",
    },
    "not_invokable": {"pptb.config.json": '{"agents": {"version": "1.0.0"}}'},
    "my-tool": {"__init__.py": DECORATED},
    "neither": {"tool.py": DECORATED},
}


def test_a_missing_tool_is_told_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "helptools"
    for folder, files in BROKEN.items():
        (home / folder).mkdir(parents=True)
        for name, text in files.items():
            (home / folder / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "shared.validate", str(home)]
    done = subprocess.run(command, cwd=paths.REPO, capture_output=True, text=True, timeout=60)
    assert sorted(done.stdout.splitlines()[:-1]) == help_lines()[0]
    assert "`tools/FOLDER: left out: REASON`" in HELP_PAGE
    monkeypatch.syspath_prepend(tmp_path)
    contracts = find_contracts(home)
    found = find_tools(home, contracts=contracts.entries, contract_faults=contracts.faults)
    left_out = {fault.folder: fault.reason for fault in found.faults}
    assert left_out.keys() == {
        *("a_clash", "bad_import", "bad_tool", "my-tool", "no_entry", "no_tool", "no_version"),
    }
    for folder, reason in left_out.items():
        assert f"tools/{folder}: left out: {reason}" in caplog.text


def test_schema_failures_are_told_as_the_page_says(tmp_path: Path) -> None:
    for path, text in scaffold.plan("hello", contract=True).files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    tool = check_contract(tmp_path / "tools" / "hello").tool
    assert tool is not None
    handler = tool.load()
    said = []
    for wrong in ({"text": "x", "letters": 0}, {"text": "x", "leters": 2}):
        with pytest.raises(InputError) as refused:
            handler.check_input(wrong)
        said.append(refused.value.message)
    for answer in ({"words": "2", "longest": ""}, [2]):
        with pytest.raises(ResultError) as invalid:
            handler.finish(answer)
        said.append(invalid.value.message)
    assert said == help_lines()[1]


def answered(folder: Path, *, work: bool, mode: str, timeout_ms: int) -> Any:
    """The answer to a call of a contract tool that takes half a second."""
    home = example(folder)
    code = "import time\ndef invokeHeadless(input, context):\n    time.sleep(0.5)\n    return {}\n"
    (home / "headless.py").write_text(code, "utf-8")
    tool = check_contract(home).tool
    assert tool is not None
    store, sealer = MemoryJobStore(), Sealer((bytes(32),))
    settings = app_settings.load(
        {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "TOOLBOX_MAX_WAIT_MS": "60000" if work else "10"}
    )
    worker = Worker({"greeter": tool}, store, sealer, settings)
    envelope = {"mode": "two-way", "executionMode": mode, "timeoutMs": timeout_ms}
    payload = json.dumps({"arguments": {"name": "Ana", "__pptb": envelope}})

    async def main() -> Any:
        answering = asyncio.create_task(Invoker(settings, sealer, lambda: store).answer(tool, payload))
        while not answering.done():
            if store.messages and work:
                await worker.handle(store.messages.popleft())
            await asyncio.sleep(0.005)
        return await answering

    return asyncio.run(main())


def without_numbers(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "JOB_ID", text)
    return re.sub(r"\b\d+ ms", "N ms", text)


def test_timeouts_are_told_as_the_page_says(tmp_path: Path) -> None:
    said = []
    for mode in ("inline", "headless"):
        (tmp_path / mode).mkdir()
        answer = answered(tmp_path / mode, work=True, mode=mode, timeout_ms=20)
        assert answer.is_error
        said.append(without_numbers(answer.text))
    assert said == [without_numbers(line) for line in help_lines()[2]]


def test_what_stops_a_start_is_told_as_the_page_says(tmp_path: Path) -> None:
    host = tmp_path / "host.json"
    host.write_text(
        json.dumps(
            {
                "functionTimeout": "00:01:00",
                "extensions": {"http": {"routePrefix": "api"}, "queues": {"messageEncoding": "none"}},
                "extensionBundle": {"version": "[4.0.0, 4.5.0)"},
            }
        )
    )
    found = host_findings(host, {})
    found += job_findings(app_settings.load({}), ["csv_profile", "entity_picker"])
    said = [one.text for one in found if one.stops]
    for line in help_lines()[4]:
        assert any(text.startswith(line.removesuffix("…")) for text in said), line
    assert len(help_lines()[4]) == len(said)


def test_waiting_is_told_as_the_page_says(tmp_path: Path) -> None:
    accepted = answered(tmp_path, work=False, mode="headless", timeout_ms=1000).structured
    assert (accepted["status"], accepted["waitLimitMs"]) == ("accepted", 10)
    assert [without_numbers(accepted["message"])] == [without_numbers(line) for line in help_lines()[3]]
    assert "stored, but its queue message could not be sent" in HELP_PAGE
    assert f"`{QUEUE}`" in HELP_PAGE
