"""The control API at `/_stand-in/`: faults, the request log and token expiry, for tests in another process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response

from infra.local.dataverse.faults import Fault

if TYPE_CHECKING:
    from starlette.requests import Request

    from infra.local.dataverse.app import State

PREFIX: Final = "/_stand-in/"


def handle_control(state: State, request: Request, body: bytes) -> Response:
    """Answer a control request. A body must be JSON: a web page cannot send that here unasked."""
    name = request.url.path.removeprefix(PREFIX)
    if (
        request.method == "POST"
        and request.headers.get("content-type", "").partition(";")[0] != "application/json"
    ):
        return _refuse(415, "The body must be application/json.")
    match request.method, name:
        case "GET", "faults":
            return JSONResponse(state.faults.report())
        case "POST", "faults":
            return _arm(state, body)
        case "DELETE", "faults":
            state.faults.clear()
        case "GET", "requests":
            return JSONResponse(state.log.as_json())
        case "DELETE", "requests":
            state.log.clear()
        case "POST", "tokens/expire":
            state.authority.expire_tokens()
        case _:
            return _refuse(404, f"There is no {request.method} {name}.")
    return Response(status_code=204)


def _arm(state: State, body: bytes) -> Response:
    try:
        given: Any = json.loads(body)
        faults = [Fault.from_json(one) for one in (given if isinstance(given, list) else [given])]
    except (ValueError, TypeError, KeyError) as error:
        return _refuse(400, f"That is no fault: {error}")
    for fault in faults:
        state.faults.arm(fault)
    return JSONResponse({"armed": len(faults)}, 201)


def _refuse(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)
