"""The last lines that a server wrote, or that were said about it: bounded a line, bounded in all, redacted.

The configuration's secrets are taken out of a line before it is cut, so that no half of one stays; what only
looks like a secret is taken out when the text is read, which happens far less often than a server writes.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from shared.redaction import Redactor
from shared.upstream.connection.limits import LOG_LINE_BYTES, LOG_TAIL_BYTES

_CUT: Final = " …[cut]"


class Tail:
    """Not for several threads: everything here runs on the event loop."""

    def __init__(
        self,
        redact: Redactor | None = None,
        *,
        line_bytes: int = LOG_LINE_BYTES,
        total_bytes: int = LOG_TAIL_BYTES,
    ) -> None:
        self._redact = redact or Redactor()
        self._line_bytes = line_bytes
        self._total_bytes = total_bytes
        self._lines: deque[tuple[str, int]] = deque()
        self._bytes = 0
        #: Lines that are no longer here.
        self.dropped = 0

    def add(self, text: str) -> None:
        """Add a text; each of its lines counts as one. Blank ones do not."""
        known: str = self._redact.data(text)
        for line in known.splitlines():
            if line and not line.isspace():
                self._keep(line)

    def _keep(self, line: str) -> None:
        size = len(line) if line.isascii() else len(line.encode("utf-8", "replace"))
        if size > self._line_bytes:
            room = max(0, self._line_bytes - len(_CUT.encode()))
            line = line.encode("utf-8", "replace")[:room].decode("utf-8", "ignore") + _CUT
            size = len(line.encode())
        self._lines.append((line, size + 1))
        self._bytes += size + 1
        while self._bytes > self._total_bytes:
            self._bytes -= self._lines.popleft()[1]
            self.dropped += 1

    def text(self, last: int | None = None) -> str:
        """The lines that are kept, or the `last` of them."""
        lines = [line for line, _ in self._lines]
        return self._redact("\n".join(lines if last is None else lines[-last:]))

    def __bool__(self) -> bool:
        return bool(self._lines)
