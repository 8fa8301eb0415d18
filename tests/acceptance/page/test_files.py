"""The page's files: what docs/page.md promises about them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.conftest import ROOT

STATIC = ROOT / "shared" / "web" / "static"
MODULES = sorted(STATIC.glob("*.js"))
#: What turns text into markup or code.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\(|"
    r"new Function|setAttribute\('style|localStorage|document\.cookie|addEventListener\('message"
)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_makes_no_markup_of_text_and_keeps_nothing_elsewhere(module: Path) -> None:
    assert FORBIDDEN.findall(module.read_text()) == []


def test_every_module_is_loaded_at_once() -> None:
    index = (STATIC / "index.html").read_text()
    preloaded = set(re.findall(r'modulepreload" href="assets/([a-z]+\.js)"', index))
    assert preloaded == {module.name for module in MODULES} - {"app.js"}


def test_the_page_loads_nothing_inline_and_nothing_from_elsewhere() -> None:
    index = (STATIC / "index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", index) == []
    for path in STATIC.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"""["'(]https?://|@import|\burl\(""", text) == [], path.name


@pytest.mark.parametrize("pair", [("fieldOf", "schema.js"), ("perTool", "stats.js")], ids=lambda pair: pair[1])
def test_pure_modules_need_no_page(pair: tuple[str, str]) -> None:
    """They load in Node.js, where there is no document."""
    name, module = pair
    node = shutil.which("node")
    assert node is not None
    code = f"import('{(STATIC / module).as_uri()}').then(m => console.log(typeof m.{name}))"
    # The folder has no package.json, so Node.js finds out by itself that these are modules.
    done = subprocess.run([node, "--no-warnings", "-e", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("function", "")
