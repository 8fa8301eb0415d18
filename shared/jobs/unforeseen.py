"""What a caller is told of an exception that nobody foresaw."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

#: Characters of an unforeseen exception's text that a caller is told.
ERROR_LIMIT: Final = 2_000
_FOLDERS: Final = tuple(
    f"{folder.rstrip(os.sep)}{os.sep}"
    for folder in (str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix, str(Path.home()))
    if folder.strip(os.sep)
)


def describe(tool_name: str, error: BaseException) -> str:
    """An unforeseen exception in one line: its kind and its text, no traceback."""
    try:
        text = without_paths(str(error).strip())[:ERROR_LIMIT]
    except Exception:
        text = ""  # an exception that cannot say what it is
    return f"Tool '{tool_name}' failed: {type(error).__name__}" + (f": {text}" if text else "")


def without_paths(text: str) -> str:
    """The text without the folders of this app and its Python: where things are is nobody's business."""
    for folder in _FOLDERS:
        text = text.replace(folder, "")
    return text
