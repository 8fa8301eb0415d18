"""The two spellings of one name."""

from __future__ import annotations

import pytest

from shared.apis.naming import near, to_camel, to_snake

NAMES = {
    "fetchXmlQuery": "fetch_xml_query",
    "getCSDLDocument": "get_csdl_document",
    "getAttributeODataType": "get_attribute_odata_type",
    "createPolymorphicLookupAttribute": "create_polymorphic_lookup_attribute",
    "create": "create",
    "connectionTarget": "connection_target",
    "odataQuery": "odata_query",
}


@pytest.mark.parametrize(("camel", "snake"), NAMES.items())
def test_there_and_back(camel: str, snake: str) -> None:
    assert to_snake(camel) == to_snake(snake) == snake
    assert to_camel(snake) == camel


def test_categories() -> None:
    assert [to_snake(name) for name in ("CopilotStudio", "PowerApps", "Get")] == [
        "copilot_studio",
        "power_apps",
        "get",
    ]


def test_near_names() -> None:
    assert near("acount", ["account", "lead"]) == "; did you mean 'account'?"
    assert near("zzz", ["account"]) == ""
