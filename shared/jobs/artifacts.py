"""Files that a job leaves for its caller: stored under the job, served to its owner, removed with it.

They belong to the attempt that wrote them: what a lost attempt left is not served, and cannot overwrite what
the next one writes.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from shared.errors import ArtifactError, JobCancelledError
from shared.jobs import keys
from shared.jobs.model import Job, Status
from shared.jobs.store import JobStore, StoredFile
from shared.tool.content import McpResourceLinkContent

MAX_BYTES: Final = 100 * 1024 * 1024
#: Bytes that a stream is read by.
CHUNK: Final = 1024 * 1024
#: RFC 6838: what a media type may consist of.
_MIME = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}(; ?[ -~]{1,100})?"
)
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
_LEGAL_NAME: Final = "1 to 128 of the characters A-Z a-z 0-9 _ . - without a dot at its beginning"


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_mime_type(text: str) -> bool:
    """Whether a file can be stored under it."""
    return _MIME.fullmatch(text) is not None


def artifact_uri(job_id: str, name: str) -> str:
    return f"artifact://{job_id}/{name}"


def artifact_path(job_id: str, name: str) -> str:
    return f"/mcp/jobs/{job_id}/artifacts/{name}"


def read(job: Job, name: str, store: JobStore, offset: int = 0, length: int | None = None) -> StoredFile | None:
    """A file of the job's newest attempt, or a part of it. Blocks."""
    if not is_name(name) or job.status is Status.PENDING:
        return None  # what a lost attempt has left is not what the next one will say
    return store.get_artifact(keys.artifact_blob(job.job_id, job.attempt, name), offset, length)


@dataclass(slots=True)
class _Count:
    bytes: int = 0


class JobArtifacts:
    """`context.artifacts` of a running attempt. `unwanted`: why its work is not wanted any more, if so."""

    def __init__(self, job: Job, store: JobStore, unwanted: Callable[[], JobCancelledError | None]) -> None:
        self._job = job
        self._store = store
        self._unwanted = unwanted

    def write(
        self, name: str, data: bytes | str | BinaryIO | Iterable[bytes], mime_type: str | None = None
    ) -> McpResourceLinkContent:
        """See `shared.tool.context.Artifacts`."""
        if not isinstance(name, str) or not is_name(name):
            raise ArtifactError(f"artifacts: a name must be {_LEGAL_NAME}.")
        mime_type = mime_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        if not isinstance(mime_type, str) or not is_mime_type(mime_type):
            raise ArtifactError(f"artifacts: the mime_type of '{name}' must be one like 'text/csv'.")
        count = _Count()
        body = self._body(name, data, count)
        self._check_wanted()
        self._store.put_artifact(keys.artifact_blob(self._job.job_id, self._job.attempt, name), body, mime_type)
        uri = artifact_uri(self._job.job_id, name)
        return McpResourceLinkContent(uri=uri, name=name, mime_type=mime_type, size=count.bytes)

    def _body(self, name: str, data: object, count: _Count) -> bytes | Iterator[bytes]:
        if isinstance(data, str):
            data = data.encode("utf-8", "replace")
        if isinstance(data, bytes | bytearray | memoryview):
            whole = bytes(data)
            if len(whole) > MAX_BYTES:
                raise _too_large(name)
            count.bytes = len(whole)
            return whole
        reader = getattr(data, "read", None)
        if callable(reader):
            return self._checked(name, iter(lambda: reader(CHUNK), b""), count)
        if isinstance(data, Iterable) and not isinstance(data, dict):
            return self._checked(name, iter(data), count)
        raise ArtifactError(
            f"artifacts: the data of '{name}' must be bytes, text, a binary file or an iterable of bytes, not "
            f"{type(data).__name__}."
        )

    def _checked(self, name: str, parts: Iterator[object], count: _Count) -> Iterator[bytes]:
        """The parts as they come, as long as they are bytes, not too many, and still wanted."""
        for part in parts:
            if isinstance(part, str) and not part:
                return  # the end of a file opened as text, which had nothing in it
            if not isinstance(part, bytes | bytearray | memoryview):
                raise ArtifactError(f"artifacts: '{name}' must be read as bytes, not {type(part).__name__}.")
            count.bytes += len(part)
            if count.bytes > MAX_BYTES:
                raise _too_large(name)
            self._check_wanted()
            yield bytes(part)

    def _check_wanted(self) -> None:
        reason = self._unwanted()
        if reason is not None:
            raise reason


def _too_large(name: str) -> ArtifactError:
    return ArtifactError(f"artifacts: '{name}' has more than {MAX_BYTES} bytes (100 MiB).")
