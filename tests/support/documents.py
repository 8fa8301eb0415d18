"""The written pages: their links, their headings, and the commands in them.

    fence      three backticks and a word behind them: `console`, `sh`, … is a block of commands
    marker     the first line of such a block, `# needs …`: it cannot run in a test, and says why
    elsewhere  a command that a test runs by another name, see `ELSEWHERE`

Every other command is run as it stands by `tests/acceptance/test_documented_commands.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
INDEX: Final = DOCS / "README.md"
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(DOCS.glob("*.md")),
    ROOT / "infra" / "local" / "host" / "README.md",
    ROOT / "infra" / "local" / "dataverse" / "README.md",
)
SHELLS: Final = ("console", "sh", "bash", "shell", "powershell", "pwsh")
#: What a block may need that tests do not have.
NEEDS: Final = ("Azure", "Docker and func", "a browser")

#: A command as it is written -> the test that runs it, or the file of CI that does.
ELSEWHERE: Final = {
    "python3 dev.py run": "tests/acceptance/dev/test_run.py::test_serves_until_it_is_terminated",
    "python3 dev.py run --dataverse": (
        "tests/acceptance/dev/test_dataverse.py::test_serves_what_it_shows_until_it_is_terminated"
    ),
    "python3 dev.py test": ".ci/run",
    "python3 dev.py upstream sync": (
        "tests/acceptance/upstream/test_sync_and_run.py::test_sync_tells_what_the_app_then_publishes"
    ),
}
#: The same for all commands that begin so.
ELSEWHERE_BEGINS: Final = {
    "python3 dev.py connection ": "tests/acceptance/dev/test_connection.py::test_from_add_to_remove",
}

_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_INLINE_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_MARKER = re.compile(r"# needs (.+)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page. `line`: of its first line, from 1."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def needs(self) -> str | None:
        """What the block says it needs; None where it says nothing."""
        found = _MARKER.fullmatch(self.text.lstrip().partition("\n")[0].strip())
        return found[1] if found else None

    def commands(self) -> list[str]:
        """Its commands, each with its continuation lines. Comments are none."""
        found: list[str] = []
        open_command = ""
        for line in self.text.splitlines():
            if not open_command and (not line.strip() or line.lstrip().startswith("#")):
                continue
            open_command = f"{open_command}\n{line}" if open_command else line.strip()
            if _is_whole(open_command):
                found.append(open_command)
                open_command = ""
        assert not open_command, f"{self.name}: a command that does not end: {open_command}"
        return found


def _is_whole(command: str) -> bool:
    if command.endswith("\\"):
        return False
    try:
        shlex.split(command)
    except ValueError:  # a quotation that is still open
        return False
    return True


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        indent = len(found[1])
        body = "\n".join(line[indent:] for line in found[3].splitlines())
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[2], body)


def command_blocks() -> list[Block]:
    """Every block of commands of every page."""
    return [block for page in PAGES for block in blocks(page) if block.language in SHELLS]


def run_elsewhere(command: str) -> str | None:
    """What runs the command, if it is not to be run as it stands."""
    by_beginning = (runs for begin, runs in ELSEWHERE_BEGINS.items() if command.startswith(begin))
    return ELSEWHERE.get(command) or next(by_beginning, None)


def prose(page: Path) -> str:
    """A page's text without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """Targets of links and pictures."""
    return _LINK.findall(prose(page))


def inline_code(page: Path) -> list[str]:
    return [" ".join(code.split()) for code in _INLINE_CODE.findall(prose(page))]


def anchors(page: Path) -> set[str]:
    """What `#…` may name on a page, as GitHub makes it of the headings."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def proof_exists(proof: str) -> bool:
    """Whether `path` or `path::test` or `path::Class::test` is there, below the project's folder."""
    path, *names = proof.split("::")
    file = ROOT / path
    if not file.exists():
        return False
    text = file.read_text("utf-8") if names else ""
    return all(re.search(rf"^\s*(?:async )?(?:def|class) {name}\b", text, re.MULTILINE) for name in names)


def table_rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    below = re.split(rf"^#+ +{re.escape(heading)}\s*$", page.read_text("utf-8"), flags=re.MULTILINE)[1]
    lines: list[str] = []
    for line in below.splitlines():
        if line.startswith("|"):
            lines.append(line)
        elif lines or line.startswith("#"):
            break
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]
