"""`dataverseAPI`'s methods for choices, labels and types, on the wire to the stand-in."""

from __future__ import annotations

from typing import Any, Final

import pytest

from shared.apis import dataverseAPI
from tests.integration.dataverse.definitions_support import CRM, choice, label
from tests.integration.dataverse.methods_bench import Bench
from tests.integration.dataverse.methods_cases import Case, Cases, Place, Plan, Sent

CASES: Final = Cases()
SETS: Final = "GlobalOptionSetDefinitions"
MERGED: Final = {"mscrm.mergelabels": "true"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_the_wire(invocation: Bench, case: Case) -> None:
    invocation.check(dataverseAPI, case)


@CASES.of("createGlobalOptionSet")
def a_choice(place: Place) -> Plan:
    definition = choice("sample_made", "One", "Two")

    def made(found: Any) -> None:
        stored = place.environment.catalogue.option_sets["sample_made"]
        assert (found.id, stored.options) == (stored.id, {1: "One", 2: "Two"})
        assert ("samplecore", stored.id) in place.environment.components

    sent = Sent("POST", SETS, definition, {"mscrm.solutionuniquename": "samplecore"})
    return Plan((definition, {"solutionUniqueName": "samplecore"}), (sent,), made)


@CASES.of("updateGlobalOptionSet")
def the_whole_choice(place: Place) -> Plan:
    place.post(SETS, choice("sample_Changed", "One"))
    definition = {**choice("sample_Changed", "One"), "DisplayName": label("Now")}

    def changed(found: Any) -> None:
        assert found is None
        assert place.environment.catalogue.option_sets["sample_Changed"].label == "Now"

    # Names of choices keep their capitals.
    sent = Sent("PUT", f"{SETS}(Name='sample_Changed')", definition, MERGED)
    return Plan(("sample_Changed", definition), (sent,), changed)


@CASES.of("deleteGlobalOptionSet")
def a_choice_by_id(place: Place) -> Plan:
    place.post(SETS, choice("sample_gone", "One"))
    identifier = place.environment.catalogue.option_sets["sample_gone"].id

    def gone(found: Any) -> None:
        assert found is None
        assert "sample_gone" not in place.environment.catalogue.option_sets

    return Plan((identifier,), (Sent("DELETE", f"{SETS}({identifier})"),), gone)


@CASES.of("insertOptionValue")
def into_a_global_choice(place: Place) -> Plan:
    options = _options(place, "sample_more", "One")
    params = {"OptionSetName": "sample_more", "Label": label("Next")}

    def inserted(found: Any) -> None:
        assert found.NewOptionValue == 100_000_000
        assert options == {1: "One", 100_000_000: "Next"}

    return Plan((params,), (Sent("POST", "InsertOptionValue", params),), inserted)


@CASES.of("updateOptionValue")
def of_a_global_choice(place: Place) -> Plan:
    options = _options(place, "sample_renamed", "One")
    params = {"OptionSetName": "sample_renamed", "Value": 1, "Label": label("Uno")}

    def changed(found: Any) -> None:
        assert found == {}
        assert options == {1: "Uno"}

    return Plan((params,), (Sent("POST", "UpdateOptionValue", {"MergeLabels": True, **params}),), changed)


@CASES.of("deleteOptionValue")
def of_one_column(place: Place) -> Plan:
    options = place.environment.catalogue.table("account").columns["accountcategorycode"].options
    options[77] = "Of one case"
    params = {"EntityLogicalName": "account", "AttributeLogicalName": "accountcategorycode", "Value": 77}

    def gone(found: Any) -> None:
        assert found == {}
        assert 77 not in options

    return Plan((params,), (Sent("POST", "DeleteOptionValue", params),), gone)


@CASES.of("orderOption")
def all_options(place: Place) -> Plan:
    options = _options(place, "sample_ordered", "One", "Two", "Three")
    params = {"OptionSetName": "sample_ordered", "Values": [3, 1, 2]}

    def ordered(found: Any) -> None:
        assert found == {}
        assert list(options) == [3, 1, 2]

    return Plan((params,), (Sent("POST", "OrderOption", params),), ordered)


@CASES.of("buildLabel")
def a_label(place: Place) -> Plan:
    text = {"@odata.type": f"{CRM}LocalizedLabel", "Label": "Größe", "LanguageCode": 1031}
    expected = {"@odata.type": f"{CRM}Label", "LocalizedLabels": [text]}
    return Plan(("Größe", 1031), (), expected, network=False)


@CASES.of("getAttributeODataType")
def a_type(place: Place) -> Plan:
    return Plan(("MultiSelectPicklist",), (), f"{CRM}MultiSelectPicklistAttributeMetadata", network=False)


def _options(place: Place, name: str, *texts: str) -> dict[int, str]:
    place.post(SETS, choice(name, *texts))
    return place.environment.catalogue.option_sets[name].options
