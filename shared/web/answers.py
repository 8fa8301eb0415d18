"""HTTP answers that all of the app's HTTP functions share."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import azure.functions as func

from shared import auth
from shared.errors import AuthenticationError, InputError, JobNotFoundError, SettingsError
from shared.settings import Settings
from shared.tool.json_form import dumps

_LOG = logging.getLogger(__name__)

_NOTHING: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#: On every answer. Data is never kept, guessed at, framed, or run; and no other site may embed it. Pages and
#: their files put a policy of their own in the place of this one (see `shared.web.page`).
SECURITY_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _NOTHING,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_OWN_SITE: Final = ("none", "same-origin")


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


def foreign_refusal(request: func.HttpRequest) -> func.HttpResponse | None:
    """403 for what another site's page makes a browser do. A token must be sent by a script of ours; a sign-in
    that the platform keeps in a cookie (TOOLBOX_TRUST_EASYAUTH) goes along by itself.
    """
    # Sent by every current browser, and by nothing else; no script can set it.
    if request.method in ("GET", "HEAD") or request.headers.get("Sec-Fetch-Site", "none") in _OWN_SITE:
        return None
    return error(403, "Only the app's own page may ask for this in a browser")


async def for_owner(
    request: func.HttpRequest,
    settings: Settings,
    answer: Callable[[str], Awaitable[func.HttpResponse]],
    *methods: str,
) -> func.HttpResponse:
    """The answer for the token's owner, or what says why there is none: 401, 405, 403, 400, 404, 503."""
    owner = refusal(request, settings)
    if isinstance(owner, func.HttpResponse):
        return owner
    refused = method_refusal(request, *methods) or foreign_refusal(request)
    if refused is not None:
        return refused
    try:
        return await answer(owner)
    except JobNotFoundError as fault:
        return error(404, fault.message)
    except InputError as fault:
        return error(400, fault.message)
    except SettingsError as fault:
        return error(503, fault.message)
    except Exception:
        _LOG.exception("%s %s: could not be answered", request.method, dict(request.route_params))
        return error(503, "The job store cannot be reached; try again.", {"Retry-After": "5"})


def not_modified(headers: Mapping[str, str]) -> func.HttpResponse:
    return func.HttpResponse(b"", status_code=304, headers={**SECURITY_HEADERS, **headers})


def tags_of(request: func.HttpRequest) -> list[str]:
    """The tags of If-None-Match, without quotes; a weak one counts like a strong one (RFC 9110, 13.1.2)."""
    given = request.headers.get("If-None-Match", "")
    return [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",") if tag.strip()]


def is_known(request: func.HttpRequest, tag: str) -> bool:
    """Whether the client has what the tag names already; `*` is whatever there is."""
    known = tags_of(request)
    return tag in known or "*" in known
