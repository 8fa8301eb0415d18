"""Parameters of a function in its address: `Name(A=@p0,B=@p1)?@p0=…&@p1=…`.

| value | literal |
|---|---|
| text | in quotes, inner quotes doubled |
| text of the form `Microsoft.Dynamics.CRM.Type'Value'` | an enum's value, as it is |
| `{"entityLogicalName": "account", "id": "…"}` | `{"@odata.id":"accounts(…)"}` |
| number, True, False, None | `5`, `true`, `false`, `null` |
| `datetime`, `date`, `uuid.UUID` | bare: `2026-11-30T08:00:00Z`, a GUID |
| other dictionaries and lists | JSON |

All are encoded. A GUID given as text is a text, in quotes: give a `uuid.UUID` for a parameter of type Edm.Guid.
"""

from __future__ import annotations

import datetime
import enum
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from shared.apis.dataverse.call import Call
from shared.apis.dataverse.names import schema_name
from shared.apis.http import encode
from shared.apis.values import jsonable, moment
from shared.errors import ToolError

_ENUM: Final = re.compile(r"Microsoft\.Dynamics\.CRM\.\w+'[^']*'")
#: A reference that the caller has written out already.
_REFERENCE: Final = re.compile(r"""\{\s*["']@odata\.id["']\s*:""")


async def invocation(call: Call, name: str, parameters: Mapping[str, Any]) -> str:
    """The function's last path segment, with the query that carries its parameters."""
    names = [schema_name(parameter, "a parameter's name") for parameter in parameters]
    aliases = ",".join(f"{parameter}=@p{number}" for number, parameter in enumerate(names))
    literals = [quote(await literal(call, value), safe="") for value in parameters.values()]
    query = "&".join(f"@p{number}={text}" for number, text in enumerate(literals))
    return f"{name}({aliases})" + (f"?{query}" if query else "")


async def literal(call: Call, value: Any) -> str:
    """One parameter's value, not encoded yet. Raises `ToolError` for what has no literal."""
    if isinstance(value, Mapping | list | tuple):
        return encode(await _references(call, value), jsonable).decode()
    return _simple(value)


def _simple(value: Any) -> str:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return encode(value).decode()
    if isinstance(value, str):
        if _ENUM.fullmatch(value) or _REFERENCE.match(value):
            return value
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        return moment(value)
    if isinstance(value, datetime.date | uuid.UUID):
        return str(value)
    try:
        return str(jsonable(value))
    except TypeError as error:
        raise ToolError(f"A function's parameter cannot be sent: {error}") from None


async def _references(call: Call, value: Any) -> Any:
    """The value with every `{entityLogicalName, id}` in the form of the Web API."""
    if isinstance(value, Mapping):
        if set(value) == {"entityLogicalName", "id"}:
            return {"@odata.id": await call.row(value["entityLogicalName"], value["id"])}
        return {key: await _references(call, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [await _references(call, item) for item in value]
    return value
