"""The lists of the APIs' methods are complete, and nothing that changes data passes for reading."""

from __future__ import annotations

from shared.apis import dataverseAPI, methods, powerplatformAPI


def test_every_method_of_dataverse_is_listed_once() -> None:
    there = {name for name in dir(type(dataverseAPI)) if not name.startswith("_") and "_" not in name}
    listed = [name.partition(".")[2] for name in methods.OFFERED if name.startswith("dataverseAPI.")]
    assert len(listed) == len(set(listed))
    assert there - {"scope"} == {*listed, *methods.ITERATING}


def test_every_category_has_every_verb() -> None:
    for name in methods.OFFERED:
        if name.startswith("powerplatformAPI."):
            category, verb = name.split(".")[1:]
            assert callable(getattr(getattr(powerplatformAPI, category), verb))
    assert len([name for name in methods.OFFERED if name.startswith("powerplatformAPI.")]) == 15 * 5


def test_what_reads_is_named_for_it() -> None:
    """A new method that writes must not slip in among those that any window may call."""
    reading = ("get", "retrieve", "query", "fetch", "build", "Get")
    assert all(name.rpartition(".")[2].startswith(reading) for name in methods.READING)
