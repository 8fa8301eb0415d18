"""stdio: a child process that writes one message a line to stdout, and anything at all to stderr."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from mcp_types import JSONRPCMessage, JSONRPCRequest

from shared.errors import MCPConnectionError
from shared.upstream.connection.faults import Failure, FailureKind, NotSentError, one_line
from shared.upstream.connection.inbox import Inbox, Outbox, messages, skipped, written
from shared.upstream.connection.limits import MESSAGE_BYTES, MIB
from shared.upstream.connection.lines import LineSplitter, OverlongLine
from shared.upstream.connection.process import Child, command_path
from shared.upstream.connection.transport import Streams

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.tail import Tail

#: Python servers on some systems would otherwise write in the code page of the machine.
_UTF8: Final[Mapping[str, str]] = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}
#: A part of a line that is no message, as the log shows it.
_SHOWN: Final = 200
#: Requests without an answer at which the old ones among them are forgotten.
_MANY_OPEN: Final = 256


def child_environment(configured: Mapping[str, str] | None) -> dict[str, str]:
    """What the child gets: the SDK's safe few of ours (PATH, HOME, …), UTF-8 for Python, what is configured."""
    from mcp.client.stdio import get_default_environment

    return {**get_default_environment(), **_UTF8, **(configured or {})}


class StdioTransport:
    def __init__(self, config: ServerConfig, tail: Tail) -> None:
        self._config = config
        self._tail = tail
        self._encoding = config.encoding
        self._errors = str(config.encoding_error_handler)
        self._lines = LineSplitter(MESSAGE_BYTES)
        self._inbox = Inbox(lambda: self._running.pause_reading(), lambda: self._running.resume_reading())
        self._child: Child | None = None
        #: Request -> where in the child's stdin it begins, for those that have no answer.
        self._open_requests: dict[int | str, int] = {}

    @property
    def _running(self) -> Child:
        assert self._child is not None
        return self._child

    @asynccontextmanager
    async def open(self, folder: Path, patience: float) -> AsyncIterator[Streams]:
        """`patience`: seconds that the child gets to leave by itself, and again after it was asked to.

        `MCPConnectionError` when the command does not exist or cannot be started; it names the command.
        """
        name, command = self._config.name, str(self._config.command)
        environment = child_environment(self._config.environment())
        self._check_encoding()
        path = command_path(command, environment)
        if path is None:
            raise MCPConnectionError(
                f"Server '{name}' cannot be started: the command '{command}' is not found.", name, command
            )
        try:
            self._child = await Child.start(
                path,
                self._config.args,
                environment=environment,
                folder=folder,
                tail=self._tail,
                on_output=self._take,
                on_end=self._end,
            )
        except (OSError, ValueError) as error:
            why = (
                (os.strerror(error.errno) if error.errno else "") if isinstance(error, OSError) else str(error)
            )
            raise MCPConnectionError(
                f"Server '{name}' cannot be started: the command '{command}' fails"
                f" ({why or type(error).__name__}).",
                name,
                command,
            ) from None
        try:
            yield Streams(self._inbox, Outbox(self._send), ending=self.ending, kill=self._child.kill)
        finally:
            await self._child.stop(patience)

    def ending(self) -> str:
        """How the child ended, as part of a sentence; empty while it runs."""
        code = self._child.exit_code if self._child is not None else None
        if code is None:
            return ""
        return (
            f"its process was ended by signal {-code}"
            if code < 0
            else f"its process ended with exit code {code}"
        )

    def _check_encoding(self) -> None:
        try:
            usable = "\n".encode(self._encoding) == b"\n"
        except LookupError:
            usable = False
        if not usable:
            raise MCPConnectionError(
                f"Server '{self._config.name}' cannot be started: the encoding "
                f"'{one_line(self._encoding, 40)}' is unknown, or does not write lines as ASCII does.",
                self._config.name,
            )

    def _take(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._take_line(line)

    def _take_line(self, line: bytes | OverlongLine) -> None:
        if isinstance(line, OverlongLine):
            request, failure = skipped(line, MESSAGE_BYTES)
            self._tail.add(f"[stdout] {failure.text}")
            if request is None:
                # Which call it would have answered cannot be told, and that one must not wait for ever.
                self._inbox.close()
            else:
                self._inbox.fail(request, failure)
            return
        line = line.strip().removeprefix(b"\xef\xbb\xbf")
        if not line:
            return
        try:
            for message in self._read(line):
                self._open_requests.pop(getattr(message, "id", None) or "", None)
                self._inbox.put(message, len(line))
        except ValueError:
            shown = one_line(line[: 4 * _SHOWN].decode("utf-8", "replace"), _SHOWN)
            self._tail.add(f"[stdout] skipped a line that is no message: {shown}")

    def _read(self, line: bytes) -> list[JSONRPCMessage]:
        if self._encoding.lower() in ("utf-8", "utf8"):
            try:
                return messages(line)
            except ValueError:
                if self._errors == "strict":
                    raise
        return messages(line.decode(self._encoding, self._errors))

    def _end(self) -> None:
        if (rest := self._lines.rest()) is not None:
            self._take_line(rest)
        read = self._running.read
        for request, start in self._open_requests.items():
            if start >= read:
                text = f"{self.ending()}, and had not read the request"
                self._inbox.fail(request, Failure(FailureKind.NETWORK, text, sent=False))
        self._open_requests.clear()
        self._inbox.close()

    def _note(self, request: int | str) -> None:
        """Where the request begins. What lies so far back that no pipe can hold it has been read."""
        written = self._running.written
        if len(self._open_requests) >= _MANY_OPEN:
            self._open_requests = {
                known: start for known, start in self._open_requests.items() if start >= written - MIB
            }
        self._open_requests[request] = written

    async def _send(self, item: SessionMessage) -> None:
        try:
            data = f"{written(item)}\n".encode(self._encoding, self._errors)
            if isinstance(item.message, JSONRPCRequest):
                self._note(item.message.id)
            await self._running.write(data)
        except UnicodeEncodeError:
            raise NotSentError(f"the arguments cannot be written in the encoding '{self._encoding}'") from None
        except (BrokenPipeError, ConnectionError):
            self._end()
            if isinstance(item.message, JSONRPCRequest):
                raise NotSentError("its process does not read any more") from None
            raise anyio.BrokenResourceError from None
