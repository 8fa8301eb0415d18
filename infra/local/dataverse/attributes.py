"""What clients send to create or replace an attribute, read into a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.call import parse_path
from infra.local.dataverse.definitions import CRM, attribute_type
from infra.local.dataverse.errors import ApiError, bad_payload
from infra.local.dataverse.labels import complete, text_of
from infra.local.dataverse.schema import TEXT, Column, Kind
from infra.local.dataverse.values import as_guid

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context

LABELS: Final = frozenset({"DisplayName", "DisplayCollectionName", "Description"})
_KINDS: Final = {attribute_type(kind): kind for kind in Kind if kind not in {Kind.CUSTOMER, Kind.OWNER}}
_FIRST_VALUE: Final = 100_000_000
_DEFAULT_LENGTH: Final = 100


def kept(body: dict[str, Any], without: set[str] | None = None) -> dict[str, Any]:
    """What of a body is answered back as it came: no annotations, no `without`; labels completed."""
    result = {name: value for name, value in body.items() if "@" not in name and name not in (without or set())}
    for name in LABELS & result.keys():
        if isinstance(result[name], dict):
            result[name] = complete(result[name])
    return result


def require(body: dict[str, Any], name: str, subject: str) -> str:
    """A text that a body must have. Raises ApiError (400)."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise bad_payload(subject, f"The property '{name}' is missing.")
    return value


def schema_name(body: dict[str, Any], subject: str) -> str:
    """The SchemaName of a custom component, which needs a publisher's prefix. Raises ApiError (400)."""
    name = require(body, "SchemaName", subject)
    prefix, _, rest = name.partition("_")
    if not prefix or not rest or not name.replace("_", "a").isalnum():
        message = f"The schema name {name} of {subject} must begin with a publisher's prefix and an underscore."
        raise ApiError(400, "0x80044349", message)
    return name


def read_column(context: Context, body: dict[str, Any], known: Column | None = None) -> Column:
    """The column of an attribute's JSON; `known` is what it replaces. Raises ApiError (400)."""
    type_name = str(body.get("@odata.type", "")).removeprefix("#").removeprefix(CRM)
    kind = _KINDS.get(type_name) if type_name or known is None else known.kind
    if known is not None and kind is Kind.LOOKUP:
        kind = known.kind  # customers and owners are lookups too
    if kind is None:
        raise bad_payload("Attributes", f"'{type_name}' is no type of attribute that can be created here.")
    name = known.schema_name if known is not None else schema_name(body, type_name)
    column = Column(
        name.lower(), kind, name, text_of(body.get("DisplayName"), name), custom=True,
        definition=kept(body, {"OptionSet", "GlobalOptionSet"}),
    )  # fmt: skip
    if kind in TEXT:
        length = body.get("MaxLength")
        column.max_length = length if isinstance(length, int) else _DEFAULT_LENGTH
    column.date_only = body.get("Format") == "DateOnly"
    options = body.get("OptionSet")
    if kind is Kind.BOOLEAN and isinstance(options, dict):
        column.options = {0: text_of((options.get("FalseOption") or {}).get("Label"), "No"),
                          1: text_of((options.get("TrueOption") or {}).get("Label"), "Yes")}  # fmt: skip
    elif kind is Kind.PICKLIST:
        _choose(context, column, body)
    return column


def _choose(context: Context, column: Column, body: dict[str, Any]) -> None:
    bound = body.get("GlobalOptionSet@odata.bind")
    given = body.get("OptionSet")
    if isinstance(bound, str):
        key = parse_path(bound)[-1].key or ""
        wanted = as_guid(key) or key.removeprefix("Name=").strip("'")
        for shared in context.catalogue.option_sets.values():
            if wanted in {shared.id, shared.name}:
                column.option_set = shared.name
                return
        raise bad_payload("Attributes", f"There is no global option set {bound}.")
    if isinstance(given, dict) and given.get("IsGlobal") and given.get("Name") in context.catalogue.option_sets:
        column.option_set = given["Name"]
    elif isinstance(given, dict):
        column.options = {
            int(one.get("Value") or _FIRST_VALUE + place): text_of(one.get("Label"))
            for place, one in enumerate(given.get("Options") or [])
        }
