"""Which browser the page's tests get, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.local.dev import browser
from infra.local.dev.console import DevError
from infra.local.dev.processes import CommandError


def program(folder: Path, name: str) -> Path:
    made = folder / name
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def test_the_one_that_is_named_comes_first(tmp_path: Path) -> None:
    program(tmp_path, "chromium")
    own = program(tmp_path, "my-chrome")
    assert browser.found({"PATH": str(tmp_path), "TOOLBOX_CHROMIUM": str(own)}) == str(own)
    assert browser.found({"PATH": str(tmp_path)}) == str(tmp_path / "chromium")


def test_a_name_of_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(DevError) as caught:
        browser.found({"PATH": str(tmp_path), "TOOLBOX_CHROMIUM": str(tmp_path / "none")})
    assert "TOOLBOX_CHROMIUM names no program" in caught.value.message


def test_without_one_it_is_fetched_and_a_failure_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def fails(command: list[str], **_: object) -> str:
        asked.append(command)
        raise CommandError(command, 1, "no network")

    monkeypatch.setattr(browser, "capture", fails)
    with pytest.raises(DevError) as caught:
        browser.ensure({"PATH": str(tmp_path)})
    assert asked[0][-3:] == ["playwright", "install", "chromium"]
    assert "apt-get install chromium" in caught.value.hint
    browser.ensure({"PATH": str(program(tmp_path, "chromium").parent)})
    assert len(asked) == 1
