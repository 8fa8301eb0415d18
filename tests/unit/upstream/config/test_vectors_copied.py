"""The committed vectors are the ones that were written down, and all of them are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.upstream.config.vectors import FOLDER, cases

WRITTEN_DOWN = Path(__file__).resolve().parents[5] / "shared" / "vectors"


@pytest.mark.parametrize("folder", ["holodeck", "agentzero"])
@pytest.mark.skipif(not WRITTEN_DOWN.is_dir(), reason="the folder beside the checkout is not there")
def test_the_copies_equal_what_was_written_down(folder: str) -> None:
    written = {path.name: path.read_bytes() for path in (WRITTEN_DOWN / folder).glob("*.json")}
    assert {path.name: path.read_bytes() for path in (FOLDER / folder).glob("*.json")} == written


def test_every_case_is_there() -> None:
    names = ["holodeck-config", "holodeck-env"]
    names += [f"agentzero-{kind}" for kind in ("parse", "names", "command", "merge", "types")]
    assert {path.stem for folder in ("holodeck", "agentzero") for path in (FOLDER / folder).iterdir()} == set(
        names
    )
    assert sum(len(cases(name)) for name in names) == 422
    assert all(len({case["id"] for case in cases(name)}) == len(cases(name)) for name in names)
