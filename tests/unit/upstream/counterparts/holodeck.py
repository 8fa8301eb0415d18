"""HoloDeck's tests of its MCP tools (revisions 4a67004 to c64af79, and those of its later bridges)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.upstream.counterparts.table import (
    COMMANDS,
    CONFIG,
    EDITING,
    ENV,
    ERRORS,
    EXAMPLES,
    GUARD,
    HTTP,
    LOADING,
    MODEL,
    NAMES,
    PARTS,
    POLICY,
    PROCESSES,
    STREAMS,
    SUBSTITUTION,
    URLS,
    Group,
    both,
    by,
    not_ours,
)

_NOT_IMPLEMENTED: Final = "there it was still to come and refused; here it is"
_ALIAS: Final = "signs outside the safe set become _ with a hash, as names that differ must stay two"
_NO_EDITOR: Final = "servers are written into the file by hand; only enable and disable edit it"
_KEPT: Final = "TestModels::test_each_is_frozen_and_told_by_its_type"

_CONFIG: Final[Group] = {
    "stdio_minimal": by(CONFIG, "test_kept[stdio-args]"),
    "stdio_full": by(CONFIG, "test_kept[stdio-full]"),
    "stdio_docker_command": by(GUARD, "test_normal_use_is_not_refused"),
    "sse": by(CONFIG, "test_kept[sse-min]"),
    "websocket": by(CONFIG, "test_kept[websocket-min]"),
    "http": by(CONFIG, "test_kept[http-min]"),
    "localhost_http_allowed": by(CONFIG, "test_kept[url-localhost]"),
    "localhost_127_allowed": by(CONFIG, "test_kept[url-127]"),
    "stdio_without_command": by(CONFIG, "test_a_missing_field_of_the_transport_has_its_own_error"),
    "sse_without_url": by(CONFIG, "test_every_transport_but_stdio_needs_a_url"),
    "websocket_without_url": by(CONFIG, "test_every_transport_but_stdio_needs_a_url"),
    "http_without_url": by(CONFIG, "test_every_transport_but_stdio_needs_a_url"),
    "invalid_command_type": by(CONFIG, "test_kept[command-python]"),
    "remote_http_url_requires_https": by(CONFIG, "test_kept[url-http-remote]"),
    "negative_request_timeout": by(CONFIG, "test_kept[timeout-negative]"),
    "zero_request_timeout": by(MODEL, "test_a_time_out_is_a_positive_number"),
    "invalid_url_scheme": by(CONFIG, "test_kept[url-ftp]"),
    "default transport stdio": by(CONFIG, "test_kept[stdio-args]"),
    "default load_tools, load_prompts": by(CONFIG, "test_kept[stdio-args]"),
    "default request_timeout 60": by(MODEL, "test_sixty_seconds_only_when_nothing_else_is_set"),
    "default type mcp": by(CONFIG, "test_kept[type-wrong]", "test_kept[in-a-tool-list]"),
}
_ERRORS: Final[Group] = {
    "config error extends ConfigError": by(ERRORS, "test_an_error_is_directly_under_its_own_kind"),
    "MCPError extends the root": by(ERRORS, "test_an_error_is_directly_under_its_own_kind"),
    "server optional": by(ERRORS, "test_the_server_may_be_unknown"),
    "connection extends MCPError, command optional": by(
        ERRORS, "test_an_error_is_directly_under_its_own_kind", "test_what_each_knows_beside_the_server"
    ),
    "timeout extends connection, timeout optional": by(
        ERRORS, "test_an_error_is_directly_under_its_own_kind", "test_what_each_knows_beside_the_server"
    ),
    "protocol extends MCPError, code optional": by(
        ERRORS, "test_an_error_is_directly_under_its_own_kind", "test_what_each_knows_beside_the_server"
    ),
    "tool-not-found extends MCPError, message has the tool": by(
        ERRORS, "test_an_error_is_directly_under_its_own_kind", "test_what_each_knows_beside_the_server"
    ),
    "config error field and message": by(
        ERRORS, "test_what_is_wrong_in_a_configuration_is_told_with_its_field"
    ),
    "config error for a missing url": by(
        ERRORS, "test_what_is_wrong_in_a_configuration_is_told_with_its_field"
    ),
}
_FACTORY: Final[Group] = {
    "NotImplemented sse": both(by(STREAMS, "test_real_sse_server"), reason=_NOT_IMPLEMENTED),
    "NotImplemented websocket": both(by(STREAMS, "test_websocket_server"), reason=_NOT_IMPLEMENTED),
    "NotImplemented http": both(by(HTTP, "test_real_servers_in_both_eras"), reason=_NOT_IMPLEMENTED),
    "stdio correct args": by(PROCESSES, "test_arguments_arrive_whole"),
    "stdio additional args": by(CONFIG, "test_kept[stdio-full]"),
    "stdio docker": by(GUARD, "test_normal_use_is_not_refused"),
    "stdio custom encoding": by(PROCESSES, "test_encoding_that_cannot_write_lines"),
    "stdio import error is a config error": not_ours("the MCP library is pinned with the app, never optional"),
    "env empty": by(ENV, "test_kept[nothing]", "test_kept[empty-env]"),
    "env static passthrough": by(ENV, "test_kept[static]"),
    "env substitution": by(ENV, "test_kept[one]"),
    "env several vars in one value": by(ENV, "test_kept[adjacent]"),
    "env missing": by(ENV, "test_kept[missing]"),
    "env mixed": by(ENV, "test_kept[inside-text]"),
    "env file loaded": by(ENV, "test_kept[file-plain]"),
    "env file comments": by(ENV, "test_kept[file-comment-blank-noeq]"),
    "explicit env overrides file": by(ENV, "test_kept[config-and-file-and-env]"),
    "missing env file": by(ENV, "test_kept[file-missing]"),
    "env file and substitution": by(ENV, "test_kept[file-not-seen-by-variables]"),
    "config serialised to env": by(ENV, "test_kept[config-only]"),
    "config nested": by(SUBSTITUTION, "test_it_is_resolved_in_every_field_that_a_server_sees"),
    "config with env": by(ENV, "test_config_wins_over_a_variable_of_its_name"),
    "config empty not added": by(ENV, "test_kept[config-empty]"),
    "config with env file": by(ENV, "test_kept[config-and-file-and-env]"),
}
_UTILS: Final[Group] = {
    **{
        f"replaces {what}": both(by(NAMES, "test_names_of_tools_as_clients_get_them"), reason=_ALIAS)
        for what in ("dots", "slashes", "spaces", "special chars", "mixed")
    },
    **{
        f"keeps {what}": by(NAMES, "test_names_of_tools_as_clients_get_them")
        for what in ("hyphens", "underscores", "alnum", "case")
    },
    "empty": by(NAMES, "test_refused[alias-cdb6fd]"),
}
_CONTENT: Final[Group] = {
    **{
        f"{kind} {what}": by(PARTS, _KEPT)
        for kind, whats in {
            "Text": ("create", "frozen", "empty"),
            "Image": ("create", "various mime"),
            "Audio": ("create", "various mime"),
            "Binary": ("create", "optional fields", "with uri"),
        }.items()
        for what in whats
    },
    "Result success factory": by(PARTS, "TestModels::test_a_success"),
    "Result without metadata": by(PARTS, "TestModels::test_a_success"),
    "Result empty content": by(PARTS, "TestModels::test_a_success"),
    "Result error factory": by(PARTS, "TestModels::test_an_error"),
    "Result with metadata": by(PARTS, "TestModels::test_a_success", "TestModels::test_an_error"),
    "Result multiple blocks": by(PARTS, "TestModels::test_a_success"),
    "Result frozen": by(PARTS, "TestModels::test_a_success"),
}
_MODEL: Final[Group] = {
    "valid stdio": by(EXAMPLES, "test_stdio"),
    "config optional": by(CONFIG, "test_kept[nulls-for-optionals]"),
    "config any dict": by(ENV, "test_kept[config-only]"),
    "stdio requires command": by(CONFIG, "test_kept[stdio-command-null]"),
    "sse, websocket, http require url": by(CONFIG, "test_every_transport_but_stdio_needs_a_url"),
    "valid sse": by(EXAMPLES, "test_sse"),
    "valid websocket": by(EXAMPLES, "test_websocket"),
    "valid http": by(EXAMPLES, "test_http"),
    "rejects remote http": by(CONFIG, "test_kept[url-http-remote]", "test_mended[url-localhost-evil]"),
    "allows localhost http": by(CONFIG, "test_kept[url-localhost]"),
    "allows 127.0.0.1 http": by(CONFIG, "test_kept[url-127]"),
    "allows ipv6 localhost http": by(URLS, "test_legal_urls"),
    "allows https": by(CONFIG, "test_kept[http-min]"),
    "allows wss": both(by(CONFIG, "test_kept[websocket-min]"), by(URLS, "test_websockets")),
    "allows ws": both(
        by(CONFIG, "test_kept[websocket-ws-localhost]", "test_mended[websocket-ws-remote]"),
        reason="to this machine only: plain text does not leave it",
    ),
    "request_timeout positive": by(CONFIG, "test_kept[timeout-negative]"),
    "defaults": by(CONFIG, "test_kept[stdio-args]"),
    "allowed commands npx, uvx, docker": by(
        GUARD, "test_normal_use_is_not_refused", "test_a_tool_entry_never_takes_more_than_the_three"
    ),
    "command enum rejects others": by(CONFIG, "test_kept[command-node]", "test_kept[command-injection]"),
    "transport enum rejects others": by(CONFIG, "test_kept[transport-unknown]"),
    "env_file accepted": by(CONFIG, "test_an_env_file_of_either_spelling_is_read"),
    "encoding accepted": by(MODEL, "test_encodings"),
    "timeout, sse_read_timeout optional": by(CONFIG, "test_kept[nulls-for-optionals]"),
    "timeout, sse_read_timeout accepted": both(
        by(EXAMPLES, "test_sse"), by(MODEL, "test_a_connection_has_its_own_time")
    ),
}
_ENV_LOADER: Final[Group] = {
    "existing var": by(ENV, "test_kept[one]"),
    "multiple": by(ENV, "test_kept[adjacent]"),
    "missing raises": by(ENV, "test_kept[missing]"),
    "none unchanged": by(ENV, "test_kept[static]"),
    "pattern matching": by(ENV, "test_kept[dollar-without-braces]", "test_kept[unclosed]"),
    "empty string": by(SUBSTITUTION, "test_what_becomes_of_it"),
    "special chars": by(SUBSTITUTION, "test_each_variable_is_replaced_and_nothing_else"),
    "case-sensitive": by(ENV, "test_kept[case-matters]"),
    "yaml format": by(EXAMPLES, "test_sse", "test_sse_without_its_token"),
    "spaces in value": by(SUBSTITUTION, "test_a_value_with_blanks_stays_one_argument"),
    "adjacent vars": by(ENV, "test_kept[adjacent]"),
    "ignores nested patterns": by(ENV, "test_kept[not-recursive]"),
}
_BRIDGE: Final[Group] = {
    "single tool keyed by name, shape, command a string": by(EXAMPLES, "test_stdio"),
    "two tools independent": by(EXAMPLES, "test_all_in_one_file_among_tools_of_other_types"),
    "env substitution, file, override, config JSON": by(ENV, "test_kept[config-and-file-and-env]"),
    "sse and websocket skipped with a warning": both(
        by(EXAMPLES, "test_sse", "test_websocket"), reason=_NOT_IMPLEMENTED
    ),
    "mixed returns only stdio": both(
        by(EXAMPLES, "test_all_in_one_file_among_tools_of_other_types"), reason=_NOT_IMPLEMENTED
    ),
    "empty list": by(COMMANDS, "test_list_of_nothing"),
    "command None is npx": both(
        by(CONFIG, "test_a_server_alone_says_its_program", "test_a_server_that_could_be_anything_does_not"),
        reason="only where the form of the name tells it, with a warning",
    ),
    "no args is []": both(
        by(CONFIG, "test_otherwise[args-empty]"),
        reason="npx without a package is refused: it would start a shell",
    ),
    "no env omits the key": by(ENV, "test_kept[nothing]"),
}
_AGENTS: Final[Group] = {
    "stdio command and args": by(PROCESSES, "test_arguments_arrive_whole"),
    "relative args against the base folder": not_ours(
        "arguments go to the program as they stand; it is started in the app's folder, as in other MCP hosts"
    ),
    "stdio env": by(PROCESSES, "test_child_sees_only_the_safe_environment"),
    "sse url and header": by(EXAMPLES, "test_sse"),
    "http url and header": by(EXAMPLES, "test_http"),
    "websocket skipped and breaks no others": both(
        by(STREAMS, "test_websocket_server"), reason=_NOT_IMPLEMENTED
    ),
    "allowed_tools filter": both(
        by(POLICY, "test_deny_wins_and_allow_is_a_limit"),
        by(MODEL, "test_disabled_tools_are_trimmed"),
        reason="what may be used is said by disabled_tools and by the policy, not by `config`",
    ),
    "allowed_tools none": by(POLICY, "test_without_one_everything_is_allowed"),
    "empty": by(COMMANDS, "test_list_of_nothing"),
}
_HELPERS: Final[Group] = {
    "save agent and global files": both(
        by(EDITING, "test_every_form_of_the_file", "test_a_projects_own_list"), reason=_NO_EDITOR
    ),
    "duplicate detection": by(LOADING, "test_names_that_fall_together_are_refused"),
    "add": not_ours(_NO_EDITOR),
    "remove": not_ours(_NO_EDITOR),
    "list agent and global": by(COMMANDS, "test_list_names_faults_and_asks_nobody"),
    "agent entry over the global one": by(LOADING, "test_a_project_lies_over_the_global_scope"),
}

#: File of the original -> (how many tests the original has, its names or groups of them).
HOLODECK: Final[Mapping[str, tuple[int, Group]]] = {
    "tests/unit/tools/mcp/test_config.py": (21, _CONFIG),
    "tests/unit/tools/mcp/test_errors.py": (9, _ERRORS),
    "tests/unit/tools/mcp/test_factory.py": (24, _FACTORY),
    "tests/unit/tools/mcp/test_utils.py": (10, _UTILS),
    "tests/unit/tools/mcp/test_content.py": (17, _CONTENT),
    "tests/unit/models/test_tool_models.py": (33, _MODEL),
    "tests/unit/config/test_env_loader.py": (12, _ENV_LOADER),
    "tests/unit/lib/backends/test_mcp_bridge.py": (16, _BRIDGE),
    "tests/unit/lib/backends/test_openai_agents_mcp.py": (12, _AGENTS),
    "test_mcp_helpers.py": (35, _HELPERS),
}
