"""Thirty reports of faults in MCP clients, by their numbers in the reference, and what holds each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.unit.upstream.counterparts.table import (
    COMMAND,
    EVERYTHING,
    HTTP,
    LIFECYCLE,
    LISTS,
    MESSAGES,
    MODEL,
    OWN_TIME,
    PIECES,
    POOL,
    PROCESSES,
    REFUSALS,
    REPORTS,
    SERVERS,
    SESSIONS,
    STDIO,
    STREAMS,
    SUBSTITUTION,
    TYPES,
    Counterpart,
    both,
    by,
)

#: Number -> what holds it.
ROWS: Final[Mapping[int, Counterpart]] = {
    # Timeouts, hangs, cleanup.
    1: both(
        by(OWN_TIME, "test_a_servers_own_time_wins_over_the_apps"),
        by(MODEL, "test_the_order_of_a_call_s_time_outs"),
    ),
    2: both(
        by(STDIO, "test_parallel_calls_are_not_serialised"),
        by(POOL, "test_status_waits_for_nobody"),
        by(SERVERS, "test_a_hung_call_delays_nobody"),
    ),
    3: both(by(REFUSALS, "test_refused_credentials_are_named"), by(STREAMS, "test_url_that_is_no_sse_server")),
    4: by(PROCESSES, "test_server_that_dies_in_a_call", "test_killed_between_two_calls_the_second_works"),
    5: by(HTTP, "test_stream_that_breaks_off"),
    6: both(
        by(LIFECYCLE, "test_closed_from_another_task_and_in_any_order"),
        by(STDIO, "test_many_servers_at_once_and_one_that_fails"),
        by(PROCESSES, "test_end_of_the_process_leaves_no_child"),
    ),
    7: both(
        by(MESSAGES, "test_list_changed_during_a_call_and_in_a_burst"),
        by(HTTP, "test_changed_list_is_seen_in_both_eras"),
    ),
    8: both(
        by(LISTS, "test_burst_is_one_listing_and_one_more_for_what_came_meanwhile"),
        by(MESSAGES, "test_server_that_notifies_at_each_listing"),
    ),
    9: by(MESSAGES, "test_five_megabytes_of_stderr_with_a_secret"),
    10: both(
        by(MESSAGES, "test_five_megabytes_of_stderr_with_a_secret"),
        by(PIECES, "test_tail_keeps_the_last_lines_within_its_bytes"),
        by(PROCESSES, "test_process_that_exits_at_once"),
    ),
    11: by(STDIO, "test_server_that_never_answers_the_handshake", "test_slow_start_within_its_time"),
    12: both(
        by(EVERYTHING, "test_a_job_has_its_own_time"),
        by(LIFECYCLE, "test_timeout_of_a_call_leaves_the_connection_as_it_is"),
        by(SERVERS, "test_a_hung_call_delays_nobody"),
    ),
    13: by(REPORTS, "test_bad_servers_take_no_tools_of_others_along"),
    14: both(
        by(STDIO, "test_state_is_kept_between_calls_and_failures_are_results"),
        by(SERVERS, "test_the_session_is_kept_between_calls"),
    ),
    # Transport.
    15: both(
        by(REPORTS, "test_every_name_of_streamable_http_finds_a_server_that_takes_posts_only"),
        by(TYPES, "test_every_alias_of_streamable_http"),
    ),
    16: by(
        REFUSALS,
        "test_post_500_is_no_reason_for_another_transport",
        "test_post_400_shows_what_was_said",
        "test_older_server_is_found_by_its_event_stream",
        "test_both_transports_refused_tells_what_each_said",
    ),
    17: by(SESSIONS, "test_optional_stream_may_be_missing"),
    18: both(
        by(
            SESSIONS,
            "test_session_that_is_forgotten_is_made_anew",
            "test_sessions_that_are_always_forgotten_are_tried_once_more",
        ),
        by(REFUSALS, "test_both_transports_refused_tells_what_each_said"),
    ),
    19: both(
        by(REFUSALS, "test_refused_connection_is_seen_at_once", "test_page_in_the_place_of_an_answer"),
        by(STREAMS, "test_url_that_is_no_sse_server"),
    ),
    20: by(MESSAGES, "test_bytes_that_are_no_utf8"),
    21: by(MESSAGES, "test_banner_on_stdout"),
    22: by(STDIO, "test_many_servers_at_once_and_one_that_fails"),
    23: both(
        by(REPORTS, "test_any_text_goes_to_a_server_in_python_and_back"),
        by(PROCESSES, "test_child_sees_only_the_safe_environment"),
    ),
    # Configuration, command, environment.
    24: by(
        COMMAND, "test_mended[windows-unquoted]", "test_mended[windows-with-args]", "test_mended[windows-unc]"
    ),
    25: by(PROCESSES, "test_arguments_arrive_whole"),
    26: by(COMMAND, "test_kept[command-line]", "test_an_existing_file_is_not_split"),
    27: by(
        COMMAND,
        "test_an_item_that_is_not_exactly_an_option_and_its_value_stays",
        "test_mended[item-sql]",
        "test_mended[item-json-dash]",
        "test_mended[item-header-value-dash]",
    ),
    28: both(
        by(REPORTS, "test_a_variable_in_a_header_is_sent_as_its_value_or_not_at_all"),
        by(SUBSTITUTION, "test_it_is_resolved_in_every_field_that_a_server_sees"),
    ),
    29: by(SUBSTITUTION, "test_one_unset_variable_switches_off_one_server_only"),
    30: by(SUBSTITUTION, "test_other_forms_are_errors", "test_nothing_that_looks_like_a_variable_is_left"),
}
