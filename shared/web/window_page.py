"""A tool's page as it is served: a file below its `ui/`, under a policy that leaves it nothing but itself.

The page is a stranger's code in the person's browser. It is meant for a frame of ours, and safe anywhere:

    sandbox allow-scripts   an opaque origin: no cookie, no storage, nothing of ours to read; no forms, no
                            pop-ups, no navigation of the top
    connect-src 'none'      no requests of its own (default-src 'none' covers what is not named)
    script-src 'self' …     its own files, and the inline scripts that stand in its file, by their hashes: what
                            somebody else's data puts into the page does not run
    frame-ancestors 'self'  no other site frames it

It cannot load itself elsewhere either: the frame belongs to our page, whose policy has `frame-src 'self'`. What
no policy forbids today are WebRTC and the lookup of host names (Chromium does not know CSP's `webrtc`).

Its files are asked for from an opaque origin, so to the browser they are another site's: they say that they may
be used there. They hold no data of anybody's, and no cookie opens them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import azure.functions as func

from shared.web.answers import SECURITY_HEADERS

#: The bridge's name below every page's folder; no file of a tool begins with `_toolbox/`.
BRIDGE: Final = "_toolbox/bridge.js"
INDEX: Final = "index.html"
MOST_BYTES: Final = 32 * 1024 * 1024
_POLICY: Final = "Content-Security-Policy"
_BRIDGE_FILE: Final = Path(__file__).with_name("window_bridge.js")
_TEXT: Final = "; charset=utf-8"
TYPES: Final = {
    ".avif": "image/avif",
    ".css": f"text/css{_TEXT}",
    ".gif": "image/gif",
    ".htm": f"text/html{_TEXT}",
    ".html": f"text/html{_TEXT}",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": f"text/javascript{_TEXT}",
    ".json": "application/json",
    ".mjs": f"text/javascript{_TEXT}",
    ".otf": "font/otf",
    ".png": "image/png",
    ".svg": f"image/svg+xml{_TEXT}",
    ".ttf": "font/ttf",
    ".txt": f"text/plain{_TEXT}",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
#: A part of a path: no dot at its beginning, and nothing that means something to a file system or a URL.
_PART = re.compile(r"[^\W_][\w@()+,=~ .-]*|_[\w@()+,=~.-]+")
_FEATURES: Final = (
    "accelerometer", "autoplay", "camera", "display-capture", "fullscreen", "geolocation", "gyroscope",
    "magnetometer", "microphone", "midi", "payment", "publickey-credentials-get", "screen-wake-lock", "usb",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes = field(repr=False)
    content_type: str
    headers: dict[str, str]


def page_file(folder: Path, root: str, name: str) -> PageFile | None:
    """A file of a page. Blocks. None: there is none to be served.

    `folder`: the tool's `ui`; `root`: the address of the page's folder, with a slash at its end; `name`: the
    path below it, decoded once.
    """
    if name == BRIDGE:
        return PageFile(_bridge(), TYPES[".js"], headers())
    path = _found(folder, name or INDEX)
    if path is None or path.stat().st_size > MOST_BYTES:
        return None
    kind, body = TYPES[path.suffix.lower()], path.read_bytes()
    if not kind.startswith("text/html"):
        return PageFile(body, kind, headers())
    # Whatever the file begins with: what is hashed is what the browser reads.
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    outline = _Outline(text)
    bridge = f'<script src="{root}{BRIDGE}"></script>'
    text = text[: outline.head] + bridge + text[outline.head :]
    return PageFile(text.encode(), kind, headers(outline.hashes))


def headers(hashes: tuple[str, ...] = ()) -> dict[str, str]:
    """`hashes`: of the inline scripts that may run."""
    policy = (
        "sandbox allow-scripts",
        "default-src 'none'",
        " ".join(("script-src 'self'", *hashes)),
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'self'",
    )
    return {
        **SECURITY_HEADERS,
        "Access-Control-Allow-Origin": "*",
        _POLICY: "; ".join(policy),
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
        "X-DNS-Prefetch-Control": "off",
    }


def sandboxed(answer: func.HttpResponse) -> func.HttpResponse:
    """The answer, for an address at which pages are served. A refusal is framed by nobody and may run nothing;
    by this it has an opaque origin too, as the page that it stands in the place of.
    """
    policy = answer.headers[_POLICY]
    if not policy.startswith("sandbox"):
        answer.headers[_POLICY] = f"sandbox; {policy}"
    return answer


def _found(folder: Path, name: str) -> Path | None:
    parts = name.split("/")
    if len(name) > 500 or not all(_PART.fullmatch(part) for part in parts):
        return None
    path = folder.joinpath(*parts)
    if path.suffix.lower() not in TYPES:
        return None
    try:
        inside = path.resolve(strict=True).is_relative_to(folder.resolve(strict=True))
        return path if inside and path.is_file() else None
    except OSError:
        return None


@cache
def _bridge() -> bytes:
    return _BRIDGE_FILE.read_bytes()


class _Outline(HTMLParser):
    """Where a page's head begins, and what its inline scripts are."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._lines = [0]
        for line in text.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        #: The offset that the bridge is put at: before any script of the page's own.
        self.head = 0
        self._found_head = False
        self._script: list[str] | None = None
        self._scripts: list[str] = []
        self.feed(text)
        self.close()

    @property
    def hashes(self) -> tuple[str, ...]:
        """As the policy names them."""
        digests = (hashlib.sha256(script.encode()).digest() for script in self._scripts)
        return tuple(dict.fromkeys(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests))

    def handle_decl(self, decl: str) -> None:
        if self.head == 0 and decl[:7].lower() == "doctype":
            self.head = self._offset() + len(decl) + 3

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self._found_head = True  # too late for a head that comes behind it
            self._script = None if any(name == "src" for name, _ in attrs) else []
        elif tag in ("html", "head") and not self._found_head:
            self.head = self._offset() + len(self.get_starttag_text() or "")
            self._found_head = tag == "head"
        else:
            self._found_head = True

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._script.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._script is not None:
            self._scripts.append("".join(self._script))
            self._script = None

    def _offset(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column
