"""Agent Zero's tests of `mcp_handler`, its tool policy, its media, and what else belongs to its MCP side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.upstream.counterparts.table import (
    BLOCKS,
    CHANGES,
    COMMAND,
    EVERYTHING,
    GATEWAY,
    HTTP,
    LIFECYCLE,
    LOADING,
    LOCKING,
    NAMES,
    NORMALISE,
    OWN_TIME,
    PARSE,
    PARTS,
    POLICY,
    POOL,
    PUBLISH,
    REFRESH,
    SERVERS,
    SETTINGS,
    STATUS,
    STDIO,
    STORING,
    SYNC,
    TYPES,
    WEB,
    WEB_TOOLS,
    Group,
    both,
    by,
    not_ours,
)

_NO_PROMPT_TEXT: Final = "tools are published over MCP; no prompt is written that lists them"
_READ_ONLY: Final = "the configuration is the operator's file or setting, and is not written over HTTP"

_HANDLER: Final[Group] = {
    "preserves_dotted_tool_names": both(
        by(NAMES, "test_kept[qualified-a4d2f1]", "test_a_qualified_name_is_split_into_what_it_was_made_of"),
        by(SERVERS, "test_a_name_that_clients_cannot_take_has_an_alias"),
    ),
    "resolves_advertised_responses_alias": both(
        by(PUBLISH, "test_both_names_of_a_tool_are_known"),
        by(SERVERS, "test_a_tool_launches_one_by_either_name"),
    ),
    "call_tool_releases_config_lock_before_await": both(
        by(GATEWAY, "test_callers_at_once_share_one_reading"), by(SERVERS, "test_a_hung_call_delays_nobody")
    ),
    "update_initializes_outside_config_lock": by(
        GATEWAY, "test_a_changed_configuration_closes_what_is_gone_and_nobody_waits"
    ),
    "status_marks_servers_with_errors_disconnected": by(STATUS, "test_a_cached_error_means_not_connected"),
    "disabled_tools_are_hidden_from_agent_paths_but_visible_in_detail": both(
        by(PUBLISH, "test_every_locked_tool_is_an_entry_but_for_disabled_and_denied_ones"),
        by(STATUS, "test_one_server_shows_all_its_tools"),
        by(GATEWAY, "test_what_cannot_be_called_says_why"),
        by(CHANGES, "test_what_has_changed_at_the_server_is_told"),
    ),
    "local_server_accepts_manager_style_command_lines": by(
        COMMAND, "test_kept[command-line]", "test_kept[command-line-scoped]", "test_kept[command-and-items]"
    ),
    "client_call_tool_uses_server_tool_timeout": by(OWN_TIME, "test_a_servers_own_time_wins_over_the_apps"),
    "session_cleanup_timeout_does_not_mask_success": by(
        LIFECYCLE, "test_close_that_hangs_is_bounded_warned_of_and_hides_no_result"
    ),
    "isolated_operation_timeout_returns_control": by(
        LIFECYCLE, "test_request_that_cannot_be_cancelled_gives_control_back_and_ends_the_connection"
    ),
    "image_content_becomes_history_image_attachment": both(
        by(BLOCKS, "test_an_image_is_stored_and_stays_an_image"),
        by(EVERYTHING, "test_text_image_and_annotations_stay_in_their_order"),
    ),
    "audio_content_is_saved_instead_of_discarded": by(BLOCKS, "test_an_audio_is_stored_only_when_it_is_large"),
    "image_resource_blob_becomes_history_image_attachment": by(
        BLOCKS, "test_an_image_resource_is_an_image_that_names_its_resource"
    ),
    "resource_text_is_preserved": by(
        BLOCKS, "test_a_text_resource_stays_one", "test_a_resource_text_of_12000_characters_is_whole"
    ),
}
_POLICY: Final[Group] = {
    "tool_and_mcp_defaults_independent": by(STATUS, "test_own_tools_may_be_called"),
    "mcp_catalog_labels_humanized": not_ours("titles are the server's own; there is no catalogue to label"),
    "mcp_prompt_and_native_schema_omit_blocked_tool": by(
        SERVERS, "test_what_nobody_may_call_is_no_tool", "test_tool_list_shows_what_its_caller_may_call"
    ),
    "mcp_invocation_rechecks_policy_before_server_call": by(GATEWAY, "test_policy_is_asked_at_each_call"),
    "execution_rechecks_policy_after_advertised": by(SERVERS, "test_policy_decides_at_each_call"),
    "policy_loaded_once_per_surface": not_ours("it is a setting: parsed once, when the app starts"),
    "profile_policy_isolated": by(POLICY, "test_an_owner_s_gate_holds_for_that_owner"),
    "delegated_agent_uses_own_profile": both(
        by(SERVERS, "test_a_launched_call_keeps_the_callers_project_and_policy"),
        reason="a tool that launches another does so for its caller, with the caller's rights",
    ),
    "project_policy_precedes_profile": both(
        by(POLICY, "test_a_narrower_gate_gives_nothing_back"),
        reason="neither precedes: a call needs both gates",
    ),
    "unknown_ids_retained_unavailable": by(POLICY, "test_a_tool_that_is_not_there_yet_can_be_named"),
    "dotted_local_tool_keeps_local_identity": both(
        by(LOCKING, "test_an_own_tool_with_an_alias_of_ours_keeps_it"),
        by(WEB_TOOLS, "TestCall::test_a_tool_of_a_server_never_stands_in_for_an_own_one"),
    ),
}
_MEDIA: Final[Group] = {
    "data url compacts base64 and normalises mime": both(
        by(BLOCKS, "test_white_space_in_base64_is_removed"),
        by(STORING, "test_an_odd_media_type_is_no_reason_not_to_store"),
        by(PARTS, "TestBase64::test_only_the_standard_form_is_taken"),
        reason="MCP carries plain base64; a data: URL is refused",
    ),
    "decode rejects empty, invalid, oversized": both(
        by(BLOCKS, "test_data_that_cannot_be_taken_is_told_of"),
        by(STORING, "test_what_is_over_the_limit_of_a_file_is_not_even_decoded"),
    ),
    "save uses uri filename and normalised path": by(
        PARTS, "TestNames::test_a_name_is_safe_and_tells_what_it_is"
    ),
}
_RESPONSES: Final[Group] = {
    "prompt-declared names": not_ours(_NO_PROMPT_TEXT),
    "empty properties added to MCP schemas": both(
        by(NORMALISE, "test_input_schemas"), by(PUBLISH, "test_a_schema_without_properties_gets_empty_ones")
    ),
}
_OTHERS: Final[Group] = {
    "test_dirty_json (6)": by(
        PARSE,
        "test_kept[trailing-commas]",
        "test_mended[unquoted-values]",
        "test_kept[fenced]",
        "test_mended[truncated-value]",
        "test_kept[missing-comma-between-keys]",
        "test_no_message_repeats_the_text",
    ),
    "test_settings_mcp (1)": by(SETTINGS, "test_where_servers_are_configured"),
    "test_defer_lifecycle (5)": by(
        LIFECYCLE,
        "test_closed_from_another_task_and_in_any_order",
        "test_disconnect_while_it_opens",
        "test_one_who_gives_up_waiting_does_not_stop_the_others",
        "test_opening_that_hangs_is_bounded_for_all_that_wait",
        "test_session_whose_tasks_break_is_lost_not_silent",
    ),
}
_OLDER: Final[Group] = {
    "NormalizeName (4)": by(NAMES, "test_kept[server-332758]", "test_forms_of_one_word_are_one_key"),
    "DetermineServerType (6)": by(
        TYPES,
        "test_kept[type-sse-upper]",
        "test_kept[type-streaming-http]",
        "test_mended[type-stdio-with-url]",
        "test_mended[url-empty]",
        "test_mended[type-nonsense]",
        "test_kept[type-stdio-upper]",
    ),
    "IsStreamingHttp (3)": by(TYPES, "test_every_alias_of_streamable_http"),
    "NormalizeConfig (5)": by(
        PARSE,
        "test_kept[list]",
        "test_kept[map-two]",
        "test_kept[map-key-over-name]",
        "test_mended[null]",
        "test_mended[map-string-value]",
    ),
    "Singleton (3)": both(
        by(LOADING, "test_it_is_kept_until_a_file_changes"),
        by(POOL, "test_parallel_callers_share_one_connection"),
    ),
    "ToolOperations get_tools": by(
        PUBLISH, "test_every_locked_tool_is_an_entry_but_for_disabled_and_denied_ones"
    ),
    "ToolOperations has_tool": by(STATUS, "test_who_may_call_what"),
    "ToolOperations has_tool bad format": by(
        NAMES, "test_kept[qualified-cc01c3]", "test_kept[qualified-b4f682]", "test_refused[qualified-67f7a7]"
    ),
    "ToolOperations get_tool": by(WEB_TOOLS, "TestCall::test_names_are_found_as_the_mcp_front_finds_them"),
    "Status (3)": by(
        STATUS,
        "test_an_entry_has_what_the_contract_names",
        "test_a_cached_error_means_not_connected",
        "test_a_faulty_one_can_be_looked_at_and_an_unknown_one_cannot",
    ),
    "ToolsPrompt (2)": not_ours(_NO_PROMPT_TEXT),
    "ToolExecute success": by(GATEWAY, "test_a_call_goes_through_and_tells_what_it_hears"),
    "ToolExecute error flag": by(
        BLOCKS, "TestWholeResults::test_an_error_keeps_its_blocks_and_its_text_is_known"
    ),
    "ToolExecute exception": both(
        by(GATEWAY, "test_a_connection_that_is_too_slow_says_so_itself"),
        by(SERVERS, "test_a_server_that_dies_during_a_call_is_told_of"),
    ),
    "ToolExecute empty": by(BLOCKS, "TestWholeResults::test_empty_content_stays_empty"),
    "ServerUpdate serverUrl": by(TYPES, "test_mended[serverUrl]"),
    "ServerUpdate unknown keys": by(TYPES, "test_an_unknown_key_is_named_and_has_no_effect"),
    "CallTool (2)": both(
        by(STDIO, "test_a_real_server_of_the_newest_protocol", "test_tool_that_does_not_exist"),
        by(HTTP, "test_real_servers_in_both_eras"),
    ),
    "InitializeMCP (1)": by(SYNC, "test_everything_a_server_says_is_locked"),
}
_API: Final[Group] = {
    "detail success": by(STATUS, "test_one_server_shows_all_its_tools"),
    "detail missing name": by(WEB, "test_a_server_that_is_not_there_is_404"),
    "detail exception": by(WEB, "test_what_nobody_foresaw_is_500_without_its_words"),
    "log success": by(STATUS, "test_the_log_is_the_operators"),
    "log missing name": by(WEB, "test_a_server_that_is_not_there_is_404"),
    "log exception": by(WEB, "test_what_nobody_foresaw_is_500_without_its_words"),
    "apply success": both(
        by(REFRESH, "test_a_refresh_builds_anew_and_closes_what_is_configured_otherwise"), reason=_READ_ONLY
    ),
    "apply missing text": not_ours(_READ_ONLY),
    "apply exception": by(WEB, "test_what_nobody_foresaw_is_500_without_its_words"),
    "status success": by(STATUS, "test_an_entry_has_what_the_contract_names"),
    "status exception": by(WEB, "test_what_nobody_foresaw_is_500_without_its_words"),
}

#: File of the original -> (how many of its tests are of MCP, their names or groups of them).
AGENTZERO: Final[Mapping[str, tuple[int, Group]]] = {
    "tests/test_mcp_handler_multimodal.py": (14, _HANDLER),
    "tests/test_tool_policy.py": (11, _POLICY),
    "tests/test_media_artifacts.py": (3, _MEDIA),
    "tests/test_responses_tools.py": (2, _RESPONSES),
    "tests/test_dirty_json.py, test_settings_mcp.py, test_defer_lifecycle.py": (12, _OTHERS),
    "tests/helpers/test_mcp_handler.py": (39, _OLDER),
    "tests/api/test_mcp_*.py": (11, _API),
}
