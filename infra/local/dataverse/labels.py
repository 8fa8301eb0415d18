"""Localized labels, as definitions carry them."""

from __future__ import annotations

from typing import Any, Final

from infra.local.dataverse.schema import stable_id

ENGLISH: Final = 1033


def label(text: str, language: int = ENGLISH) -> dict[str, Any]:
    """A Label with one text."""
    return complete({"LocalizedLabels": [{"Label": text, "LanguageCode": language}]})


def complete(given: dict[str, Any]) -> dict[str, Any]:
    """A client's Label with what the server adds: the users's own text and ids."""
    texts = [
        {
            "Label": one.get("Label", ""),
            "LanguageCode": one.get("LanguageCode", ENGLISH),
            "IsManaged": False,
            "MetadataId": stable_id("label", str(one.get("Label", "")), str(one.get("LanguageCode", ENGLISH))),
            "HasChanged": None,
        }
        for one in given.get("LocalizedLabels") or []
    ]
    own = next((one for one in texts if one["LanguageCode"] == ENGLISH), texts[0] if texts else None)
    return {"LocalizedLabels": texts, "UserLocalizedLabel": own}


def text_of(given: Any, default: str = "") -> str:
    """The text a Label shows to an English user."""
    if not isinstance(given, dict):
        return default
    own = complete(given)["UserLocalizedLabel"]
    return default if own is None else str(own["Label"])


def merged(old: Any, new: dict[str, Any], *, keep: bool) -> dict[str, Any]:
    """The Label after an update: with `keep` (MSCRM.MergeLabels) languages that the new one lacks stay."""
    texts = {one["LanguageCode"]: one for one in complete(new)["LocalizedLabels"]}
    if keep and isinstance(old, dict):
        texts = {one["LanguageCode"]: one for one in complete(old)["LocalizedLabels"]} | texts
    return complete({"LocalizedLabels": list(texts.values())})
