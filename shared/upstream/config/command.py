"""Command lines and argument lists, split without loss.

A command line is split at blanks as a shell does, without anything else that a shell does: no variables,
patterns, pipes or comments. A backslash escapes a blank, a quote or itself and is a backslash otherwise, so
Windows paths survive. An argument list stays as it is written, but for an item that is exactly an option and
its value (`--port 80`), which command line managers make. Source: vectors/agentzero/agentzero-command.json.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from shared.errors import MCPConfigError
from shared.tool.validation import kind_of

#: `C:\\…` or `\\\\server\\…`: one token up to the next blank, backslashes and all.
_WINDOWS_PATH = re.compile(r"(?:[A-Za-z]:\\|\\\\[^\\\s])")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
#: An option without `=`, blanks or tabs, and one value: in quotes, or one word that is no option itself.
_OPTION_AND_VALUE = re.compile(
    r"""(--?[A-Za-z][\w.-]*)[ \t]+(?:'([^'\n]*)'|"([^"\n]*)"|((?!-)[^\s'"][^\s]*))""",
    re.ASCII,
)
_ESCAPABLE: Final = " \t'\"\\"


def split_command(
    command: Any, args: Any = None, is_program: Callable[[str], bool] | None = None
) -> tuple[str, list[str]]:
    """(executable, arguments before those of `args`) of an entry's `command`; ("", []) for none.

    `is_program`: whether a text is a program or file as it stands; by default what the machine says. Such a
    text is not split. Beside a list of arguments a text is split only when its first word is a program. Raises
    `MCPConfigError`.
    """
    if command is None:
        return "", []
    if not isinstance(command, str):
        raise MCPConfigError("command", f"must be text, not {kind_of(command)}; arguments belong into 'args'")
    if "\0" in command:
        raise MCPConfigError("command", "must not hold a NUL character")
    text = command.strip()
    is_program = is_program or found_on_machine
    if not re.search(r"[\s'\"\\]", text) or is_program(text):
        return text, []
    first, *rest = _split(text)
    if _ASSIGNMENT.match(first):
        raise MCPConfigError("command", "variables do not belong into the command; set them in 'env'")
    if not first and rest:
        raise MCPConfigError("command", "the program's name is empty")
    if args and rest and not is_program(first):
        return text, []
    return first, rest


def found_on_machine(text: str) -> bool:
    try:
        return shutil.which(text) is not None or Path(text).is_file()
    except (OSError, ValueError):
        return False


def split_args(args: list[str]) -> list[str]:
    """An argument list with the items taken apart that are an option and its value; all others unchanged."""
    return [piece for item in args for piece in _pieces(item)]


def _pieces(item: str) -> list[str]:
    match = _OPTION_AND_VALUE.fullmatch(item)
    if match is None:
        return [item]
    option, single, double, word = match.groups()
    return [option, next(value for value in (single, double, word) if value is not None)]


def _split(text: str) -> list[str]:
    """The tokens of a command line. Raises `MCPConfigError` for a quote that is not closed."""
    found: list[str] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        token, position = _token(text, position)
        found.append(token)
    return found


def _token(text: str, position: int) -> tuple[str, int]:
    if _WINDOWS_PATH.match(text, position):
        end = position
        while end < len(text) and not text[end].isspace():
            end += 1
        return text[position:end], end
    signs: list[str] = []
    while position < len(text) and not text[position].isspace():
        sign = text[position]
        if sign in "'\"":
            piece, position = _quoted(text, position)
            signs.append(piece)
        elif sign == "\\" and text[position + 1 : position + 2] and text[position + 1] in _ESCAPABLE:
            signs.append(text[position + 1])
            position += 2
        else:
            signs.append(sign)
            position += 1
    return "".join(signs), position


def _quoted(text: str, position: int) -> tuple[str, int]:
    quote = text[position]
    signs: list[str] = []
    position += 1
    while position < len(text):
        sign = text[position]
        if sign == quote:
            return "".join(signs), position + 1
        following = text[position + 1 : position + 2]
        # A Windows path in quotes keeps its backslashes; UNC's two at the start are no escape.
        is_unc = not signs and _WINDOWS_PATH.match(text, position) is not None
        if quote == '"' and sign == "\\" and following and following in '"\\' and not is_unc:
            sign, position = following, position + 1
        elif quote == '"' and is_unc and sign == "\\":
            signs.append(sign)
            sign, position = following, position + 1
        signs.append(sign)
        position += 1
    raise MCPConfigError("command", "a quote is not closed")
