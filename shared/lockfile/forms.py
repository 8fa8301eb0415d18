"""A ToolSpec in the lock file: its fields by name, and back."""

from __future__ import annotations

import dataclasses
import json
from enum import StrEnum

from shared.tool.json_form import dumps
from shared.tool.spec import ExecutionMode, Isolation, JsonObject, Mode, RunRules, ToolAnnotations, ToolSpec


class Kind(StrEnum):
    """Where something that is registered comes from, and so how its code is loaded."""

    BUILT_IN = "built-in"
    DECORATED = "decorated"
    CONTRACT = "contract"
    UPSTREAM = "upstream"


def spec_json(spec: ToolSpec) -> JsonObject:
    """Every field, in plain JSON values. What has no JSON form was refused when the tool was declared."""
    form: JsonObject = json.loads(dumps(dataclasses.asdict(spec)))
    return form


def spec_of(form: JsonObject) -> ToolSpec:
    """The spec that `spec_json` was given. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    rules = form["rules"]
    default_mode = rules["default_mode"]
    return ToolSpec(
        **{
            **form,
            "annotations": ToolAnnotations(**form["annotations"]),
            "capabilities": tuple(form["capabilities"]),
            "icons": tuple(form["icons"]),
            "rules": RunRules(
                **{
                    **rules,
                    "modes": tuple(map(Mode, rules["modes"])),
                    "default_mode": None if default_mode is None else Mode(default_mode),
                    "execution_modes": tuple(map(ExecutionMode, rules["execution_modes"])),
                    "default_execution_mode": ExecutionMode(rules["default_execution_mode"]),
                    "isolation": Isolation(rules["isolation"]),
                    "window_methods": tuple(rules["window_methods"]),
                }
            ),
        }
    )
