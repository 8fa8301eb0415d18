"""Which transport an `mcpServers` entry means."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from shared.upstream.config.fields import TransportType
from shared.upstream.config.model import ServerConfig
from tests.unit.upstream.config.vectors import Outcome, cases, defects, kept, named, server

CASES = cases("agentzero-types")
#: The vectors' words for transports.
WORDS = {"stdio": "stdio", "sse": "sse", "streamable-http": "http"}


def built(case: Any) -> Outcome:
    # The cases speak of the transport; which programs are allowed is another matter.
    return server(case["input"], commands=("x",))


def target(config: ServerConfig) -> str | None:
    return config.command if config.transport is TransportType.STDIO else config.url


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any) -> None:
    outcome, wanted = built(case), case["output"]
    if case["input"].get("disabled") is True:
        config = outcome.only
        assert config.disabled
        assert config.command is config.url is None
    elif wanted["transport"] is None:
        assert outcome.servers == {}
        assert [fault.message for fault in outcome.faults] == ["'command' is required for stdio transport"]
    else:
        config = outcome.only
        assert (config.transport, target(config)) == (WORDS[wanted["transport"]], wanted["target"])


HTTP = "https://h/mcp"


class _Config(NamedTuple):
    transport: str
    target: str


#: id -> (transport, target), or the field of the fault and its text.
MENDED: dict[str, _Config | tuple[str, str]] = {
    "serverUrl": _Config("http", HTTP),
    "type-https": _Config("http", HTTP),
    "type-streamableHttp": _Config("http", HTTP),
    "type-streamable_http": _Config("http", HTTP),
    "type-websocket": _Config("websocket", "wss://h/ws"),
    "type-nonsense": ("type", "must be 'stdio', 'sse', 'websocket' or 'http', not 'grpc'"),
    "type-blank": _Config("http", HTTP),
    "type-padded-streamable": _Config("http", HTTP),
    "transport-key": _Config("http", HTTP),
    "type-stdio-with-url": ("command", "'command' is required for stdio transport"),
    "type-sse-with-command-only": ("url", "'url' is required for sse transport"),
    "type-streamable-with-command-only": ("url", "'url' is required for http transport"),
    "type-http-with-command": ("url", "'url' is required for http transport"),
    "url-empty": ("command", "'command' is required for stdio transport"),
    "url-empty-typed": ("url", "'url' is required for sse transport"),
    "url-null-with-command": _Config("stdio", "x"),
    "url-and-serverUrl": ("url", "'url', 'serverUrl' say different things"),
    "serverUrl-empty-and-url": _Config("http", "https://one/"),
    "httpUrl": _Config("http", HTTP),
    # And a warning names the key.
    "url-upper-key": ("command", "'command' is required for stdio transport"),
    "url-number": ("url", "must be text, not integer"),
    "url-http": ("url", "must use https://"),
    "type-null-command": _Config("stdio", "x"),
    "type-number": ("type", "must be 'stdio', 'sse', 'websocket' or 'http', not integer"),
    "type-list": ("type", "must be 'stdio', 'sse', 'websocket' or 'http', not array"),
    "disabled-text-false": ("disabled", "must be true or false, not string"),
}


def test_every_defect_has_an_answer() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED))
def test_mended(case_id: str) -> None:
    outcome, wanted = built(named(CASES, case_id)), MENDED[case_id]
    if isinstance(wanted, _Config):
        config = outcome.only
        assert (config.transport, target(config)) == wanted
        return
    field, message = wanted
    assert outcome.servers == {}
    assert any(fault.field == field and message in fault.message for fault in outcome.faults), outcome.said()


def test_an_unknown_key_is_named_and_has_no_effect() -> None:
    outcome = server(
        {"command": "npx", "args": ["-y", "pkg"], "URL": HTTP, "autoApprove": ["x"], "scope": "project"}
    )
    assert outcome.only.command == "npx"
    assert {warning.field for warning in outcome.warnings} == {"URL", "autoApprove"}


@pytest.mark.parametrize(
    "word",
    ["http", "https", "streamable-http", "streamableHttp", "streamable_http", "http-stream", "streaming-http",
     "http-streaming", "HTTP", " Streamable-HTTP "],
)  # fmt: skip
def test_every_alias_of_streamable_http(word: str) -> None:
    for key in ("type", "transport"):
        assert server({key: word, "url": HTTP}).only.transport is TransportType.HTTP


def test_type_and_transport_may_agree_but_not_contradict() -> None:
    assert server({"type": "sse", "transport": "sse", "url": HTTP}).only.transport is TransportType.SSE
    outcome = server({"type": "sse", "transport": "http", "url": HTTP})
    assert outcome.servers == {}
    assert [fault.message for fault in outcome.faults] == ["'type' says sse and 'transport' says http"]


def test_command_and_url_without_a_type_is_undecided() -> None:
    outcome = server({"command": "npx", "args": ["-y", "p"], "url": HTTP})
    assert [fault.field for fault in outcome.faults] == ["type"]
    stdio = server({"type": "stdio", "command": "npx", "args": ["-y", "p"], "url": HTTP})
    assert stdio.only.transport is TransportType.STDIO
    assert [warning.message for warning in stdio.warnings] == ["'url' has no effect with the transport stdio"]


def test_a_websocket_url_says_its_transport() -> None:
    assert server({"url": "wss://h/ws"}).only.transport is TransportType.WEBSOCKET


def test_what_another_transport_would_use_is_not_even_resolved() -> None:
    outcome = server({"type": "http", "url": HTTP, "env": {"A": "${UNSET}"}, "env_file": "none.env"})
    assert outcome.only.env == {}
    assert {warning.field for warning in outcome.warnings} == {"env", "env_file"}
