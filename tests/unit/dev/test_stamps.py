"""When set-up is done again, and when not."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.dev.stamps import Stamp, digest


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("one")
    second.write_text("two")
    return [first, second]


def test_digest_stays_when_only_the_time_of_a_file_changes(files: list[Path]) -> None:
    before = digest(files)
    files[0].write_text("one")
    assert digest(files) == before


@pytest.mark.parametrize("change", ["content", "order", "boundary", "extra", "name"])
def test_digest_changes_with_everything_that_the_work_depends_on(
    files: list[Path], change: str, tmp_path: Path
) -> None:
    before = digest(files, "3.13")
    extra = "3.13"
    if change == "content":
        files[1].write_text("2")
    elif change == "order":
        files.reverse()
    elif change == "boundary":  # the same bytes, cut elsewhere
        files[0].write_text("onet")
        files[1].write_text("wo")
    elif change == "extra":
        extra = "3.14"
    else:
        files[1] = files[1].rename(tmp_path / "c.txt")
    assert digest(files, extra) != before


def test_stamp_matches_only_what_was_set(tmp_path: Path) -> None:
    stamp = Stamp(tmp_path / "stamp")
    assert not stamp.matches("x")
    stamp.set("x")
    assert stamp.matches("x")
    assert not stamp.matches("y")
    stamp.remove()
    stamp.remove()
    assert not stamp.matches("x")


def test_stamp_that_is_no_text_is_no_match(tmp_path: Path) -> None:
    (tmp_path / "stamp").write_bytes(b"\xff\xfe")
    assert not Stamp(tmp_path / "stamp").matches("x")
