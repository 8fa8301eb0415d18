"""`toolboxAPI.fileSystem`: a private folder for the invocation, removed when it ends.

Paths are relative to that folder, with `/`; nothing outside of it can be named, by `..`, an absolute path or a
link. What is to outlive the invocation is an artifact: `saveFile` makes one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn

from shared.apis import bridge
from shared.apis.launch import current
from shared.apis.record import Record
from shared.apis.toolbox.spelling import TwoSpellings
from shared.errors import ToolError
from shared.text import shape_of
from shared.tool.context import at_end

_WHAT: Final = "toolboxAPI.fileSystem"
_STATE: Final = "folder"
#: Bytes that one read or write may move.
MAX_BYTES: Final = 100 * 1024 * 1024


class FileSystemApi(TwoSpellings):
    """Every method raises `ToolError` that names the path as it was given."""

    def read_text(self, path: str) -> Any:
        return _done(path, lambda: _read(path).decode("utf-8", "replace"))

    def read_binary(self, path: str) -> Any:
        return _done(path, lambda: _read(path))

    def exists(self, path: str) -> Any:
        return _done(path, lambda: _inside(path).exists())

    def stat(self, path: str) -> Any:
        """`{type: file|directory, size, mtime}`; size in bytes, mtime in milliseconds since 1970."""
        return _done(path, lambda: _about(path))

    def read_directory(self, path: str = ".") -> Any:
        """`[{name, type}]`, by name."""
        return _done(path, lambda: _entries(path))

    def write_text(self, path: str, content: str) -> Any:
        return _done(path, lambda: _write(path, content.encode("utf-8", "replace")))

    def write_binary(self, path: str, content: bytes) -> Any:
        return _done(path, lambda: _write(path, bytes(content)))

    def create_directory(self, path: str) -> Any:
        return _done(path, lambda: _inside(path).mkdir(parents=True, exist_ok=True))

    def save_file(self, default_path: str, content: str | bytes, *_: Any) -> Any:
        """Keeps a file for the caller, as an artifact of the job. Its `artifact://` address."""
        name = PurePosixPath(default_path.replace("\\", "/")).name
        artifacts = current(_WHAT).artifacts
        return _done(default_path, lambda: artifacts.write(name, content).uri)

    def select_path(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ToolError(
            f"{_WHAT}.selectPath is not available here: there is nobody to choose; take it as an input"
        )


def _done(path: object, work: Callable[[], Any]) -> Any:
    """The value of `work`, which waits for a disk or for storage: never on an event loop."""

    def guarded() -> Any:
        try:
            return work()
        except OSError as error:  # its own text would name the folder
            raise ToolError(f"{_WHAT}: '{str(path)[:80]}': {error.strerror or type(error).__name__}") from None

    return bridge.blocking(guarded)


def _folder() -> Path:
    context = current(_WHAT)
    found = context.state.get(_STATE)
    if found is None:
        made = Path(os.path.realpath(tempfile.mkdtemp(prefix="toolbox-files-")))
        found = context.state.setdefault(_STATE, made)
        at_end(context, lambda: shutil.rmtree(made, ignore_errors=True))
    assert isinstance(found, Path)
    return found


def _inside(path: object) -> Path:
    """The file of that path, which need not be there."""
    if not isinstance(path, str) or not path or "\0" in path or "\\" in path:
        raise ToolError(f"{_WHAT}: a path must be a text with / between its parts, not {shape_of(path)}")
    parts = PurePosixPath(path)
    folder = _folder()
    target = folder / parts
    if parts.is_absolute() or ".." in parts.parts or not Path(os.path.realpath(target)).is_relative_to(folder):
        raise ToolError(f"{_WHAT}: '{path[:80]}' leads out of the invocation's own folder")
    return target


def _there(path: str) -> Path:
    file = _inside(path)
    if not file.exists():
        raise ToolError(f"{_WHAT}: there is no '{path[:80]}'")
    return file


def _about(path: str) -> Record:
    file = _there(path)
    about = file.stat()
    return Record(type=_kind(file), size=about.st_size, mtime=int(about.st_mtime * 1000))


def _entries(path: str) -> list[Record]:
    folder = _there(path)
    if not folder.is_dir():
        raise ToolError(f"{_WHAT}: '{path[:80]}' is no folder")
    return [Record(name=entry.name, type=_kind(entry)) for entry in sorted(folder.iterdir())]


def _kind(file: Path) -> str:
    return "directory" if file.is_dir() else "file"


def _read(path: str) -> bytes:
    file = _there(path)
    if not file.is_file():
        raise ToolError(f"{_WHAT}: '{path[:80]}' is no file")
    if file.stat().st_size > MAX_BYTES:
        raise ToolError(f"{_WHAT}: '{path[:80]}' has more than {MAX_BYTES} bytes")
    return file.read_bytes()


def _write(path: str, content: bytes) -> None:
    if len(content) > MAX_BYTES:
        raise ToolError(f"{_WHAT}: '{path[:80]}' would have more than {MAX_BYTES} bytes")
    file = _inside(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
