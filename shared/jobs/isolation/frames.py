"""What a worker and a tool's own process say to each other: the grammar, and both ends of a pipe.

    pipe    = frame*, until one side closes it
    frame   = length (4 bytes, big-endian), body (`length` bytes)
    body    = a JSON object in UTF-8, whose `type` is one of these

    worker -> process     launch (once, the first), then stored (one for each file), answer (at most one for
                          each ask) and cancel (at most once)
      launch              path: what `sys.path` becomes; tool: see `recipe`; context: the fields of `Context`,
                          `arguments` among them; call: `ToolCall`; logLevel: from which on records are sent;
                          checkpoint: what an earlier attempt has saved, an object or null; trace: where the
                          attempt stands in its trace, or null: see `shared.telemetry.apart`
      cancel              reason: the text of the error that the tool's next report raises
      stored              error: empty, or a class of `shared.errors` with its message; may come before the
                          file's end, which then is the next that is said of it
      answer              number: of the ask; value; error: empty, or a class of `shared.errors` with its
                          message
    process -> worker     (progress | log | record | file part* end | ask | drop | span | request)*, then one
                          result or one error
      progress            percent: 0 to 100 or null; message: a text or null
      log                 level, message: a line for the job
      record              name, level (a number), message: a record of Python's `logging`, for the app's log
      file                name, mimeType: an artifact begins; parts of one are never mixed with another's
      part                data: bytes of it as base64
      end                 complete: false: the tool has given it up
      ask                 number: not of one that waits for its answer; what, given: see `grammar.ASKS`
      drop                number: nobody waits for that answer any more
      span, request       a request to a service that is over, for the trace and to be counted; only where
                          `launch` had a trace
      result              content, structured, isError, meta, wrapped: the fields of `ToolResult`
      error               kind, message, traceback (kind `Unexpected` only). kind: a class of `shared.errors`,
                          `Unexpected` (message is the whole text for the caller), or `OutOfMemory`

What a process says is checked by `grammar`. Never pickle: a process that a tool has taken over must not be able
to run code in the worker. The caller's token travels in `launch` and nowhere else. The worker reads one frame,
acts on it, and reads the next: a process that says much waits in its own writes.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, Final

#: Bytes of a body: the largest result of a job, which is checked by itself, and the names around it.
FRAME_LIMIT: Final = 65 * 1024 * 1024
#: The same for `launch`: an input's JSON, which may be three times as long when all of it is escaped.
LAUNCH_LIMIT: Final = 256 * 1024 * 1024

_LENGTH = struct.Struct(">I")
_PIECE = 1024 * 1024


class FrameError(Exception):
    """The other side sent something that is no message."""


class CutOffError(FrameError):
    """The pipe ended in the middle of a frame: the other side did, too."""


def packed(message: dict[str, Any]) -> bytes:
    """A frame. Lone surrogates travel as escapes, so that a text arrives as it was."""
    return framed(json.dumps(message, separators=(",", ":")).encode("ascii"))


def framed(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def read(descriptor: int, limit: int = FRAME_LIMIT) -> dict[str, Any] | None:
    """The next message; None at the end of the pipe. Raises `FrameError`, `OSError`."""
    head = _exactly(descriptor, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise CutOffError("the pipe ended inside a length")
    (length,) = _LENGTH.unpack(head)
    if length > limit:
        raise FrameError(f"a frame of {length} bytes")
    body = _exactly(descriptor, length)
    if len(body) < length:
        raise CutOffError("the pipe ended inside a frame")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise FrameError("a frame that is no JSON") from None
    if not isinstance(message, dict):
        raise FrameError("a frame that is no object")
    return message


def write(descriptor: int, data: bytes) -> None:
    """All of the bytes, however slowly the other side reads. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _exactly(descriptor: int, count: int) -> bytearray:
    """That many bytes; fewer at the end of the pipe."""
    # No buffered reader: a process forked while a thread waits in one cannot even close it.
    found = bytearray()
    while len(found) < count:
        piece = os.read(descriptor, min(count - len(found), _PIECE))
        if not piece:
            break
        found += piece
    return found
