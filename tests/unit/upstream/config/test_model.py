"""`ServerConfig`: time-outs, fingerprints, and what may be shown of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from shared.upstream.config.model import ServerConfig
from shared.upstream.settings import UpstreamSettings
from tests.unit.upstream.config.vectors import server, tool

STDIO: dict[str, Any] = {"command": "npx", "args": ["-y", "pkg"]}
TOOL: dict[str, Any] = {"name": "s", "type": "mcp", "server": "s", **STDIO}
SETTINGS = UpstreamSettings()
OWN = UpstreamSettings(tool_timeout=90, tool_timeout_given=True, init_timeout=4)


@pytest.mark.parametrize(
    ("timeouts", "asked", "wanted"),
    [
        ({"tool_timeout": 7, "request_timeout": 8}, 1_500, 1.5),
        ({"tool_timeout": 7, "request_timeout": 8}, None, 7),
        ({"request_timeout": 8}, None, 8),
        ({"init_timeout": 3, "timeout": 2}, None, 120),
    ],
)
def test_the_order_of_a_call_s_time_outs(timeouts: dict[str, Any], asked: int | None, wanted: float) -> None:
    assert server({**STDIO, **timeouts}).only.call_timeout(SETTINGS, asked) == wanted


def test_sixty_seconds_only_when_nothing_else_is_set() -> None:
    assert tool(TOOL).only.call_timeout(SETTINGS) == 60
    assert tool(TOOL).only.call_timeout(OWN) == 90
    assert server(STDIO).only.call_timeout(SETTINGS) == 120
    assert server(STDIO).only.call_timeout(OWN) == 90


def test_a_connection_has_its_own_time() -> None:
    found = server({**STDIO, "init_timeout": 2.5, "tool_timeout": 9}).only
    assert found.connect_timeout(OWN) == 2.5
    assert server({**STDIO, "tool_timeout": 9}).only.connect_timeout(OWN) == 4
    assert server(STDIO).only.connect_timeout(SETTINGS) == 10


@pytest.mark.parametrize(
    "field", ["init_timeout", "tool_timeout", "timeout", "sse_read_timeout", "request_timeout"]
)
@pytest.mark.parametrize("value", [0, -1, True, "soon", [1]])
def test_a_time_out_is_a_positive_number(field: str, value: Any) -> None:
    outcome = server({"url": "https://h/mcp", field: value})
    assert outcome.fields() == {field}


@pytest.mark.parametrize("value", ["utf-8", "latin-1", "UTF-16"])
def test_encodings(value: str) -> None:
    assert server({**STDIO, "encoding": value, "encoding_error_handler": "replace"}).only.encoding == value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("encoding", "bogus"), ("encoding", "base64"), ("encoding", "a\0"),
        ("encoding_error_handler", "backslashreplace"),
        ("disabled_tools", "echo"), ("disabled_tools", {"echo": True}), ("terminate_on_close", "yes"),
        ("verify", 0),
        ("config", {"n": float("inf")}), ("description", 5), ("server", 5), ("args", {"a": 1}),
    ],
)  # fmt: skip
def test_a_value_that_is_wrong_is_named_by_its_field(field: str, value: Any) -> None:
    entry = {"url": "https://h/mcp"} if field in ("terminate_on_close", "verify") else dict(STDIO)
    (fault,) = server({**entry, field: value}).faults
    assert fault.field.split(".")[0] == field


def test_disabled_tools_are_trimmed() -> None:
    assert server({**STDIO, "disabled_tools": [" a ", "", "b", "a"]}).only.disabled_tools == ("a", "b")
    assert server({**STDIO, "disabled_tools": ["a", 5]}).fields() == {"disabled_tools.1"}


def test_tls_without_a_check_is_warned_of() -> None:
    outcome = server({"url": "https://h/mcp", "verify": False})
    assert outcome.only.verify is False
    assert [warning.field for warning in outcome.warnings] == ["verify"]


def test_a_disabled_server_needs_nothing() -> None:
    """It may be broken, and its variables may be missing: that is often why it is switched off."""
    entry = {"command": "bash", "env": {"A": "${NOPE}"}, "disabled": True, "disabled_tools": ["x"]}
    config = server(entry).only
    assert (config.disabled, config.command, config.env, config.disabled_tools) == (True, None, {}, ("x",))
    assert tool({"name": "t", "type": "mcp", "disabled": True}).only.disabled


def test_it_cannot_be_changed() -> None:
    config = server(STDIO).only
    with pytest.raises(ValidationError):
        setattr(config, "command", "bash")  # noqa: B010 - what a type checker would not let pass


def test_its_repr_shows_no_secret() -> None:
    secret = {"args": ["pkg", "hunter2"], "env": {"A": "hunter2"}, "config": {"a": "hunter2"}}
    remote = {"url": "https://h/?key=hunter2", "headers": {"X": "hunter2"}}
    for entry in ({**STDIO, **secret}, remote):
        assert "hunter2" not in repr(server(entry).only)
        assert "hunter2" not in str(server(entry).only)


def test_a_message_of_pydantic_shows_no_secret() -> None:
    with pytest.raises(ValidationError) as caught:
        ServerConfig(name="n", key="n", env={"A": 5}, url="http://h/?key=hunter2")
    assert "hunter2" not in str(caught.value)


CHANGES: list[dict[str, Any]] = [
    {"args": ["-y", "other"]}, {"env": {"A": "1"}}, {"config": {"a": 1}}, {"encoding": "latin-1"},
    {"encoding_error_handler": "ignore"}, {"load_prompts": False}, {"init_timeout": 3},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_fingerprint_tells_connections_apart(change: dict[str, Any]) -> None:
    assert server({**STDIO, **change}).only.fingerprint != server(STDIO).only.fingerprint


def test_a_secret_is_in_the_fingerprint() -> None:
    entry = {"url": "https://h/mcp", "headers": {"X": "${T}"}}
    one, two = (server(entry, environ={"T": text}).only.fingerprint for text in ("a", "b"))
    assert one != two
    assert one == server(entry, environ={"T": "a"}).only.fingerprint


@pytest.mark.parametrize("change", [{"description": "other"}, {"disabled_tools": ["x"]}, {"server": "s"}])
def test_a_fingerprint_does_not_change_for_what_the_connection_never_sees(change: dict[str, Any]) -> None:
    assert server({**STDIO, **change}).only.fingerprint == server(STDIO).only.fingerprint


def test_a_fingerprint_means_nothing_to_another_process() -> None:
    """So nobody can find a short secret by trying."""
    script = (
        "from shared.upstream.config.model import ServerConfig\n"
        "print(ServerConfig(name='s', key='s', url='https://h/').fingerprint)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(found) == 2
