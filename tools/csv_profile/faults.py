"""What can be wrong with a text before it is read as CSV: no text at all, wrong encodings, odd characters.

Whatever makes a profile meaningless is a `ToolError`; whatever a reader only has to know is a warning.
"""

import codecs
import re
from collections.abc import Iterator
from typing import Final

from shared.tool import ToolError

_LOOK: Final = 65_536
_SLICE: Final = 1 << 20

# How well-known binary formats begin when their bytes are read as Latin-1 or as UTF-8 with replacements.
_MAGIC: Final = (
    ("PK\x03\x04", "a ZIP archive (an .xlsx workbook is one)"),
    ("\x1f\x8b", "gzip data"),
    ("\x1f\ufffd", "gzip data"),
    ("%PDF-", "a PDF document"),
    ("\x89PNG", "a PNG image"),
    ("\ufffdPNG", "a PNG image"),
    ("ÐÏ\x11à", "an old Office document (.xls)"),
    ("\ufffd\ufffd\x11\ufffd", "an old Office document (.xls)"),
    ("PAR1", "a Parquet file"),
    ("SQLite format 3\x00", "an SQLite database"),
)
_BOM: Final = "\ufeff"
_LATIN_1_BOM: Final = "ï»¿"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\ufffd]")
_INK: Final = re.compile(r"\S")
_ADDRESS: Final = re.compile(
    r"\s*(?:(?:https?|file)://\S+|[^\n\r,;|\t]{1,300}\.(?:csv|tsv|txt|xlsx?))\s*", re.IGNORECASE
)
_HTML: Final = re.compile(r"\s*<(?:!doctype html|html|\?xml)", re.IGNORECASE)


def refuse_non_text(text: str, start: int) -> None:
    """ToolError when `csv` has nothing from `start` on, or is plainly no CSV text."""
    if not _INK.search(text, start):
        raise ToolError(f"csv is {'blank' if text else 'empty'}: it needs at least one row of delimited text.")
    head = text[start : start + _LOOK]
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise ToolError(f"csv holds {what}, not text: export the table as CSV first.")
    if len(text) < 1_000 and _ADDRESS.fullmatch(head):
        raise ToolError("csv is a path or URL; it must be the CSV text itself: read the file first.")
    if head.startswith(("\ufffe", "ÿþ", "þÿ")) or _every_second_is_nul(head):
        raise ToolError("csv is UTF-16 text that was decoded as something else: decode it as UTF-16 first.")
    odd = len(_CONTROL.findall(head))
    if odd > 8 and odd > len(head) // 20:
        raise ToolError(
            f"csv is not text: {odd:,} of its first {len(head):,} characters are control or replacement "
            "characters. Decode the file with its own encoding, or export it as CSV."
        )


def _every_second_is_nul(head: str) -> bool:
    """True for half of the characters at the even or at the odd places: UTF-16 of mostly Western text."""
    return len(head) >= 4 and max(head[::2].count("\0"), head[1::2].count("\0")) * 4 > len(head)


def content_start(text: str) -> tuple[int, list[str]]:
    """Where the content begins after byte order marks, and warnings about them."""
    start = 0
    warnings = []
    if text.startswith(_BOM):
        start = len(_BOM)
    if text.startswith(_LATIN_1_BOM, start):
        start += len(_LATIN_1_BOM)
        warnings.append(
            f"The text begins with '{_LATIN_1_BOM}', a UTF-8 byte order mark that was read as Latin-1: it was "
            "removed, but letters outside ASCII are probably wrong."
        )
    return start, warnings


def text_warnings(text: str) -> list[str]:
    """Warnings about characters that a healthy text does not have."""
    warnings = []
    if _HTML.match(text[:1000]):
        warnings.append(
            "The text looks like HTML or XML: perhaps an error page was saved in place of the data."
        )
    if "\\n" in text and "\n" not in text and "\r" not in text:
        warnings.append(
            "The text has no line breaks, but '\\n' as two characters: it was probably escaped once too often."
        )
    if nuls := text.count("\0"):
        warnings.append(f"The text holds {nuls:,} NUL character(s), which were kept as part of their cells.")
    if lost := text.count("\ufffd"):
        warnings.append(
            f"The text holds {lost:,} replacement character(s) U+FFFD: it was decoded with a wrong encoding."
        )
    if has_surrogates(text):
        warnings.append("The text holds unpaired UTF-16 surrogates; they are shown as U+FFFD.")
    if _is_mojibake(text):
        warnings.append(
            "The text looks like UTF-8 that was read as Latin-1 or Windows-1252 ('Ã©' for 'é'): decode it as "
            "UTF-8."
        )
    if "\r" in text and (lone := text.count("\r") - text.count("\r\n")):
        warnings.append(
            f"The text holds {lone:,} carriage return(s) without line feed, which were read as line ends."
        )
    return warnings


def has_surrogates(text: str) -> bool:
    """Whether `text` holds code points that no UTF encoding can carry."""
    if text.isascii():
        return False
    try:
        for piece in _slices(text):
            piece.encode()
    except UnicodeEncodeError:
        return True
    return False


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), _SLICE):
        yield text[start : start + _SLICE]


def _is_mojibake(text: str) -> bool:
    """Whether the first letters beyond ASCII are all bytes of valid UTF-8, which real Latin-1 text never is."""
    if text.isascii():
        return False
    for piece in _slices(text):
        if piece.isascii():
            continue
        first = next(index for index, character in enumerate(piece) if character > "\x7f")
        sample = piece[first : first + _LOOK]
        return any(_decodes(sample, encoding) for encoding in ("latin-1", "cp1252"))
    return False


def _decodes(sample: str, encoding: str) -> bool:
    try:
        decoded = codecs.getincrementaldecoder("utf-8")().decode(sample.encode(encoding))
    except UnicodeError:
        return False
    return not decoded.isascii()
