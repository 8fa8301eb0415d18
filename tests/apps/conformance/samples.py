"""Small files that are what they say."""

from __future__ import annotations

import base64
import struct

#: An image of one red pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
_SILENCE = bytes(8)
_FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
#: Four samples of silence: 16 bits, 8,000 a second.
WAV = b"".join(
    (
        struct.pack("<4sI4s", b"RIFF", 4 + len(_FORMAT) + 8 + len(_SILENCE), b"WAVE"),
        _FORMAT,
        struct.pack("<4sI", b"data", len(_SILENCE)),
        _SILENCE,
    )
)
