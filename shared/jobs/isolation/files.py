"""`context.artifacts` of a tool in a process of its own: files on their way through the pipe, in parts.

Both ends. The process checks a file as the worker would, and sends it part by part; the worker hands the parts
to storage as they come. Other frames may come in between.
"""

from __future__ import annotations

import base64
import binascii
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final

from shared import errors
from shared.errors import ArtifactError, JobCancelledError, ToolboxError
from shared.jobs.isolation.channel import Channel
from shared.jobs.isolation.frames import FrameError
from shared.tool.content import McpResourceLinkContent
from shared.tool.context import Context
from shared.tool.spec import JsonObject

#: Bytes of a part, before base64.
PART: Final = 1024 * 1024


class ChannelArtifacts:
    """The process's end. `unwanted`: why the job is not wanted any more, if so."""

    def __init__(
        self, channel: Channel, launch: JsonObject, unwanted: Callable[[], JobCancelledError | None]
    ) -> None:
        self._channel = channel
        self._launch = launch
        self._unwanted = unwanted
        # One file at a time.
        self._turn = threading.Lock()
        self._answers: queue.SimpleQueue[JsonObject] = queue.SimpleQueue()

    def answered(self, message: JsonObject) -> None:
        self._answers.put(message)

    def write(
        self, name: str, data: bytes | str | BinaryIO | Iterable[bytes], mime_type: str | None = None
    ) -> McpResourceLinkContent:
        """See `shared.tool.context.Artifacts`."""
        from shared.jobs.artifacts import JobArtifacts

        job: Any = _Job(self._launch["context"])
        store: Any = _Store(self, name)
        return JobArtifacts(job, store, self._unwanted).write(name, data, mime_type)

    def send(self, name: str, parts: Iterator[bytes], mime_type: str) -> None:
        if not self._channel.is_open:
            raise ArtifactError("Artifacts are written by the tool's own process, not by one that it forked.")
        with self._turn:
            self._channel.send({"type": "file", "name": name, "mimeType": mime_type})
            complete = False
            try:
                for part in parts:
                    if not self._answers.empty():
                        break  # refused already
                    text = base64.b64encode(part).decode("ascii")
                    self._channel.send({"type": "part", "data": text})
                complete = True
            finally:
                self._channel.send({"type": "end", "complete": complete})
                answer = self._answers.get()
        if answer["error"]:
            kind = getattr(errors, answer["error"])
            raise kind(answer["message"])


class _Job:
    """What `JobArtifacts` asks of a job."""

    def __init__(self, context: JsonObject) -> None:
        self.job_id = context["job_id"]
        self.attempt = context["attempt"]


class _Store:
    """What `JobArtifacts` asks of a store."""

    def __init__(self, artifacts: ChannelArtifacts, name: str) -> None:
        self._artifacts = artifacts
        self._name = name

    def put_artifact(self, blob: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        self._artifacts.send(self._name, _parts(data), mime_type)


def _parts(data: bytes | Iterator[bytes]) -> Iterator[bytes]:
    for piece in (data,) if isinstance(data, bytes) else data:
        for start in range(0, len(piece), PART):
            yield piece[start : start + PART]


class Receiver:
    """The worker's end of one file. `read`: gives the next frame; `other`: takes what is not of the file."""

    def __init__(self, read: Callable[[], JsonObject | None], other: Callable[[JsonObject], None]) -> None:
        self._read = read
        self._other = other
        #: The process's last frame, if it came before the file's end.
        self.last: JsonObject | None = None
        self._fault: FrameError | None = None

    def store(self, context: Context, file: JsonObject, answer: Callable[[JsonObject], None]) -> None:
        """Stores the file, and leaves the pipe behind its end. Never raises for what storage says.

        Raises `FrameError`: whoever reads the file's parts may make another error of it, so it is kept.
        """
        parts = self._parts()
        told: JsonObject = {"type": "stored", "error": "", "message": ""}
        try:
            context.artifacts.write(file["name"], parts, file["mimeType"])
        except ToolboxError as error:
            told |= {"error": known_kind(error), "message": error.message}
        except _GivenUpError:
            told |= {"error": ArtifactError.__name__, "message": ArtifactError.default}
        except Exception as error:
            if self._fault is not None:
                raise self._fault from None
            logging.getLogger(__name__).warning("job %s: a file was not stored", context.job_id, exc_info=True)
            text = f"The artifact could not be stored ({type(error).__name__})."
            told |= {"error": ArtifactError.__name__, "message": text}
        answer(told)
        try:
            for _ in parts:
                pass
        except _GivenUpError:
            return

    def _parts(self) -> Iterator[bytes]:
        try:
            yield from self._read_parts()
        except FrameError as error:
            self._fault = error
            raise

    def _read_parts(self) -> Iterator[bytes]:
        while (message := self._read()) is not None:
            match message.get("type"):
                case "part":
                    yield decoded(message["data"])
                case "end":
                    if message["complete"]:
                        return
                    raise _GivenUpError
                case "result" | "error":
                    self.last = message
                    raise _GivenUpError
                case _:
                    self._other(message)
        raise _GivenUpError


def decoded(text: str) -> bytes:
    """The bytes of a part. Raises `FrameError`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FrameError("a part that is no base64") from None


class _GivenUpError(Exception):
    """The file will not be complete."""


def known_kind(error: ToolboxError) -> str:
    """The nearest class that the other side knows too: a tool may have classes of its own."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
