"""Several requests in one: independent ones, or writes that happen all or not at all.

A request is `{method, url, headers?, body?, contentId?}` with a `url` relative to the Web API; a result is
`{contentId?, status, statusText, headers, body?}`, in the requests' order. Requests are never split over
several batches: that would change what happens together.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.apis.dataverse import multipart
from shared.apis.dataverse.call import API_PATH, ODATA, SERVICE, Call
from shared.apis.dataverse.names import shown
from shared.apis.headers import checked, merged
from shared.apis.http import Answer, encode
from shared.apis.record import Record, load
from shared.apis.urls import relative_url
from shared.apis.values import jsonable
from shared.errors import DataverseError, ServiceError, ToolError

#: The service's own limit.
MAX_REQUESTS: Final = 1000
#: Bytes of the whole message.
MAX_BYTES: Final = 16 * 1024 * 1024
_METHODS: Final = ("GET", "POST", "PATCH", "PUT", "DELETE")
_KEYS: Final = ("method", "url", "headers", "body", "contentId")
_CONTENT_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
CONTINUE: Final = "odata.continue-on-error"


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    content_id: str | None

    def part(self, content_id: str | None) -> bytes:
        return multipart.request_part(self.method, self.url, self.headers, self.body, content_id)


async def execute_batch(call: Call, requests: Iterable[Mapping[str, Any]]) -> list[Record]:
    """Runs independent requests in order; one that fails does not stop the others: look at each `status`."""
    operations = _operations("executeBatch", requests)
    parts = await _exchange(call, [operation.part(operation.content_id) for operation in operations], CONTINUE)
    if len(parts) != len(operations):
        raise DataverseError(f"Dataverse answered {len(parts)} of {len(operations)} requests of the batch")
    return [_result(part, operation.content_id) for part, operation in zip(parts, operations, strict=True)]


async def execute_transaction(call: Call, requests: Iterable[Mapping[str, Any]]) -> list[Record]:
    """Runs writes in one change set. When one of them fails, nothing is written and its error is raised.

    A later request may name what an earlier one makes: `$<contentId>` in its url or in its body.
    """
    operations = _operations("executeTransaction", requests)
    for number, operation in enumerate(operations):
        if operation.method == "GET":
            raise ToolError(f"executeTransaction: requests[{number}] reads; a transaction only writes")
    taken = {operation.content_id for operation in operations}
    free = (str(number) for number in range(1, 2 * len(operations) + 1) if str(number) not in taken)
    ids = [operation.content_id or next(free) for operation in operations]
    set_name = f"changeset_{uuid.uuid4()}"
    writes = [operation.part(name) for operation, name in zip(operations, ids, strict=True)]
    parts = await _exchange(call, [multipart.nested(set_name, writes)], None)
    failed = next((part for part in parts if part.status >= 400), None)
    if failed is not None:
        raise _rolled_back(failed)
    if len(parts) != len(operations):
        raise DataverseError(
            f"Dataverse answered {len(parts)} of {len(operations)} requests of the transaction"
        )
    by_id = {part.content_id: part for part in parts}
    ordered = [by_id[name] for name in ids] if set(by_id) == set(ids) else parts
    return [_result(part, operation.content_id) for part, operation in zip(ordered, operations, strict=True)]


async def read(call: Call, path: str, headers: Mapping[str, str]) -> Record:
    """One GET whose address is too long to be sent by itself."""
    inner = merged({**ODATA, **headers}, call.additional)
    part = multipart.request_part("GET", API_PATH + path, inner, None, None)
    parts = await _exchange(call, [part], None)
    if len(parts) != 1:
        raise DataverseError("Dataverse answered a query in a batch with something else than one answer")
    answer = Answer(parts[0].status, parts[0].headers, parts[0].content)
    if not answer.ok:
        raise _refusal(answer)
    found: Record = answer.json()
    return found


async def _exchange(call: Call, parts: list[bytes], preference: str | None) -> list[multipart.Part]:
    boundary = f"batch_{uuid.uuid4()}"
    content = multipart.join(boundary, parts)
    if len(content) > MAX_BYTES:
        raise ToolError(f"The batch is larger than {MAX_BYTES} bytes: send fewer requests at once")
    headers = {"content-type": f"multipart/mixed; boundary={boundary}"}
    if preference:
        headers["prefer"] = preference
    if "content-type" in call.additional:
        raise ToolError("A batch's Content-Type cannot be set by a tool")
    answer = await call.send("POST", "$batch", headers=headers, content=content, accept=_is_batch)
    try:
        return multipart.answers(answer.headers.get("content-type", ""), answer.content)
    except multipart.MultipartError as error:
        raise DataverseError(
            f"Dataverse's answer to the batch cannot be read: {error}", status=answer.status
        ) from None


def _is_batch(answer: Answer) -> bool:
    """A batch with a failure in it may be answered by an error status; its parts say more."""
    return multipart.is_multipart(answer.headers.get("content-type", ""))


def _operations(what: str, requests: object) -> list[_Operation]:
    if isinstance(requests, str | bytes | Mapping) or not isinstance(requests, Iterable):
        raise ToolError(f"{what}: requests must be a list of objects, not {shown(requests)}")
    found = [_operation(f"{what}: requests[{number}]", request) for number, request in enumerate(requests)]
    if not 1 <= len(found) <= MAX_REQUESTS:
        raise ToolError(f"{what}: 1 to {MAX_REQUESTS} requests are allowed, not {len(found)}")
    names = [operation.content_id for operation in found if operation.content_id is not None]
    if len(set(names)) < len(names):
        raise ToolError(f"{what}: a contentId is used twice")
    return found


def _operation(what: str, request: object) -> _Operation:
    if not isinstance(request, Mapping):
        raise ToolError(f"{what} must be an object, not {shown(request)}")
    unknown = [name for name in request if name not in _KEYS]
    if unknown:
        raise ToolError(f"{what}: unknown key {shown(unknown[0])}; known are {', '.join(_KEYS)}")
    method = str(request.get("method", "")).upper()
    if method not in _METHODS:
        raise ToolError(
            f"{what}.method must be one of {', '.join(_METHODS)}, not {shown(request.get('method'))}"
        )
    url = relative_url(request.get("url"), f"{what}.url")
    if url.partition("?")[0].lower().rstrip("/") == "$batch":
        raise ToolError(f"{what}.url: a batch cannot hold another one")
    content_id = request.get("contentId")
    if content_id is not None:
        content_id = str(content_id)
        if not _CONTENT_ID.fullmatch(content_id):
            raise ToolError(
                f"{what}.contentId must be letters, digits, '.', '_' or '-', not {shown(content_id)}"
            )
    body = request.get("body")
    defaults = {"accept": "application/json"}
    if body is not None:
        if method == "GET":
            raise ToolError(f"{what}: a GET has no body")
        defaults["content-type"] = "application/json"
    headers = merged(defaults, checked(request.get("headers"), what))
    content = None if body is None else body.encode() if isinstance(body, str) else encode(body, jsonable)
    address = url if url.startswith("$") and url != "$metadata" else API_PATH + url
    return _Operation(method, address, headers, content, content_id)


def _result(part: multipart.Part, content_id: str | None) -> Record:
    result = Record()
    if content_id is not None:
        result["contentId"] = content_id
    result.update(status=part.status, statusText=part.reason, headers=Record(part.headers))
    if part.content.strip():
        try:
            result["body"] = load(part.content)
        except ValueError:
            result["body"] = part.content.decode("utf-8", "replace")
    return result


def _refusal(answer: Answer) -> ServiceError:
    from shared.apis.retry import refusal

    return refusal(SERVICE, answer)


def _rolled_back(part: multipart.Part) -> ServiceError:
    error = _refusal(Answer(part.status, part.headers, part.content))
    which = f" (in the request with contentId '{part.content_id}')" if part.content_id else ""
    error.args = (f"The transaction failed{which}, and nothing was written: {error.message}",)
    return error
