"""The documentation's code runs, its links lead somewhere, and what it counts and cites is there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.dev import cli
from shared.tool.decorator import declared
from tests.support import documents
from tests.support.documents import DOCS, INDEX, PAGES, ROOT
from tests.unit.test_imports import FLOORS

COMPATIBILITY = DOCS / "compatibility.md"
SECURITY = DOCS / "security.md"
ARCHITECTURE = DOCS / "architecture.md"
CODE = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in sorted(DOCS.glob("*.md"))
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
]
#: Other programs' names for the kinds of changes: https://keepachangelog.com/en/1.1.0/
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
#: Words of the reader's own in a command, and one that fits.
EXAMPLES = {
    "NAME": "hello",
    "JOB": "019a0000-0000-7000-8000-000000000000",
    "JOB_ID": "019a0000-0000-7000-8000-000000000000",
    "SERVER.TOOL": "one.echo",
    "PATH": "tools",
    "FOLDER": "hello",
}


@pytest.mark.parametrize("code", CODE)
def test_python_examples_run_and_declare_what_they_show(code: str) -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), names)
    if "@tool" in code:
        assert any(declared(value) is not None for value in names.values())
    for name, value in names.items():
        if name.startswith("test_") and callable(value):
            value()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in documents.links(page):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        led_to = page.parent / path if path else page
        assert led_to.exists(), target
        if anchor:
            assert anchor in documents.anchors(led_to), target


def test_every_page_is_in_the_index() -> None:
    linked = {link.partition("#")[0] for link in documents.links(INDEX)}
    assert {page.name for page in DOCS.glob("*.md")} - {INDEX.name} <= linked


def test_pictures_are_small_and_shown() -> None:
    """Each clone pays for their bytes."""
    targets = [(page.parent / link).resolve() for page in PAGES for link in documents.links(page)]
    pictures = set((DOCS / "images").iterdir())
    assert pictures
    assert pictures == {target for target in targets if target.suffix == ".png"}
    assert all(path.stat().st_size < 200_000 for path in pictures)


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in documents.links(ROOT / "README.md")


@pytest.mark.parametrize("block", documents.command_blocks(), ids=lambda block: str(block.name))
def test_a_block_of_commands_can_be_read_and_says_what_it_needs(block: documents.Block) -> None:
    """What needs nothing is run: `tests/acceptance/test_documented_commands.py`, or what `ELSEWHERE` names."""
    assert block.needs is None or block.needs in documents.NEEDS
    assert block.commands()


def test_what_azure_alone_can_run_is_marked() -> None:
    for block in documents.command_blocks():
        if any(re.match(r"(?:az|azd) ", command) for command in block.commands()):
            assert block.needs == "Azure", block.name


def test_no_command_hides_in_a_block_without_a_language() -> None:
    """Such a block would be neither run nor marked."""
    start = re.compile(r"^(?:\$ )?(?:python3|curl|az|azd|func|npx|npm|pip|docker|bash|git) ", re.MULTILINE)
    hidden = [
        block.name
        for page in PAGES
        for block in documents.blocks(page)
        if block.language in ("", "text") and start.search(block.text)
    ]
    assert hidden == []


@pytest.mark.parametrize(
    ("command", "runs"), sorted({**documents.ELSEWHERE, **documents.ELSEWHERE_BEGINS}.items())
)
def test_what_runs_a_command_elsewhere_is_there_and_needed(command: str, runs: str) -> None:
    assert documents.proof_exists(runs)
    words = shlex.split(command)
    assert words[:2] == ["python3", "dev.py"]
    # The file that is named does run this command of dev.py.
    text = (ROOT / runs.partition("::")[0]).read_text("utf-8")
    assert re.search(rf"\b{words[2]}\b", text, re.IGNORECASE)
    written = [text for block in documents.command_blocks() for text in block.commands()]
    assert any(documents.run_elsewhere(text) == runs and text.startswith(command) for text in written)


def spelled_out(code: str) -> Iterator[list[str]]:
    """The words of a command for each of its choices: `jobs list|show` is two, what is in brackets counts."""
    words = re.sub(r"[\[\]…]", "", code).split()
    words = words[words.index("dev.py") + 1 :]
    choices = next((word.split("|") for word in words if "|" in word), [""])
    for choice in choices:
        yield [choice if "|" in word else EXAMPLES.get(word, word) for word in words]


def commands_in_prose() -> Iterator[str]:
    for page in PAGES:
        for code in documents.inline_code(page):
            if code.startswith(("python3 dev.py ", "dev.py ")):
                yield f"{page.relative_to(ROOT)}: {code}"


def refusal_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What dev.py's own parser says against a command, but for operands that a sentence may leave out."""
    try:
        cli._parser().parse_args(words)
    except SystemExit as end:
        said = capsys.readouterr().err
        return "" if end.code == 0 or "required" in said else said
    return ""


@pytest.mark.parametrize("written", sorted(set(commands_in_prose())))
def test_a_command_in_a_sentence_is_one_that_dev_py_takes(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in spelled_out(written.partition(": ")[2]):
        if words[0] not in ("test", "upstream"):  # others read what comes behind these
            assert refusal_of(words, capsys) == ""


def test_a_command_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "invalid choice" in refusal_of(["rnu"], capsys)
    assert "unrecognized arguments" in refusal_of(["run", "--onec-more"], capsys)


def test_every_setting_that_the_code_reads_is_documented() -> None:
    page = (DOCS / "settings.md").read_text("utf-8")
    names = {
        name
        for path in (ROOT / "shared").rglob("*.py")
        for name in re.findall(
            r"\"((?:TOOLBOX|MCP)_[A-Z_]*[A-Z]|AzureWebJobsStorage)\"", path.read_text("utf-8")
        )
    }
    assert len(names) > 8
    assert {name for name in names if f"`{name}`" not in page} == set()


def proofs(page: Path) -> list[str]:
    """The files and tests that a page names."""
    named = re.compile(r"(?:tests|shared|infra|tools|docs)/[\w./-]+\.\w+(?:::\w+)*")
    return [code for code in documents.inline_code(page) if named.fullmatch(code)]


@pytest.mark.parametrize("page", [SECURITY, COMPATIBILITY, ARCHITECTURE], ids=lambda page: str(page.name))
def test_what_a_page_names_as_its_proof_is_there(page: Path) -> None:
    named = proofs(page)
    assert named
    assert [proof for proof in named if not documents.proof_exists(proof)] == []


def test_every_answer_to_a_threat_names_what_holds_it() -> None:
    rows = documents.table_rows(SECURITY, "Threats and answers")
    assert len(rows) > 15
    assert [row[0] for row in rows if len(row) != 3 or not re.search(r"`(?:tests|shared|infra)/", row[2])] == []


def test_recorded_cases_are_counted_right() -> None:
    rows = documents.table_rows(COMPATIBILITY, "Recorded cases")
    told = {row[0].strip("`"): (int(row[1]), int(row[2])) for row in rows}
    counted = {}
    for path in sorted((ROOT / "tests" / "vectors").rglob("*.json")):
        cases = json.loads(path.read_text("utf-8"))["cases"]
        name = f"{path.parent.name}/{path.name}"
        counted[name] = (len(cases), sum("defect" in case for case in cases))
    whole = tuple(map(sum, zip(*counted.values(), strict=True)))
    assert told == {**counted, "all": whole}


def test_conformance_is_told_as_it_is_recorded() -> None:
    runs = json.loads((ROOT / "tests" / "acceptance" / "conformance.json").read_text("utf-8"))["runs"]
    rows = documents.table_rows(COMPATIBILITY, "Revisions of the protocol")
    told = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    assert told == {name: (len(run["pass"]), len(run["fail"])) for name, run in runs.items()}


def test_the_floors_are_told_as_the_imports_are_held_to_them() -> None:
    told: dict[str, int] = {}
    for floor, named, _ in documents.table_rows(ARCHITECTURE, "Floors"):
        told |= dict.fromkeys(re.findall(r"`([\w.]+)`", named), int(floor))
    assert told == FLOORS


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles[0] == "[Unreleased]"
    for title in titles[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", title), title
    for release in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", release, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], "known kinds, once each, in their order"
        for section in re.split(r"^### .+$", release, flags=re.MULTILINE)[1:]:
            assert section.strip().startswith("- "), "a section is a list"
