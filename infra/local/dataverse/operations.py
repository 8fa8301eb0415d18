"""Functions and actions, bound and unbound. `sample_*` are the stand-in's own, to see how parameters arrive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.bulk import BULK
from infra.local.dataverse.call import Answer, split_outside
from infra.local.dataverse.choices import CHOICE_ACTIONS
from infra.local.dataverse.context import operation_name
from infra.local.dataverse.environment import VERSION
from infra.local.dataverse.errors import ApiError, bad_payload, bad_query, no_resource, unknown_segment
from infra.local.dataverse.literals import tokenize
from infra.local.dataverse.lookups import create_polymorphic_lookup
from infra.local.dataverse.solutions import import_solution, import_solution_async

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.local.dataverse.call import Segment
    from infra.local.dataverse.context import Context
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Table

_NAMESPACE: Final = "Microsoft.Dynamics.CRM."


def is_operation(segment: Segment) -> bool:
    """Whether a step of a path is a bound operation."""
    return segment.name.startswith(_NAMESPACE)


def unbound_operation(context: Context, segment: Segment) -> Answer:
    """Answer a path that begins with a function's or action's name. Raises ApiError."""
    name = operation_name(segment)
    if name in _FUNCTIONS:
        if context.call.method != "GET":
            raise no_resource(context.call.url)
        parameters = read_parameters(segment.key or "", context.call.query)
        return _result(context, f"{name}Response", _FUNCTIONS[name](context, parameters))
    if name in _ACTIONS:
        if context.call.method != "POST":
            raise no_resource(context.call.url)
        body = context.call.json() if context.call.body else {}
        return _result(context, f"{name}Response", _ACTIONS[name](context, body))
    raise unknown_segment(segment.name)


def bound_operation(context: Context, table: Table, row: Row | None, segment: Segment) -> Answer:
    """Answer an operation on a record, or on a table's records when `row` is None. Raises ApiError."""
    name = operation_name(segment)
    if row is None and name in BULK:
        if context.call.method != "POST":
            raise no_resource(context.call.url)
        return _result(context, f"{name}Response", BULK[name](context, table, context.call.json()))
    subject: dict[str, Any] = {"EntityLogicalName": table.name, "Id": None if row is None else row.id}
    if name == "sample_Describe" and context.call.method == "GET":
        parameters = read_parameters(segment.key or "", context.call.query)
        return _result(context, "sample_DescribeResponse", {**subject, "Parameters": parameters})
    if name == "sample_EchoAction" and context.call.method == "POST":
        body = context.call.json() if context.call.body else {}
        return _result(context, "sample_EchoActionResponse", {**subject, "Parameters": body})
    if name in {"sample_Describe", "sample_EchoAction"}:
        raise no_resource(context.call.url)
    raise unknown_segment(segment.name)


def read_parameters(text: str, query: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of a function, inline or by alias, as JSON values. Raises ApiError (400)."""
    parameters: dict[str, Any] = {}
    for part in split_outside(text, ","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        value = value.strip()
        if not equals:
            raise bad_query()
        if value.startswith("@"):
            if value not in query:
                raise bad_query(f"The parameter alias '{value}' has no value.")
            value = query[value].strip()
        parameters[name.strip()] = _argument(value)
    return parameters


def _argument(text: str) -> Any:
    if text.startswith(("{", "[")):
        try:
            return json.loads(text)
        except ValueError:
            raise bad_query(f"'{text}' is not a valid JSON value.") from None
    tokens = tokenize(text)
    if len(tokens) != 2 or tokens[0].literal is None:
        raise bad_query(f"'{text}' is not a valid parameter value.")
    return tokens[0].literal.value


def _result(context: Context, kind: str, value: dict[str, Any] | None) -> Answer:
    if value is None:
        return Answer(204)
    return Answer(200, {"@odata.context": f"{context.call.root}$metadata#{_NAMESPACE}{kind}", **value})


def _who_am_i(context: Context, _: dict[str, Any]) -> dict[str, Any]:
    environment = context.environment
    return {"BusinessUnitId": environment.business_unit_id, "UserId": context.user_id,
            "OrganizationId": environment.organization_id}  # fmt: skip


def _version(_: Context, __: dict[str, Any]) -> dict[str, Any]:
    return {"Version": VERSION}


def _organization(context: Context, parameters: dict[str, Any]) -> dict[str, Any]:
    if "AccessType" not in parameters:
        raise bad_query("The parameter 'AccessType' of RetrieveCurrentOrganization is missing.")
    environment, base = context.environment, context.call.root.partition("/api/")[0]
    detail = {
        "OrganizationId": environment.organization_id, "FriendlyName": environment.name,
        "OrganizationVersion": VERSION, "EnvironmentId": environment.organization_id,
        "UrlName": environment.name, "UniqueName": environment.name, "State": "Enabled", "Geo": "EMEA",
        "Endpoints": {"Count": 1, "IsReadOnly": False, "Keys": ["WebApplication"], "Values": [f"{base}/"]},
    }  # fmt: skip
    return {"Detail": detail}


def _totals(context: Context, parameters: dict[str, Any]) -> dict[str, Any]:
    names = parameters.get("EntityNames")
    if not isinstance(names, list):
        raise bad_query("The parameter 'EntityNames' of RetrieveTotalRecordCount is missing.")
    counts = [len(context.store.table(context.catalogue.table(name).name)) for name in names]
    keys = {"Count": len(names), "IsReadOnly": False, "Keys": names, "Values": counts}
    return {"EntityRecordCountCollection": keys}


def _echo(_: Context, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"Parameters": parameters}


def _fail(_: Context, body: dict[str, Any]) -> dict[str, Any]:
    raise ApiError(400, "0x80040265", str(body.get("Message", "A plug-in refused this.")))


def _publish(context: Context, body: dict[str, Any]) -> None:
    text = body.get("ParameterXml")
    if not isinstance(text, str):
        raise bad_payload("PublishXml", "The parameter 'ParameterXml' is missing.")
    context.environment.published.append(text)


def _publish_all(context: Context, _: dict[str, Any]) -> None:
    context.environment.published.append("*")


type _Function = Callable[[Context, dict[str, Any]], dict[str, Any] | None]

_FUNCTIONS: Final[dict[str, _Function]] = {
    "WhoAmI": _who_am_i, "RetrieveVersion": _version, "RetrieveCurrentOrganization": _organization,
    "RetrieveTotalRecordCount": _totals, "sample_Echo": _echo,
}  # fmt: skip
_ACTIONS: Final[dict[str, _Function]] = {
    "PublishXml": _publish, "PublishAllXml": _publish_all, "ImportSolution": import_solution,
    "ImportSolutionAsync": import_solution_async, "sample_EchoAction": _echo, "sample_Fail": _fail,
    "CreatePolymorphicLookupAttribute": create_polymorphic_lookup, **CHOICE_ACTIONS,
}  # fmt: skip

#: For $metadata: name -> whether it is a function.
OPERATIONS: Final = dict.fromkeys(_FUNCTIONS, True) | dict.fromkeys((*_ACTIONS, *BULK), False)
