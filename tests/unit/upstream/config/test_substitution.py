"""`${VAR}`: once, only in its one form, and never left as it stands."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import ConfigError, MCPConfigError
from shared.upstream.config.substitution import OWN_SECRETS, substitute
from tests.unit.upstream.config.vectors import read, server

ENVIRON = {"A": "1", "B": "two words", "NEST": "${A}", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("${A}${B}", "1two words"), ("${NEST}", "${A}"), ("${EMPTY}", ""), ("$A %A% ${A", "$A %A% ${A"),
     ("$${A}", "$1"),
     ("\\${A}", "\\1"), ("${A${B}}", "${Atwo words}"), ("{A}", "{A}")],
)  # fmt: skip
def test_what_becomes_of_it(text: str, wanted: str) -> None:
    assert substitute(text, ENVIRON, "env.X") == wanted


@pytest.mark.parametrize("text", ["${A:-d}", "${env:A}", "${input:A}", "${ A }", "${1A}", "${}", "${A-B}"])
def test_other_forms_are_errors(text: str) -> None:
    with pytest.raises(MCPConfigError, match="not supported"):
        substitute(text, ENVIRON, "env.X")


def test_a_missing_variable_is_named_with_its_place_and_server() -> None:
    with pytest.raises(ConfigError) as caught:
        substitute("Bearer ${NOPE}", ENVIRON, "headers.Authorization")
    assert caught.value.field == "NOPE"
    assert "Environment variable 'NOPE' not found." in caught.value.message
    outcome = server({"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${NOPE}"}}, "Docs")
    assert str(outcome.faults[0]).startswith(
        "server 'Docs' (global): NOPE: Environment variable 'NOPE' not found."
    )


def test_it_is_resolved_in_every_field_that_a_server_sees() -> None:
    stdio = {
        "command": "npx",
        "args": ["-y", "pkg", "--key=${A}"],
        "env": {"X": "${A}"},
        "config": {"deep": [{"x": "${B}"}], "${A}": 1},
    }
    found = server(stdio, environ=ENVIRON).only
    assert found.args == ("-y", "pkg", "--key=1")
    assert found.env == {"X": "1"}
    assert found.config == {"deep": [{"x": "two words"}], "${A}": 1}
    remote = server(
        {"url": "https://${H}/mcp", "headers": {"X": "${A}"}}, environ={"H": "example.com", "A": "1"}
    ).only
    assert (remote.url, remote.headers) == ("https://example.com/mcp", {"X": "1"})


def test_a_value_with_blanks_stays_one_argument() -> None:
    found = server({"command": "npx -y pkg ${B}", "args": ["--opt ${B}"]}, environ=ENVIRON).only
    assert found.args == ("-y", "pkg", "two words", "--opt", "two words")


def test_one_unset_variable_switches_off_one_server_only() -> None:
    text = """{"mcpServers": {"bad": {"url": "https://h/", "headers": {"X": "${NOPE}"}},
               "good": {"url": "https://h/"}}}"""
    outcome = read(text)
    assert set(outcome.servers) == {"good"}
    assert [fault.name for fault in outcome.faults] == ["bad"]


@pytest.mark.parametrize("name", sorted(OWN_SECRETS))
def test_the_apps_own_secrets_are_not_given_away(name: str) -> None:
    outcome = server({"url": "https://h/", "headers": {"X": f"${{{name}}}"}}, environ={name: "hunter2"})
    assert outcome.fields() == {name}
    assert "hunter2" not in outcome.said()


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
plain = st.text(st.characters(exclude_characters="${}"), max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(plain, names, st.text(max_size=8)), max_size=5), plain)
def test_each_variable_is_replaced_and_nothing_else(parts: list[tuple[str, str, str]], end: str) -> None:
    environ = {name: value for _, name, value in parts if name.upper() not in OWN_SECRETS}
    text = "".join(f"{before}${{{name}}}" for before, name, _ in parts) + end
    wanted = "".join(f"{before}{environ.get(name)}" for before, name, _ in parts) + end
    assert substitute(text, environ, "x") == wanted


@settings(deadline=None)
@given(st.text(st.sampled_from("${}A:b1 -"), max_size=12))
def test_nothing_that_looks_like_a_variable_is_left(text: str) -> None:
    try:
        found = substitute(text, {"A": "x", "b": "y"}, "x")
    except ConfigError:
        return
    assert re.search(r"\$\{[^{}]*\}", text) is None or found != text
