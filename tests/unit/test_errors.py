"""Errors of other servers: whoever catches one kind catches what is under it, and reads its fields."""

from __future__ import annotations

import pytest

from shared.errors import (
    ConfigError,
    MCPConfigError,
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    MCPToolNotFoundError,
    MissingTransportFieldError,
    ToolboxError,
    ToolError,
)

#: The data model of HoloDeck's MCP tools, with the project's own root above it.
UNDER: tuple[tuple[type[ToolboxError], type[ToolboxError]], ...] = (
    (ConfigError, ToolboxError),
    (MCPConfigError, ConfigError),
    (MissingTransportFieldError, MCPConfigError),
    (MCPError, ToolError),
    (MCPConnectionError, MCPError),
    (MCPTimeoutError, MCPConnectionError),
    (MCPProtocolError, MCPError),
    (MCPToolNotFoundError, MCPError),
)


@pytest.mark.parametrize(("kind", "above"), UNDER, ids=lambda kind: kind.__name__)
def test_an_error_is_directly_under_its_own_kind(kind: type[ToolboxError], above: type[ToolboxError]) -> None:
    assert kind.__bases__ == (above,)


def test_a_wrong_entry_is_no_failure_of_a_server() -> None:
    """A variable that is not set stays a plain `ConfigError`, which no handler of servers' failures takes."""
    assert not issubclass(ConfigError, MCPError)
    assert not issubclass(MCPConfigError, MCPError)


def test_what_is_wrong_in_a_configuration_is_told_with_its_field() -> None:
    wrong = MCPConfigError("command", "Invalid command 'bash'.")
    assert wrong.field == "command"
    assert "command" in str(wrong)
    missing = MissingTransportFieldError("url", "sse")
    assert (missing.field, missing.transport) == ("url", "sse")
    assert "'url' is required for sse transport" in str(missing)


@pytest.mark.parametrize("kind", [MCPError, MCPConnectionError, MCPTimeoutError, MCPProtocolError])
def test_the_server_may_be_unknown(kind: type[MCPError]) -> None:
    assert kind("x").server is None
    assert kind("x", server="crm").server == "crm"
    assert str(kind()) != ""


def test_what_each_knows_beside_the_server() -> None:
    assert MCPConnectionError("x", command="npx").command == "npx"
    late = MCPTimeoutError("x", command="uvx", timeout=2.5)
    assert (late.command, late.timeout) == ("uvx", 2.5)
    assert MCPProtocolError("x", error_code=-32602).error_code == -32602
    unknown = MCPToolNotFoundError("read.file", "docs")
    assert (unknown.tool_name, unknown.server) == ("read.file", "docs")
    assert str(unknown) == "Tool 'read.file' not found on server 'docs'"
    assert str(MCPToolNotFoundError("x")) == "Tool 'x' not found on server"
