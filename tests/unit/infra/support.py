"""A copy of what the lint reads, and ways to break it on purpose."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.azure.lint.__main__ import lint
from infra.azure.lint.files import Project, check_file
from infra.azure.lint.report import Finding
from infra.azure.lint.tokens import Kind, Token, tokens

REPO = Path(__file__).resolve().parents[3]
AZURE = REPO / "infra" / "azure"
#: Every Bicep file, relative to infra/azure.
BICEP = sorted(path.relative_to(AZURE).as_posix() for path in AZURE.rglob("*.bicep"))


@dataclass(frozen=True)
class Copy:
    """A folder that holds what the lint reads of the repository."""

    root: Path

    def path(self, name: str) -> Path:
        """`name`: relative to infra/azure, or azure.yaml."""
        return self.root / name if name == "azure.yaml" else self.root / "infra" / "azure" / name

    def text(self, name: str) -> str:
        return self.path(name).read_text("utf-8")

    def lint_with(self, name: str, text: str) -> list[Finding]:
        """The findings while one file has another text."""
        with self._replaced(name, text):
            return lint(self.root)

    def sees(self, name: str, text: str) -> bool:
        """Whether `lint_with` finds anything. Asks the Bicep file alone first, which is quick: the whole lint
        tells that file's findings, too.
        """
        with self._replaced(name, text):
            alone = Project(self.root)
            check_file(alone, self.path(name))
            return bool(alone.findings) or bool(lint(self.root))

    @contextlib.contextmanager
    def _replaced(self, name: str, text: str) -> Iterator[None]:
        path = self.path(name)
        before = path.read_text("utf-8")
        path.write_text(text, "utf-8")
        try:
            yield
        finally:
            path.write_text(before, "utf-8")

    def with_replaced(self, name: str, old: str, new: str) -> list[Finding]:
        text = self.text(name)
        assert text.count(old) >= 1, f"{name} has no {old!r} any more"
        return self.lint_with(name, text.replace(old, new, 1))


def copied(folder: Path) -> Copy:
    shutil.copytree(AZURE, folder / "infra" / "azure", ignore=shutil.ignore_patterns("lint", "__pycache__"))
    (folder / "docs").mkdir()
    for name in ("azure.yaml", "host.json", "docs/settings.md"):
        shutil.copy(REPO / name, folder / name)
    return Copy(folder)


@dataclass(frozen=True)
class Mutant:
    """A file's text with one thing changed."""

    label: str
    text: str


def keys(text: str) -> Iterator[Mutant]:
    """Every property's name misspelt in turn."""
    for before, token, behind in _with_neighbours(text):
        if not _is_key(before, behind):
            continue
        if token.kind is Kind.NAME:
            yield _replaced(text, token, f"{token.text}x")
        elif token.kind is Kind.STRING and "${" not in token.text:
            yield _replaced(text, token, f"{token.text[:-1]}x'")


def _with_neighbours(text: str) -> Iterator[tuple[Token | None, Token, Token]]:
    """(the one before, the token, the one behind), without the end of the file."""
    found = list(tokens(text))
    return zip([None, *found], found, found[1:], strict=False)


def _is_key(before: Token | None, behind: Token) -> bool:
    """Whether a colon follows, and the token begins a line: `a ? b : c` has names before a colon, too."""
    begins = before is not None and (before.kind is Kind.NEWLINE or before.text == "{")
    return behind.text == ":" and begins


def texts(text: str) -> Iterator[Mutant]:
    """Every string that is written out, with a letter more. Not keys and descriptions."""
    lines = text.splitlines()
    for before, token, behind in _with_neighbours(text):
        described = "@description(" in lines[token.place.line - 1]
        plain = token.kind is Kind.STRING and "${" not in token.text
        if plain and not described and not _is_key(before, behind):
            yield _replaced(text, token, f"{token.text[:-1]}x'")


def of_other_types(text: str) -> Iterator[Mutant]:
    """Every number and truth value as a text of the same letters."""
    for token in tokens(text):
        if token.kind is Kind.NUMBER or token.text in ("true", "false"):
            yield _replaced(text, token, f"'{token.text}'")


def names(text: str) -> Iterator[Mutant]:
    """Every name that is read, called or declared, misspelt where it stands; keys are `keys`'."""
    words = ("true", "false", "null", "existing", "for", "in", "if")
    for before, token, behind in _with_neighbours(text):
        if token.kind is Kind.NAME and not _is_key(before, behind) and token.text not in words:
            yield _replaced(text, token, f"{token.text}x")


def without(text: str) -> Iterator[Mutant]:
    """Every bracket, colon, comma, operator and quoted string taken out in turn."""
    for token in tokens(text):
        if token.kind is Kind.PUNCTUATION:
            yield _replaced(text, token, "")


def _replaced(text: str, token: Token, new: str) -> Mutant:
    end = token.offset + len(token.text)
    label = f"{token.place.line}:{token.place.column} {token.text} -> {new}"
    return Mutant(label, text[: token.offset] + new + text[end:])
