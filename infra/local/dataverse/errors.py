"""The errors the Web API answers with. Sources of codes and texts: README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

BAD_QUERY = "0x80060888"
BAD_PAYLOAD = "0x80048d19"
DUPLICATE = "0x80040237"
MISSING = "0x80040217"
TOO_LONG = "0x80044331"
_HELP = "For more information on this error please follow this help link https://go.microsoft.com/fwlink/?linkid=2195293"


class ApiError(Exception):
    """An answer other than 2xx: HTTP status, Dataverse's hexadecimal code, and a message."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def body(self, *, annotated: bool = False) -> dict[str, Any]:
        """The JSON of the answer; `annotated` when the request asked for every annotation."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if annotated:
            error["@Microsoft.PowerApps.CDS.ErrorDetails.HttpStatusCode"] = str(self.status)
            error["@Microsoft.PowerApps.CDS.HelpLink"] = (
                f"http://go.microsoft.com/fwlink/?LinkID=398563&error=Microsoft.Crm.CrmException%3a{self.code}"
            )
            error["@Microsoft.PowerApps.CDS.InnerError.Message"] = self.message
        return {"error": error}


def unsupported(what: str) -> ApiError:
    """What the real API may do and this one does not. The code is none of Dataverse's."""
    return ApiError(501, "stand-in", f"The Dataverse stand-in does not support {what}.")


def bad_query(message: str = "Bad Request - Error in query syntax.") -> ApiError:
    """400: a URL that cannot be understood."""
    return ApiError(400, BAD_QUERY, message)


def unknown_property(name: str, table: str) -> ApiError:
    """400: $select, $filter, $orderby or a path names a property that the type lacks."""
    return bad_query(f"Could not find a property named '{name}' on type 'Microsoft.Dynamics.CRM.{table}'.")


def unknown_segment(name: str) -> ApiError:
    """404: no entity set, function or action of that name (names mind their case)."""
    return ApiError(404, "0x8006088a", f"Resource not found for the segment '{name}'.")


def no_resource(url: str) -> ApiError:
    """404: the resource is there, for another method."""
    return ApiError(404, "", f"No HTTP resource was found that matches the request URI '{url}'.")


def not_allowed(method: str, what: str) -> ApiError:
    """405: the method fits no operation of the resource."""
    return ApiError(405, BAD_QUERY, f"The HTTP method '{method}' is not supported on {what}.")


def missing_record(table: str, key: str) -> ApiError:
    """404: no record of that id or alternate key."""
    return ApiError(404, MISSING, f"Entity '{table}' With Id = {key} Does Not Exist")


def bad_payload(subject: str, inner: str) -> ApiError:
    """400: the body does not fit the type."""
    message = (
        f"Error identified in Payload provided by the user for Entity :'{subject}', {_HELP}"
        f"  ---->  InnerException : {inner}"
    )
    return ApiError(400, BAD_PAYLOAD, message)


def invalid_property(name: str, table: str, set_name: str) -> ApiError:
    """400: the body has a property that the type lacks."""
    inner = (
        f"Microsoft.Crm.CrmException: Invalid property '{name}' was found in entity "
        f"'Microsoft.Dynamics.CRM.{table}'. ---> Microsoft.OData.ODataException: The property '{name}' "
        f"does not exist on type 'Microsoft.Dynamics.CRM.{table}'. Make sure to only use property names that "
        "are defined by the type."
    )
    return bad_payload(set_name, inner)


def undeclared_property(name: str, set_name: str) -> ApiError:
    """400: an `@odata.bind` for something that is no navigation property."""
    inner = (
        f"Microsoft.OData.ODataException: An undeclared property '{name}' which only has property annotations "
        "in the payload but no property value was found in the payload. In OData, only declared navigation "
        "properties and declared named streams can be represented as properties without values."
    )
    return bad_payload(set_name, inner)


def duplicate(message: str = "Cannot insert duplicate key.", code: str = DUPLICATE) -> ApiError:
    """412: the record exists already."""
    return ApiError(412, code, message)


def version_mismatch() -> ApiError:
    """412: If-Match names another version."""
    message = "The version of the existing record doesn't match the RowVersion property provided."
    return ApiError(412, "0x80060882", message)
