"""Types of values that are written out, in Bicep or in JSON."""

from __future__ import annotations

import json
from pathlib import Path

from infra.azure.lint.report import Place, Report, Rule
from infra.azure.lint.types import ANY, BOOL, NULL, Arr, Int, Obj, Prop, Str, Type, Union, union


def of_value(value: object) -> Type:
    """The type of a value of a literal or of JSON."""
    match value:
        case bool():
            return BOOL
        case int():
            return Int(frozenset({value}))
        case str():
            return Str(frozenset({value}))
        case list():
            return Arr(union(map(of_value, value)) if value else Union(()))
        case dict():
            return Obj({str(name): Prop(of_value(one)) for name, one in value.items()})
        case None:
            return NULL
    return ANY


def of_json(report: Report, place: Place, path: Path) -> Type:
    """The type of a JSON file's content. A file that is missing or no JSON is a finding."""
    try:
        return of_value(json.loads(path.read_text("utf-8")))
    except OSError:
        report.add(place, Rule.MODULE, f"there is no file '{path.name}' there")
    except ValueError as error:
        report.add(place, Rule.VALUE, f"{path.name} is no JSON: {error}")
    return ANY
