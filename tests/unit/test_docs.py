"""The documentation's code runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.tool.decorator import declared

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
CODE = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("code", CODE)
def test_python_examples_run_and_declare_what_they_show(code: str) -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), names)
    if "@tool" in code:
        assert any(declared(value) is not None for value in names.values())
    for name, value in names.items():
        if name.startswith("test_") and callable(value):
            value()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_setting_that_the_code_reads_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    names = {
        name
        for path in (ROOT / "shared").rglob("*.py")
        for name in re.findall(r"\"((?:TOOLBOX|MCP)_[A-Z_]+|AzureWebJobsStorage)\"", path.read_text("utf-8"))
    }
    assert len(names) > 8
    assert {name for name in names if f"`{name}`" not in page} == set()
