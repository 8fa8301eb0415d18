"""HTTP answers that all of the app's HTTP functions share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import azure.functions as func

from shared import auth
from shared.errors import AuthenticationError
from shared.settings import Settings
from shared.tool.json_form import dumps

SECURITY_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}


def json_answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> func.HttpResponse:
    return func.HttpResponse(
        dumps(body).encode(),
        status_code=status,
        mimetype="application/json",
        headers={**SECURITY_HEADERS, **(headers or {})},
    )


def error(status: int, text: str, headers: Mapping[str, str] | None = None) -> func.HttpResponse:
    return json_answer(status, {"error": text}, headers)


def refusal(request: func.HttpRequest, settings: Settings) -> func.HttpResponse | str:
    """The owner whose token the request carries, or the answer that refuses it.

    Comes before anything else is looked at: a 401 must not tell whether a job exists or an id is well formed.
    """
    state, owner = auth.check_http(request.headers, settings)
    if state is auth.TokenState.ACCEPTED:
        return owner
    if state is auth.TokenState.UNCONFIGURED:
        return error(503, auth.UNCONFIGURED_MESSAGE)
    return error(401, AuthenticationError.default)


def method_refusal(request: func.HttpRequest, *allowed: str) -> func.HttpResponse | None:
    """405 for other verbs. Routes declare no methods, since the host would answer 404 without `Allow`."""
    if request.method in allowed:
        return None
    allow = ", ".join(allowed)
    return error(405, f"Method not allowed; this resource takes {allow}", {"Allow": allow})


def not_modified(headers: Mapping[str, str]) -> func.HttpResponse:
    return func.HttpResponse(b"", status_code=304, headers={**SECURITY_HEADERS, **headers})


def tags_of(request: func.HttpRequest) -> list[str]:
    """The tags of If-None-Match, without quotes; a weak one counts like a strong one (RFC 9110, 13.1.2)."""
    given = request.headers.get("If-None-Match", "")
    return [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",") if tag.strip()]
