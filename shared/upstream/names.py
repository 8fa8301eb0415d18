"""Names of servers and tools.

    name       what the configuration says: `My Server`
    key        the normalised name, which no other server of a scope may share: `my_server`
    qualified  `my_server.read.file`: the key, a dot, and the tool's name, which may hold dots
    canonical  `mcp:my_server:read.file`, what policies speak of
    alias      the qualified name for clients that take only [A-Za-z0-9_-]{1,64}

Keys and aliases are those of Agent Zero (reference/mcp-clients.md 2.3 and 2.8), with what its vectors call a
defect mended.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

from shared.errors import MCPConfigError, MCPToolNotFoundError

MAX_NAME_LENGTH: Final = 128
MAX_ALIAS_LENGTH: Final = 64

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAFE_RUN = re.compile(r"[^A-Za-z0-9_-]+")
#: How the aliases of other names end.
_LIKE_ALIAS = re.compile(r".*_[0-9a-f]{8,}")
#: Letters of an alias before its hash, and of the hash: Agent Zero's, so that both give the same alias.
_SLUG_LENGTH: Final = 52
_HASH_LENGTH: Final = 8
#: For a name without one usable character. Agent Zero's too.
_EMPTY_SLUG: Final = "a0_tool"


def normalize(name: str) -> str:
    """The key of a server's name: composed (NFC), trimmed, lower case, every other sign an underscore.

    Marks of a letter (Mn, Mc) belong to it, so that words of scripts with vowel signs stay apart. Raises
    `MCPConfigError` for a name that is empty, has nothing but signs, or holds invisible characters: two such
    names would be one key, or look like one name.
    """
    text = unicodedata.normalize("NFC", name).strip()
    if not text:
        raise MCPConfigError("name", "a server needs a name; this one is empty")
    if len(text) > MAX_NAME_LENGTH:
        raise MCPConfigError("name", f"a server's name may have at most {MAX_NAME_LENGTH} characters")
    if any(_is_invisible(sign) for sign in text):
        raise MCPConfigError("name", "a server's name must not hold invisible or control characters")
    lowered = unicodedata.normalize("NFC", text.lower())
    key = "".join(sign if _is_word(sign) else "_" for sign in lowered)
    if not key.strip("_") and text.strip("_"):
        raise MCPConfigError("name", "a server's name needs at least one letter or digit")
    return key


def key_of(name: str) -> str:
    """The server's key; the text itself where it cannot be a server's name."""
    try:
        return normalize(name)
    except MCPConfigError:
        return name


def _is_word(sign: str) -> bool:
    return sign == "_" or sign.isalnum() or unicodedata.category(sign) in ("Mn", "Mc")


def _is_invisible(sign: str) -> bool:
    """Control, format, private or unassigned characters, lone surrogates; line breaks and tabs are blanks."""
    return not sign.isspace() and unicodedata.category(sign).startswith("C")


def qualified(server: str, tool: str) -> str:
    return f"{server}.{tool}"


def canonical(server: str, tool: str) -> str:
    """The id of a tool in policies. `server`: its key."""
    return f"mcp:{server}:{tool}"


def split_qualified(name: str) -> tuple[str, str]:
    """(server, tool) of `server.tool`, split at the first dot: a tool's own name may hold dots.

    Nothing is normalised: a name that was not advertised is not found. Raises `MCPToolNotFoundError`.
    """
    server, _, tool = name.partition(".")
    if not server or not tool or any(part != part.strip() or not part.isprintable() for part in (server, tool)):
        shown = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
        raise MCPToolNotFoundError(shown[:MAX_NAME_LENGTH])
    return server, tool


def alias(name: str) -> str:
    """A name of at most 64 of the characters A-Z a-z 0-9 _ - for this one; the same one for ever.

    A name that has that form keeps it, unless it looks like an alias: it could be equal to another name's.
    Raises `ValueError` for an empty name.
    """
    if not name:
        raise ValueError("an empty name has no alias")
    if _SAFE.fullmatch(name) and not _LIKE_ALIAS.fullmatch(name):
        return name
    return _hashed(name)


def _hashed(name: str) -> str:
    # Not for security: it tells names apart, and Agent Zero's aliases are to be the same.
    data = name.encode("utf-8", "surrogatepass")
    digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    slug = _UNSAFE_RUN.sub("_", name).strip("_")[:_SLUG_LENGTH]
    return f"{slug or _EMPTY_SLUG}_{digest[:_HASH_LENGTH]}"
