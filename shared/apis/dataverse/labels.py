"""Parts of definitions that are made without asking anyone."""

from __future__ import annotations

from enum import StrEnum

from shared.apis.record import Record, wrap
from shared.errors import ToolError


class AttributeMetadataType(StrEnum):
    """The kinds of columns that `get_attribute_odata_type` knows."""

    String = "String"
    Memo = "Memo"
    Integer = "Integer"
    BigInt = "BigInt"
    Decimal = "Decimal"
    Double = "Double"
    Money = "Money"
    Boolean = "Boolean"
    DateTime = "DateTime"
    Lookup = "Lookup"
    Picklist = "Picklist"
    MultiSelectPicklist = "MultiSelectPicklist"
    State = "State"
    Status = "Status"
    Owner = "Owner"
    Customer = "Customer"
    File = "File"
    Image = "Image"
    UniqueIdentifier = "UniqueIdentifier"


def build_label(text: str, language_code: int = 1033) -> Record:
    """A label in one language, for `DisplayName`, `Description` and the like. 1033 is English."""
    if isinstance(language_code, bool) or not isinstance(language_code, int) or language_code <= 0:
        raise ToolError(f"buildLabel: languageCode must be an LCID such as 1033, not {language_code!r}")
    label = {
        "@odata.type": "Microsoft.Dynamics.CRM.LocalizedLabel",
        "Label": str(text),
        "LanguageCode": language_code,
    }
    found: Record = wrap({"@odata.type": "Microsoft.Dynamics.CRM.Label", "LocalizedLabels": [label]})
    return found


def get_attribute_odata_type(attribute_type: str) -> str:
    """`String` -> `Microsoft.Dynamics.CRM.StringAttributeMetadata`."""
    try:
        known = AttributeMetadataType(attribute_type)
    except ValueError:
        legal = ", ".join(AttributeMetadataType)
        raise ToolError(f"getAttributeODataType: {attribute_type!r} is none of {legal}") from None
    return f"Microsoft.Dynamics.CRM.{known}AttributeMetadata"
