"""The Web API of one environment: from a call to its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse.batch import run_batch
from infra.local.dataverse.call import Answer
from infra.local.dataverse.context import Context
from infra.local.dataverse.csdl import csdl
from infra.local.dataverse.errors import ApiError, not_allowed
from infra.local.dataverse.metadata import SETS, handle_metadata
from infra.local.dataverse.operations import unbound_operation
from infra.local.dataverse.records import handle_records
from infra.local.dataverse.schema import Ref

if TYPE_CHECKING:
    from infra.local.dataverse.call import Call
    from infra.local.dataverse.environment import Environment


def handle(environment: Environment, call: Call, user_id: str) -> Answer:
    """Answer a call as a user of the environment. Errors are answers too."""
    with environment.lock:
        environment.store.user = Ref("systemuser", user_id)
        return _answer(environment, call, user_id)


def failure(error: ApiError, call: Call) -> Answer:
    """The answer of an error."""
    annotated = call.prefer.get("odata.include-annotations") == "*"
    return Answer(error.status, error.body(annotated=annotated), dict(error.headers))


def _answer(environment: Environment, call: Call, user_id: str) -> Answer:
    context = Context(environment, call, user_id)
    try:
        if call.path == "$batch":
            if call.method != "POST":
                raise not_allowed(call.method, "$batch")
            return run_batch(call, environment.store, lambda inner: _answer(environment, inner, user_id))
        return _dispatch(context)
    except ApiError as error:
        return failure(error, call)


def _dispatch(context: Context) -> Answer:
    call = context.call
    if call.path in {"", "$metadata"}:
        if call.method != "GET":
            raise not_allowed(call.method, call.path or "the service document")
        if call.path:
            return Answer(200, csdl(context.catalogue), media="application/xml")
        return Answer(200, _service_document(context))
    first = call.segments[0]
    if first.name in SETS:
        return handle_metadata(context)
    table = context.catalogue.by_set(first.name)
    if table is not None:
        return handle_records(context, table)
    return unbound_operation(context, first)


def _service_document(context: Context) -> dict[str, Any]:
    sets = [{"name": table.set_name, "kind": "EntitySet", "url": table.set_name}
            for table in context.catalogue.tables.values()]  # fmt: skip
    return {"@odata.context": f"{context.call.root}$metadata", "value": sets}
