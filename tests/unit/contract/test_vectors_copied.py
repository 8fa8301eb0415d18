"""The committed vectors are the ones that were written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.contract.pptb import VECTORS

WRITTEN_DOWN = Path(__file__).resolve().parents[4] / "shared" / "vectors" / "pptb"


@pytest.mark.skipif(not WRITTEN_DOWN.is_dir(), reason="the folder beside the checkout is not there")
def test_the_copies_equal_what_was_written_down() -> None:
    written = {path.name: path.read_bytes() for path in WRITTEN_DOWN.glob("*.json")}
    assert {path.name: path.read_bytes() for path in VECTORS.glob("*.json")} == written
