"""What the meta-schema says of a schema. Too slow for a cold start: `validate` and `upstream sync` use it."""

from __future__ import annotations

from shared.tool.spec import JsonObject


def refused(schema: JsonObject) -> list[str]:
    """What JSON Schema 2020-12 forbids, and patterns that cannot be compiled (its format `regex`)."""
    from jsonschema import Draft202012Validator as Draft

    faults = []
    for error in Draft(Draft.META_SCHEMA, format_checker=Draft.FORMAT_CHECKER).iter_errors(schema):
        said = error.message
        if error.validator == "format" and error.validator_value == "regex":
            said = f"{str(error.instance)[:80]!r} is no regular expression that Python's re can compile"
        faults.append(f"{error.json_path}: {said[:300]}")
    return list(dict.fromkeys(faults))
