"""A place in the tokens of a file, with the moves that both parsers need."""

from __future__ import annotations

from infra.azure.lint.report import SyntaxFault
from infra.azure.lint.tokens import Kind, Token, tokens


class Cursor:
    def __init__(self, text: str, offset: int = 0) -> None:
        """Raises `SyntaxFault`. `offset`: where to begin in the text; what stands before gives places alone."""
        self.text = text
        self._tokens = list(tokens(text, offset))
        self._position = 0

    @property
    def now(self) -> Token:
        return self._tokens[self._position]

    def is_at(self, *texts: str) -> bool:
        """Whether the next token is one of these names or punctuation marks."""
        return self.now.text in texts and self.now.kind in (Kind.NAME, Kind.PUNCTUATION)

    def take(self) -> Token:
        token = self.now
        if token.kind is not Kind.END:
            self._position += 1
        return token

    def skip(self, *texts: str) -> bool:
        """Takes the next token if it is one of these."""
        if self.is_at(*texts):
            self.take()
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.is_at(text):
            raise SyntaxFault(self.now.place, f"'{text}' is expected here, not {self.now}")
        return self.take()

    def expect_kind(self, kind: Kind) -> Token:
        if self.now.kind is not kind:
            raise SyntaxFault(self.now.place, f"{kind.value} is expected here, not {self.now}")
        return self.take()

    def newlines(self) -> bool:
        """Skips ends of lines; whether there was one."""
        found = False
        while self.now.kind is Kind.NEWLINE:
            self.take()
            found = True
        return found

    def end_of_line(self) -> None:
        if self.now.kind is not Kind.END and not self.newlines():
            raise SyntaxFault(self.now.place, f"the line must end here, before {self.now}")
