"""No method without a case: a new one in `dataverseAPI` needs a test against the stand-in first."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from shared.apis import dataverseAPI
from shared.apis.dataverse import DataverseApi
from shared.apis.naming import to_camel, to_snake
from tests.integration.dataverse.methods_cases import Cases

#: Made by the API for its own methods.
OWN: Final = {"scope"}


def _cases() -> list[str]:
    found: list[str] = []
    for path in sorted(Path(__file__).parent.glob("test_methods_*.py")):
        if path.stem != Path(__file__).stem:
            module = importlib.import_module(f"tests.integration.dataverse.{path.stem}")
            found += [case.method for case in getattr(module, "CASES", Cases())]
    return found


def test_every_method_has_a_case() -> None:
    methods = {name for name in dir(dataverseAPI) if not name.startswith("_")} - OWN
    cases = set(_cases())
    assert {to_camel(to_snake(name)) for name in methods} == cases
    # Each exists under both names, and they are one method.
    assert {to_snake(name) for name in cases} | cases == methods
    for name in cases:
        assert getattr(DataverseApi, to_snake(name)) is getattr(DataverseApi, name)
