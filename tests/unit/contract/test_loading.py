"""Entries are loaded once, with the files beside them, and without a trace for anybody else."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from shared.contract.config import Main, Package
from shared.contract.entry import Entry, docstring, find_entry
from shared.contract.findings import Findings
from shared.contract.loading import load_entry
from shared.errors import DeclarationError

NO_PACKAGE = Package("t", "t", "the folder's name")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / f"{name.replace('__in__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def load(folder: Path, configured: str | None = None) -> Any:
    found = Findings()
    entry = find_entry(folder, configured, NO_PACKAGE, found)
    assert entry is not None, found.all
    return load_entry(folder.name, entry)


ENTRY = """
import helpers
import parts.inner as inner
from helpers import NAME
from parts import inner as again
def invokeHeadless(input, context):
    import late
    from parts.inner import DEEP
    assert again is inner
    return {"name": NAME, "same": helpers.NAME, "late": late.NAME, "deep": DEEP, "through": inner.through()}
"""


def tool(folder: Path, name: str) -> Path:
    return write(
        folder / name,
        headless=ENTRY,
        helpers=f"NAME = {name!r}\n",
        late="from helpers import NAME as inner\nNAME = inner + ' late'\n",
        parts__in____init__="",
        parts__in__inner="from . import other\nimport helpers\nDEEP = helpers.NAME + other.MARK\n"
        "def through():\n    import late\n    return late.NAME\n",
        parts__in__other="MARK = '!'\n",
    )


def test_two_tools_have_their_own_helpers_also_lazily(tmp_path: Path) -> None:
    before_path, before_modules = list(sys.path), set(sys.modules)
    functions = {name: load(tool(tmp_path, name)) for name in ("one", "two")}
    for name, function in functions.items():
        assert function({}, None) == {
            "name": name, "same": name, "late": f"{name} late", "deep": f"{name}!", "through": f"{name} late",
        }  # fmt: skip
    assert sys.path == before_path
    new = set(sys.modules) - before_modules
    assert {"helpers", "late", "parts", "headless"} & set(sys.modules) == set()
    assert all(name.startswith("toolbox_contracts") for name in new)


def test_a_file_like_a_library_hides_it_from_its_own_tool_only(tmp_path: Path) -> None:
    mine = write(
        tmp_path / "a",
        headless="import colorsys\ninvokeHeadless = lambda i, c: colorsys.MINE\n",
        colorsys="MINE = 1",
    )
    other = write(tmp_path / "b", headless="import colorsys\ninvokeHeadless = lambda i, c: colorsys.__name__\n")
    assert load(mine)({}, None) == 1
    assert load(other)({}, None) == "colorsys"


def test_folders_of_data_hide_nothing(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "a", headless="import json.decoder\ninvokeHeadless = lambda i, c: json.__name__\n"
    )
    (folder / "json").mkdir()
    assert load(folder)({}, None) == "json"


def test_a_package_of_the_same_name_does_not_take_the_entrys_place(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "a",
        headless="invokeHeadless = lambda i, c: 'file'\n",
        headless__in____init__="invokeHeadless = lambda i, c: 'package'\n",
    )
    assert load(folder)({}, None) == "file"


def test_relative_imports_and_dataclasses_work(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "a",
        headless="""
from __future__ import annotations
import dataclasses, typing
from .helpers import NAME
@dataclasses.dataclass
class Row:
    a: list[int]
def invoke_headless(input, context):
    return {"name": NAME, "hints": str(typing.get_type_hints(Row)["a"])}
""",
        helpers="NAME = 'x'\n",
    )
    assert load(folder)({}, None) == {"name": "x", "hints": "list[int]"}


def test_many_threads_load_it_once(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "a",
        headless="import time, pathlib\nlog = pathlib.Path(__file__).with_name('log')\n"
        "log.open('a').write('x')\ntime.sleep(0.05)\ninvokeHeadless = lambda i, c: 1\n".replace(
            "log.open('a').write('x')", "with log.open('a') as f: f.write('x')"
        ),
    )
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(load(folder))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(map(id, found))) == 1
    assert len(found) == 8
    assert (folder / "log").read_text() == "x"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def (:", "cannot be loaded: SyntaxError in headless.py, line 1"),
        ("import nothing_of_the_kind", "No module named 'nothing_of_the_kind'"),
        ("import helpers.more", "No module named 'helpers.more'"),
        ("from helpers import more", "cannot be loaded: ImportError in headless.py, line 1"),
        ("open(__file__ + 'x')", "cannot be loaded: FileNotFoundError in headless.py, line 1"),
        ("\n\nopen('/some/where/else.txt')", "cannot be loaded: FileNotFoundError in headless.py, line 3"),
        ("import os; os.environ['NOT_SET']", "cannot be loaded: KeyError in headless.py, line 1"),
        ("import sys; sys.exit(3)", "cannot be loaded: SystemExit in headless.py, line 1"),
        ("x = 1", "does not export invokeHeadless(input, context)"),
        ("invokeHeadless = 5", "exports invokeHeadless that is no function but integer"),
        ("def invokeHeadless(input): ...", "exports invokeHeadless(input), which must take (input, context)"),
        ("def invoke_headless(a, b, c): ...", "which must take (input, context)"),
        ("def invokeHeadless(a, b):\n    yield 1", "is a generator"),
        ("class default: ...", "exports the class default"),
        ("default = object()", "exports default that is no function but object"),
        ("class D:\n    def invokeHeadless(self, a): ...\ndefault = D()", "exports default.invokeHeadless(a)"),
    ],
)
def test_what_is_wrong_names_the_tool_and_the_file(code: str, said: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "t1", headless=code, helpers="")
    with pytest.raises(DeclarationError) as caught:
        load(folder)
    assert caught.value.message.startswith("tool 't1': headless.py ")
    assert said in caught.value.message
    for secret in (str(tmp_path), "else", "NOT_SET", "toolbox_contracts", sys.prefix):
        assert secret not in caught.value.message


def test_the_log_has_what_the_error_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write(tmp_path / "t1", headless="import helpers", helpers="\nraise RuntimeError('in /srv/secret')")
    with pytest.raises(DeclarationError) as caught:
        load(folder)
    assert caught.value.message == "tool 't1': headless.py cannot be loaded: RuntimeError in helpers.py, line 2"
    assert "tool 't1': headless.py cannot be loaded" in caplog.text
    assert "RuntimeError: in /srv/secret" in caplog.text


@pytest.mark.parametrize(
    "code",
    [
        "def invokeHeadless(input, context): return 1",
        "def invokeHeadless(input, context, more=2): return 1",
        "def invokeHeadless(*given): return 1",
        "def invoke_headless(data, _): return 1",
        "default = lambda input, context: 1",
        "class D:\n    def __call__(self, i, c): return 1\ndefault = D()",
        "class D:\n    def invoke_headless(self, i, c): return 1\ndefault = D()",
        "import functools\ndefault = functools.partial(lambda x, i, c: x, 1)",
    ],
)
def test_exports(code: str, tmp_path: Path) -> None:
    assert load(write(tmp_path / "t", headless=code))({}, None) == 1


def test_async_exports_are_told_from_others(tmp_path: Path) -> None:
    from shared.contract.exports import is_async

    plain = "async def invokeHeadless(i, c): return 1"
    method = "class D:\n    async def __call__(self, i, c): return 1\ndefault = D()"
    assert is_async(load(write(tmp_path / "a", headless=plain)))
    assert is_async(load(write(tmp_path / "b", headless=method)))
    assert not is_async(load(write(tmp_path / "c", headless="invokeHeadless = lambda i, c: 1")))


def test_a_broken_entry_works_once_it_is_mended(tmp_path: Path) -> None:
    folder = write(tmp_path / "t", headless="raise RuntimeError('not yet')")
    with pytest.raises(DeclarationError, match="RuntimeError"):
        load(folder)
    (folder / "headless.py").write_text("invokeHeadless = lambda i, c: 'now'  # longer than before")
    assert load(folder)({}, None) == "now"


# Which file it is.


def chosen(folder: Path, configured: str | None = None, *mains: Main) -> str:
    found = Findings()
    package = Package("t", "t", "", None, mains)
    entry = find_entry(folder, configured, package, found)
    return entry.file if entry else "; ".join(map(str, found.all))


def test_the_first_file_there_is_decides(tmp_path: Path) -> None:
    mains = (
        Main("pyproject.toml", "$.tool.toolbox.main", "src/run.py"),
        Main("package.json", "$.main", "./lib/main.py"),
    )
    write(tmp_path, lib__in__main="", src__in__run="", headless="", dist__in__headless="", own="")
    assert chosen(tmp_path, "own.py", *mains) == "own.py"
    for expected in ("dist/headless.py", "headless.py", "src/run.py"):
        assert chosen(tmp_path, None, *mains) == expected
        (tmp_path / expected).unlink()
    assert chosen(tmp_path, None, *mains) == "pyproject.toml $.tool.toolbox.main: 'src/run.py' does not exist"
    assert chosen(tmp_path, None, mains[1]) == "lib/main.py"
    assert (
        chosen(tmp_path, "own") == "$.agents.headlessEntry: 'own' must name a .py file without further dots "
        "in its name; name one like headless.py"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "is no path"),
        ("  ", "is no path"),
        ("a\0.py", "is no path"),
        ("/etc/x.py", "must be relative"),
        ("~/x.py", "must be relative"),
        ("C:/x.py", "must be relative"),
        ("..\\x.py", "write / between folders"),
        ("../x.py", "leaves the tool's folder with '..'"),
        ("lib/../headless.py", "leaves the tool's folder with '..'"),
        ("dist/headless.js", "write 'dist/headless.py'"),
        ("run.v2.py", "without further dots"),
        ("missing.py", "does not exist"),
        ("folder.py", "is no file"),
        ("x" * 5000 + ".py", "cannot be read"),
        ("link.py", "is a link that leaves the tool's folder"),
        ("through/x.py", "is a link that leaves the tool's folder"),
    ],
)
def test_an_entry_stays_in_the_tools_folder(written: str, said: str, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", x="")
    folder = write(tmp_path / "tool", headless="")
    (folder / "folder.py").mkdir()
    (folder / "link.py").symlink_to(outside / "x.py")
    (folder / "through").symlink_to(outside)
    told = chosen(folder, written)
    assert told.startswith("$.agents.headlessEntry: ")
    assert said in told or (len(written) > 1000 and "does not exist" in told)


def test_links_inside_the_folder_are_fine_and_broken_ones_are_not_passed_over(tmp_path: Path) -> None:
    folder = write(tmp_path / "tool", lib__in__real="", headless="")
    (folder / "own.py").symlink_to("lib/real.py")
    assert chosen(folder, "own.py") == "own.py"
    (folder / "dist").mkdir()
    (folder / "dist" / "headless.py").symlink_to("gone.py")
    assert "'dist/headless.py' does not exist" in chosen(folder)


def test_a_linked_entry_has_the_files_beside_the_real_one_from_a_lock_file_too(tmp_path: Path) -> None:
    code = "import words\ndef invokeHeadless(input, context):\n    return {'said': words.SAID}\n"
    folder = write(tmp_path / "linked", src__in__main=code, src__in__words="SAID = 'hi'\n")
    (folder / "headless.py").symlink_to("src/main.py")
    locked = load_entry("linked", Entry("headless.py", folder / "headless.py"))
    assert load(folder)({}, None) == locked({}, None) == {"said": "hi"}


def test_the_tools_folder_may_be_a_link_itself(tmp_path: Path) -> None:
    write(tmp_path / "real", headless="")
    (tmp_path / "tool").symlink_to(tmp_path / "real")
    assert chosen(tmp_path / "tool") == "headless.py"


def test_a_docstring_is_read_and_not_run(tmp_path: Path) -> None:
    folder = write(tmp_path, headless='"""Reads\n  rows.\n\nMore."""\nraise RuntimeError\n')
    entry = find_entry(folder, None, NO_PACKAGE, Findings())
    assert entry is not None
    assert docstring(entry) == "Reads rows."
    (folder / "headless.py").write_text("def (:")
    assert docstring(entry) is None
