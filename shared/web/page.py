"""The page: static files, which need no token and say nothing. What they show they ask for with one.

GET  /                  index.html
GET  /assets/{file}     its scripts, styles and pictures
GET  /favicon.ico       its icon
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import azure.functions as func

from shared.web import answers
from shared.web.static_files import StaticFiles

FOLDER: Final = Path(__file__).parent / "static"
INDEX: Final = "index.html"
ICON: Final = "favicon.svg"

#: No script but the page's own files; `frame-src` is for tools' windows, which have stricter policies.
PAGE_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "media-src blob: data:",
        "connect-src 'self'",
        "frame-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        # Text cannot become markup or script, whatever a later change of the page's code tries.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_FEATURES: Final = (
    "accelerometer", "autoplay", "camera", "display-capture", "fullscreen", "geolocation", "gyroscope",
    "magnetometer", "microphone", "midi", "payment", "publickey-credentials-get", "screen-wake-lock", "usb",
)  # fmt: skip
#: Kept by the browser, and asked about each time: the files' names do not change when they do.
FILE_HEADERS: Final = {**answers.SECURITY_HEADERS, "Cache-Control": "no-cache"}
PAGE_HEADERS: Final = {
    **FILE_HEADERS,
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _FEATURES),
}


class PageApi:
    """The HTTP functions that serve the page."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = StaticFiles(folder)

    async def index(self, request: func.HttpRequest) -> func.HttpResponse:
        return await self._file(request, INDEX)

    async def asset(self, request: func.HttpRequest) -> func.HttpResponse:
        return await self._file(request, request.route_params.get("file", ""))

    async def icon(self, request: func.HttpRequest) -> func.HttpResponse:
        return await self._file(request, ICON)

    async def _file(self, request: func.HttpRequest, name: str) -> func.HttpResponse:
        """200 with the file, 304, 404, or 405."""
        refused = answers.method_refusal(request, "GET", "HEAD")
        if refused is not None:
            return refused
        # Not on storage's threads: the page is there while storage is not.
        asset = await asyncio.to_thread(self._files.get, name)
        if asset is None:
            return answers.error(404, "File not found")
        page = asset.content_type.startswith("text/html")
        headers = {**(PAGE_HEADERS if page else FILE_HEADERS), "ETag": f'"{asset.tag}"'}
        if answers.is_known(request, asset.tag):
            return answers.not_modified(headers)
        headers["Content-Type"] = asset.content_type
        if request.method == "HEAD":
            headers["Content-Length"] = str(len(asset.body))
            return func.HttpResponse(b"", status_code=200, headers=headers)
        return func.HttpResponse(asset.body, status_code=200, headers=headers)
