"""Files are written whole or not at all, and stay as private as they were."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from shared.files import replace_text


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    replace_text(file, "é\n")
    assert file.read_bytes() == b"\xc3\xa9\n"
    replace_text(file, "b\n")
    assert file.read_text() == "b\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_reader_has_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with file.open() as reader:
        replace_text(file, "new")
        assert reader.read() == "old"


@pytest.mark.parametrize("private", [0o600, 0o640, 0o664])
def test_who_may_read_it_stays_the_same(tmp_path: Path, private: int) -> None:
    """Also where a run that was killed has left something that everybody may read."""
    file = tmp_path / "a.json"
    file.write_text("secret")
    file.chmod(private)
    left = tmp_path / "a.json.new"
    left.write_text("half")
    left.chmod(0o666)
    replace_text(file, "other secret")
    assert mode(file) == private


def test_a_new_file_is_like_any_other(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_text(tmp_path / "a.json", "")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a.json") == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real" / "a.json"
    real.parent.mkdir()
    real.write_text("old")
    link = tmp_path / "a.json"
    link.symlink_to(real)
    replace_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_what_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "half a character: \ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_text(tmp_path / "folder", "new")
    assert file.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "folder"]
