"""What HoloDeck takes as an MCP tool of an agent, and what it should not have taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.errors import MissingTransportFieldError
from shared.upstream.config.model import ServerConfig
from shared.upstream.settings import UpstreamSettings
from tests.unit.upstream.config.vectors import Outcome, cases, defects, kept, named, tool

CASES = cases("holodeck-config")
#: What another transport would use is named in a warning and not kept.
SETTINGS = UpstreamSettings()


def built(case: Any, folder: Path) -> Outcome:
    for name in (".env", "a.env", "b.env"):
        (folder / name).write_text("FROM_FILE=1\n")
    return tool(case["input"], folder=folder, environ={"HOME": "/home/somebody"})


#: Cases whose answer is another one here. id -> why, and the field that is refused (None: accepted).
OTHERWISE: dict[str, tuple[str, str | None]] = {
    "args-empty": ("npx without a package starts a shell that reads what is meant for the server", "args"),
    "load-tools-word-no": ("a word is no boolean; the vector's note allows it", "load_tools"),
    "description-missing": ("a missing description gets a default; the vector's note allows it", None),
}


def without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def as_written(config: ServerConfig) -> dict[str, Any]:
    """The configuration in the vectors' terms."""
    values = config.model_dump(mode="json")
    values |= {"type": "mcp", "args": list(config.args), "request_timeout": config.call_timeout(SETTINGS)}
    return values


@pytest.mark.parametrize("case", kept(CASES, OTHERWISE))
def test_kept(case: Any, tmp_path: Path) -> None:
    outcome, wanted = built(case, tmp_path), case["output"]
    if not wanted["accepted"]:
        assert outcome.servers == {}
        # Every field that the original names is named here too; "" stands for the entry as a whole.
        for error in wanted["errors"]:
            assert named_in(error["loc"], case, outcome), (error, outcome.said())
        return
    config = outcome.only
    found = as_written(config)
    foreign = {warning.field for warning in outcome.warnings}
    for key, value in without_nulls(wanted["model"]).items():
        if key in foreign and key not in ("command", "url"):
            continue
        if key == "env":
            value = {name: text.replace("${HOME}", "/home/somebody") for name, text in value.items()}
        assert found[key] == (value if key != "env_file" else value or None), key


def named_in(loc: str, case: Any, outcome: Outcome) -> bool:
    fields = outcome.fields()
    if case["id"] == "url-variable":
        # The loader resolves it: what is wrong is the variable.
        return fields == {"URL"}
    if loc == "":
        return bool(fields & {"command", "url", "type", "tools[0]"})
    return loc in fields


def test_what_is_answered_otherwise() -> None:
    assert OTHERWISE.keys() & defects(CASES) == set()


@pytest.mark.parametrize("case_id", sorted(OTHERWISE))
def test_otherwise(case_id: str, tmp_path: Path) -> None:
    outcome, (_, field) = built(named(CASES, case_id), tmp_path), OTHERWISE[case_id]
    if field is None:
        assert outcome.only.description == "Tools of the MCP server 't'."
    else:
        assert outcome.fields() == {field}


HTTPS = "must use https:// (http:// is for localhost, 127.0.0.1 and [::1] only)"
TIED = "must use https:// (or http:// for localhost) with the transport"
#: id -> the field of the fault and its text; None: it is accepted.
MENDED: dict[str, tuple[str, str] | None] = {
    # Nothing tells npm's `s` from PyPI's.
    "stdio-no-command": ("command", "'command' is required for stdio transport"),
    "stdio-no-command-npm-server": None,
    "url-localhost-evil": ("url", HTTPS),
    "url-localhostevil": ("url", HTTPS),
    "url-userinfo-trick": ("url", "must not hold a user name or password"),
    "url-userinfo-port-trick": ("url", "must not hold a user name or password"),
    "url-scheme-upper-localhost": None,
    "url-host-upper-localhost": None,
    "url-bad-port": ("url", "a port is a number from 1 to 65535"),
    "url-space-in-host": ("url", "must not hold blanks"),
    "http-with-wss": ("url", f"{TIED} http"),
    "sse-with-ws": ("url", f"{TIED} sse"),
    "websocket-ws-remote": ("url", "must use wss:// (ws:// is for localhost"),
    "websocket-http-localhost": (
        "url",
        "must use wss:// (or ws:// for localhost) with the transport websocket",
    ),
    "connect-timeout-negative": ("timeout", "must be positive"),
    "env-name-empty": ("env.", "a variable needs a name"),
    "env-value-nul": ("env.A", "must not hold a NUL character"),
    "headers-newline-value": ("headers", "'X' must be printable ASCII on one line"),
    "envFile-camel": None,
    "envFile-and-env_file": ("env_file", "'env_file', 'envFile' say different things"),
    "name-empty": ("name", "a server needs a name"),
    "secret-in-bad-url": ("url", "must not hold a user name or password"),
    "secret-in-env-when-command-missing": ("command", "'command' is required for stdio transport"),
}


def test_every_defect_has_an_answer() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED))
def test_mended(case_id: str, tmp_path: Path) -> None:
    outcome, wanted = built(named(CASES, case_id), tmp_path), MENDED[case_id]
    if wanted is None:
        assert outcome.only.name == "t"
        return
    assert outcome.servers == {}
    (fault,) = outcome.faults
    assert fault.field == wanted[0]
    assert wanted[1] in fault.message
    assert "hunter2" not in outcome.said()
    assert "abc123" not in outcome.said()


def test_a_missing_field_of_the_transport_has_its_own_error(tmp_path: Path) -> None:
    (fault,) = built(named(CASES, "stdio-no-command"), tmp_path).faults
    assert isinstance(fault.error, MissingTransportFieldError)
    assert (fault.error.field, fault.error.transport) == ("command", "stdio")


@pytest.mark.parametrize("transport", ["sse", "websocket", "http"])
@pytest.mark.parametrize("more", [{}, {"url": None}, {"command": "npx", "args": ["-y", "pkg"]}])
def test_every_transport_but_stdio_needs_a_url(transport: str, more: dict[str, Any]) -> None:
    (fault,) = tool({"name": "t", "type": "mcp", "server": "s", "transport": transport, **more}).faults
    assert isinstance(fault.error, MissingTransportFieldError)
    assert (fault.field, fault.error.transport) == ("url", transport)
    assert f"'url' is required for {transport} transport" in fault.message


def test_an_env_file_of_either_spelling_is_read(tmp_path: Path) -> None:
    outcome = built(named(CASES, "envFile-camel"), tmp_path)
    assert outcome.only.environment() == {"FROM_FILE": "1"}


@pytest.mark.parametrize(
    ("name", "command", "args"),
    [
        ("@modelcontextprotocol/server-filesystem", "npx", ("-y", "@modelcontextprotocol/server-filesystem")),
        ("@scope/pkg@1.2.3", "npx", ("-y", "@scope/pkg@1.2.3")),
        ("mcp-server-time", "uvx", ("mcp-server-time",)),
        ("some-tool==1.2", "uvx", ("some-tool==1.2",)),
        ("mcp/fetch", "docker", ("run", "-i", "--rm", "mcp/fetch")),
        (
            "ghcr.io/github/github-mcp-server:v1",
            "docker",
            ("run", "-i", "--rm", "ghcr.io/github/github-mcp-server:v1"),
        ),
    ],
)
def test_a_server_alone_says_its_program(name: str, command: str, args: tuple[str, ...]) -> None:
    outcome = tool({"name": "t", "type": "mcp", "server": name})
    assert (outcome.only.command, outcome.only.args) == (command, args)
    assert [warning.field for warning in outcome.warnings] == ["command"]
    with_args = tool({"name": "t", "type": "mcp", "server": name, "args": ["/data"]})
    assert with_args.only.args == (*args, "/data")


@pytest.mark.parametrize("name", ["server", "./server.js", "server.py", "my server", "C:\\x"])
def test_a_server_that_could_be_anything_does_not(name: str) -> None:
    outcome = tool({"name": "t", "type": "mcp", "server": name})
    assert [fault.message for fault in outcome.faults] == ["'command' is required for stdio transport"]
