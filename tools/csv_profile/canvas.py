"""A small canvas with a palette, a bitmap font, and its encoder to PNG. Standard library only."""

import struct
import zlib
from typing import Final

type Colour = tuple[int, int, int]

GLYPH_WIDTH: Final = 5
GLYPH_HEIGHT: Final = 7

# The printable ASCII characters in order. One digit (base 32) is one row of five pixels, the left one its
# highest bit; seven digits are a glyph.
_GLYPHS: Final = (
    "0000000 4444404 aaa0000 aavavaa 4fke5u4 op248j3 cik8lid 4480000 2488842 8422248 04lel40 044v440 "
    "0000c48 000v000 00000cc 01248g0 ehjlphe 4c4444e eh1248v v2421he 26aiv22 vgu11he 68guhhe v124888 "
    "ehhehhe ehhf12c 0cc0cc0 0cc0c48 248g842 00v0v00 8421248 eh12404 eh1dlle ehhvhhh uhhuhhu ehggghe "
    "sihhhis vgguggv vgguggg ehgnhhf hhhvhhh e44444e 72222ic hikokih ggggggv hrllhhh hhpljhh ehhhhhe "
    "uhhuggg ehhhlid uhhukih fgge11u v444444 hhhhhhe hhhhha4 hhhllla hha4ahh hhha444 v1248gv e88888e "
    "0g84210 e22222e 4ah0000 000000v 8420000 00e1fhf ggmphhu 00egghe 11djhhf 00ehvge 698s888 00fhf1e "
    "ggmphhh 40c444e 20622ic ggikoki c44444e 00qllhh 00mphhh 00ehhhe 00uhugg 00djf11 00mpggg 00ege1u "
    "88s8896 00hhhjd 00hhha4 00hhlla 00ha4ah 00hhf1e 00v248v 2448442 4444444 8442448 008l200"
)
_FONT: Final = {chr(32 + index): glyph for index, glyph in enumerate(_GLYPHS.split())}
_UNKNOWN: Final = "vhhhhhv"


def text_width(text: str, scale: int) -> int:
    """Pixels from the left edge of the first glyph to the right edge of the last."""
    return max(0, len(text) * (GLYPH_WIDTH + 1) - 1) * scale


class Canvas:
    """`width` x `height` pixels, each an index into `palette`; index 0 is the background."""

    def __init__(self, width: int, height: int, palette: tuple[Colour, ...]) -> None:
        self.width = width
        self.height = height
        self._palette = palette
        self._rows = [bytearray(width) for _ in range(height)]

    def fill(self, left: int, top: int, width: int, height: int, colour: int) -> None:
        """Fill a rectangle; what lies outside of the canvas is left out."""
        left, right = max(0, left), min(self.width, left + width)
        if right <= left:
            return
        for row in self._rows[max(0, top) : max(0, top + height)]:
            row[left:right] = bytes((colour,)) * (right - left)

    def text(self, left: int, top: int, text: str, colour: int, scale: int) -> None:
        """Write one line; characters outside ASCII become a box."""
        for position, character in enumerate(text):
            x = left + position * (GLYPH_WIDTH + 1) * scale
            for y, digit in enumerate(_FONT.get(character, _UNKNOWN)):
                bits = int(digit, 32)
                for column in range(GLYPH_WIDTH):
                    if bits >> (GLYPH_WIDTH - 1 - column) & 1:
                        self.fill(x + column * scale, top + y * scale, scale, scale, colour)

    def png(self) -> bytes:
        """The canvas as a PNG file: 8-bit palette, no interlace, no row filter."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 3, 0, 0, 0)
        palette = bytes(value for colour in self._palette for value in colour)
        pixels = b"".join(b"\0" + row for row in self._rows)
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            (
                _chunk(b"IHDR", header),
                _chunk(b"PLTE", palette),
                _chunk(b"IDAT", zlib.compress(pixels, 9)),
                _chunk(b"IEND", b""),
            )
        )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
