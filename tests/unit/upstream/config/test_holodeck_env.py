"""What HoloDeck gives a stdio server as its environment."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.unit.upstream.config.vectors import Outcome, cases, defects, kept, named, tool

CASES = cases("holodeck-env")


def built(case: Any, folder: Path) -> Outcome:
    given = case["input"]
    entry = {
        "name": "t", "description": "d", "type": "mcp", "server": "s", "command": "npx", "args": ["-y", "pkg"],
        **{key: given[key] for key in ("env", "config") if key in given},
    }  # fmt: skip
    if "env_file_text" in given or "env_file_base64" in given:
        encoded = given.get("env_file_base64")
        data = base64.b64decode(encoded) if encoded is not None else given["env_file_text"].encode()
        (folder / "vars.env").write_bytes(data)
        entry["env_file"] = "vars.env"
    elif "env_file" in given:
        entry["env_file"] = {"missing": "missing.env", "directory": "."}.get(
            given["env_file"], given["env_file"]
        )
    return tool(entry, environ=given["process_env"], folder=folder)


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any, tmp_path: Path) -> None:
    outcome, wanted = built(case, tmp_path), case["output"]
    if "error" not in wanted:
        assert outcome.only.environment() == wanted["env"]
        return
    assert outcome.servers == {}
    (fault,) = outcome.faults
    assert fault.field == wanted["error"]["field"]
    assert fault.error is not None
    # The same words and class, but for the number of the system's error and its path.
    assert type(fault.error).__name__ == wanted["error"]["class"]
    said = wanted["error"]["message"].split(" [Errno")[0]
    assert fault.error.message.startswith(said)
    assert str(tmp_path) not in outcome.said()


FORM = "holds a form of ${…} that is not supported"
#: id -> what the process is given, or the field of the fault and its text.
MENDED: dict[str, dict[str, str] | tuple[str, str]] = {
    "default-form": ("env.X", FORM),
    "default-form-unset": ("env.X", FORM),
    "env-prefix-form": ("env.X", FORM),
    "input-form": ("env.X", FORM),
    "spaces-in-braces": ("env.X", FORM),
    "digit-first": ("env.X", FORM),
    "unicode-name": ("env.X", FORM),
    "file-double-quotes": {"A": "two words"},
    "file-single-quotes": {"A": "two words"},
    "file-no-name": ("env_file", "line 1: there is no name before the ="),
    "file-utf16": ("env_file", "Cannot read environment file: it is not UTF-8"),
}


def test_every_defect_has_an_answer() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED))
def test_mended(case_id: str, tmp_path: Path) -> None:
    outcome, wanted = built(named(CASES, case_id), tmp_path), MENDED[case_id]
    if isinstance(wanted, dict):
        assert outcome.only.environment() == wanted
        return
    (fault,) = outcome.faults
    assert fault.field == wanted[0]
    assert wanted[1] in fault.message


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "vars.env").write_bytes(b"\xef\xbb\xbfA=1\nexport B=x # not a comment\n")
    entry = {"command": "npx", "args": ["-y", "pkg"], "envFile": "vars.env"}
    outcome = tool({"name": "t", "type": "mcp", "server": "s", **entry}, folder=tmp_path)
    assert outcome.only.environment() == {"A": "1", "B": "x # not a comment"}


def test_config_wins_over_a_variable_of_its_name() -> None:
    entry = {"command": "npx", "args": ["-y", "p"], "env": {"MCP_CONFIG": "x"}, "config": {"a": "${A}"}}
    outcome = tool({"name": "t", "type": "mcp", "server": "s", **entry}, environ={"A": "1"})
    assert outcome.only.environment() == {"MCP_CONFIG": '{"a": "1"}'}


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "vars.env")
    entry = {"name": "t", "type": "mcp", "server": "s", "command": "npx", "args": ["p"], "env_file": "vars.env"}
    (fault,) = tool(entry, folder=tmp_path).faults
    assert "no ordinary file" in fault.message
