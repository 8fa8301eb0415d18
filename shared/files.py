"""Files that the app's own commands write."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Writes the file in UTF-8, whole or not at all: whoever reads it meanwhile gets the old text.

    What may be read by its owner only stays so, as configuration holds secrets, and a link stays a link. Raises
    `OSError`, or `UnicodeEncodeError` for half a character; the file is then what it was.
    """
    data = text.encode()
    path = path.resolve()
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)  # of a run that was killed, perhaps with another mode
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        mode = None
    try:
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(data)
        if mode is not None:
            fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
