"""No step in the documentation needs what its page does not say.

For each block of commands: its programs are ones that every system has, or the page names them in a sentence;
its variables are set before they are used, or named; the words in capitals, which the reader fills in, are told
of.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.local.dev import paths
from tests.support import documents

#: What any shell has; `python3` is the first thing that the README asks for, `curl` ships with every system.
EVERYWHERE = {
    *("bash", "cp", "curl", "cut", "do", "done", "for", "python3", "python3.13", "rm", "sh", "tr"),
    *("cat", "test", "umask"),
    *(".", "pip"),  # of the virtual environment that the line has made
}
BLOCKS = documents.command_blocks()
_WORD = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b")
#: Capitals in commands that are no words to fill in.
_FIXED = {"POST"}


def statements(block: documents.Block) -> list[str]:
    """Simple commands: what stands between pipes, `&&`, `;` and in `$(…)`, without quoted text."""
    found: list[str] = []
    for command in block.commands():
        inner = re.findall(r"\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)", command)
        outer = re.sub(r"'[^']*'", "''", command)
        outer = re.sub(r"\$\((?:[^()]|\([^()]*\))*\)", "X", outer)
        outer = re.sub(r'"[^"]*"', '""', outer).replace("\\\n", " ")
        for text in (outer, *inner):
            found += [part.strip() for part in re.split(r"\|\||&&|[|;\n]", text) if part.strip()]
    return found


def programs(block: documents.Block) -> set[str]:
    found = set()
    for statement in statements(block):
        words = [word for word in statement.split() if not re.match(r"[A-Za-z_]\w*=", word)]
        if words:
            found.add(words[0])
    return found


def told(page: Path) -> str:
    """Sentences, headings and tables of a page, and of the README's, which comes first."""
    return documents.prose(page) + documents.prose(paths.REPO / "README.md")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.name))
def test_programs_are_told_of(block: documents.Block) -> None:
    known = told(block.page)
    unknown = {
        name
        for name in programs(block) - EVERYWHERE
        if not name.startswith((".venv/", '"'))
        and not re.search(rf"`{re.escape(name)}[` ]|\b{re.escape(name)}\b", known)
    }
    assert unknown == set()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.name))
def test_variables_are_set_or_told_of(block: documents.Block) -> None:
    used = set(re.findall(r"\$\{?([A-Za-z_]\w*)", block.text))
    set_here = set(re.findall(r"(?:^|[\s;])([A-Za-z_]\w*)=", block.text)) | set(
        re.findall(r"\bfor (\w+) in\b", block.text)
    )
    assert {name for name in used - set_here if f"`{name}`" not in told(block.page)} == set()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: str(block.name))
def test_words_to_fill_in_are_told_of(block: documents.Block) -> None:
    """`TOKEN` in a command is explained by a sentence of the page or of the README."""
    text = "\n".join(block.commands())
    asked = {word for word in _WORD.findall(re.sub(r"\$\{?\w+|\b\w+=", "", text)) if len(word) > 3} - _FIXED
    # Names of outputs and settings are whole words for a program, not for the reader.
    given_to_programs = set(re.findall(r"(?:get-value|env set) (\w+)", text))
    known = told(block.page)
    untold = {word for word in asked - given_to_programs if word not in known}
    assert {word for word in untold if word.replace("_", " ").lower() not in known.lower()} == set()


def test_a_program_that_nobody_told_of_is_found() -> None:
    page = paths.REPO / "docs" / "jobs.md"
    block = documents.Block(page, 1, "console", 'kubectl get pods | jq .items "$CLUSTER" FILL_ME')
    assert programs(block) - EVERYWHERE == {"kubectl", "jq"}
    with pytest.raises(AssertionError):
        test_programs_are_told_of(block)
    with pytest.raises(AssertionError):
        test_variables_are_set_or_told_of(block)
    with pytest.raises(AssertionError):
        test_words_to_fill_in_are_told_of(block)
