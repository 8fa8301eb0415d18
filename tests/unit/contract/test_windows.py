"""Windowed mode as contracts declare it, calls ask for it, and clients are told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shared.contract.envelope import CallPlan, parse, plan
from shared.contract.findings import Severity
from shared.contract.tool import Checked, ContractTool, check_contract
from shared.errors import ResultError
from shared.jobs import answers, window_moves
from shared.jobs.window import Window
from shared.tool.binding import envelope_schema, published_result_schema
from shared.tool.spec import JsonObject
from tests.unit.contract.pptb import write_tool
from tests.unit.jobs.test_keys_and_rows import a_job

MINUTE = 60_000
TOPIC = {"properties": {"id": {"type": "string"}}, "required": ["id"]}


def config(topic: JsonObject | None = TOPIC, **agents: Any) -> JsonObject:
    invocation: JsonObject = {"version": "1.0.0"} | ({} if topic is None else {"returnTopic": topic})
    return {"invocation": invocation, "agents": {"version": "1.0.0", "invokable": True, **agents}}


def check(folder: Path, **agents: Any) -> Checked:
    return check_contract(write_tool(folder / "picker", config(**agents), page=True))


def tool(folder: Path, **agents: Any) -> ContractTool:
    found = check(folder, **agents)
    assert found.errors == []
    assert found.tool is not None
    return found.tool


def planned(made: ContractTool, raw: Any = None, **limits: int) -> CallPlan:
    given = {"max_timeout_ms": 30 * MINUTE, "inline_timeout_ms": 3 * MINUTE, **limits}
    return plan(made.spec, parse(raw), **given)


class TestTime:
    def test_a_person_has_a_quarter_of_an_hour_where_nobody_says_otherwise(self, tmp_path: Path) -> None:
        how = planned(tool(tmp_path))
        assert (how.execution_mode, how.timeout_ms, how.timeout_asked) == ("windowed", 15 * MINUTE, False)
        assert planned(tool(tmp_path), window_timeout_ms=MINUTE).timeout_ms == MINUTE

    def test_the_call_wins_then_the_window_then_the_tool(self, tmp_path: Path) -> None:
        made = tool(tmp_path, timeoutMS=2 * MINUTE, window={"timeoutMS": 5 * MINUTE})
        assert planned(made).timeout_ms == 5 * MINUTE
        how = planned(made, {"timeoutMs": 1_500.9})
        assert (how.timeout_ms, how.timeout_asked) == (1_500, True)
        assert planned(tool(tmp_path / "b", timeoutMS=2 * MINUTE)).timeout_ms == 2 * MINUTE

    def test_too_long_is_cut_at_what_the_app_allows_anything(self, tmp_path: Path) -> None:
        made = tool(tmp_path)
        assert planned(made, {"timeoutMs": 1e12}).timeout_ms == 30 * MINUTE
        assert planned(made, {"timeoutMs": 1e12}, window_timeout_ms=90 * MINUTE).timeout_ms == 90 * MINUTE

    def test_a_headless_call_of_the_same_tool_keeps_its_own(self, tmp_path: Path) -> None:
        folder = write_tool(
            tmp_path / "t",
            config(timeoutMS=MINUTE, window={"timeoutMS": 9 * MINUTE}),
            page=True,
            entry="def invokeHeadless(input, context): ...",
        )
        made = check_contract(folder).tool
        assert made is not None
        assert planned(made, {"executionMode": "headless"}).timeout_ms == MINUTE
        assert planned(made).timeout_ms == 9 * MINUTE


def test_a_window_is_given_connections_but_no_token(tmp_path: Path) -> None:
    how = planned(tool(tmp_path), {"authToken": "sentinel", "connectionName": "Dev"})
    assert (how.auth_token, how.token_unused, how.connections) == (None, True, ("Dev",))
    assert "sentinel" not in repr(how)


class TestDeclaring:
    @pytest.mark.parametrize(
        ("window", "said"),
        [
            ([], "$.agents.window: must be a JSON object, got array"),
            (
                {"timeoutMS": 0},
                "$.agents.window.timeoutMS: must be a number of milliseconds from 1 to 86400000",
            ),
            ({"timeoutMS": 86_400_001}, "a day is the longest"),
            ({"apiMethods": "dataverseAPI.update"}, "$.agents.window.apiMethods: must be an array"),
            ({"apiMethods": [1]}, "$.agents.window.apiMethods[0]: must be an API method"),
            ({"apiMethods": ["dataverseAPI.updat"]}, "did you mean 'dataverseAPI.update'?"),
            ({"apiMethods": ["update"]}, "$.agents.window.apiMethods[0]: must be an API method"),
            ({"apiMethods": ["dataverseAPI.iterateQuery"]}, "must be an API method"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_place(self, tmp_path: Path, window: Any, said: str) -> None:
        assert said in "; ".join(check(tmp_path, window=window).errors)

    @pytest.mark.parametrize(
        ("window", "said"),
        [
            ({"timeout": 1}, "'timeout' is not known"),
            ({"apiMethods": ["dataverseAPI.queryData"]}, "only reads: every window may call it"),
            ({"apiMethods": ["dataverseAPI.update"] * 2}, "names 'dataverseAPI.update' again"),
        ],
    )
    def test_what_does_nothing_is_a_warning(self, tmp_path: Path, window: Any, said: str) -> None:
        found = check(tmp_path, window=window)
        assert found.errors == []
        assert said in "; ".join(found.texts(Severity.WARNING))

    def test_it_means_nothing_without_a_window(self, tmp_path: Path) -> None:
        folder = write_tool(tmp_path / "t", config(window={}), entry="def invokeHeadless(input, context): ...")
        found = check_contract(folder)
        assert "$.agents.window: has no effect" in "; ".join(found.texts(Severity.WARNING))

    def test_a_page_that_leads_out_of_the_folder_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.html").write_text("<html></html>")
        folder = write_tool(tmp_path / "t", config(executionModes=["windowed"]))
        (folder / "ui").mkdir()
        (folder / "ui" / "index.html").symlink_to(tmp_path / "elsewhere.html")
        assert "there is no ui/index.html" in "; ".join(check_contract(folder).errors)

    def test_both_are_offered_and_the_page_is_known(self, tmp_path: Path) -> None:
        folder = write_tool(
            tmp_path / "t", config(), page=True, entry="def invokeHeadless(input, context): ..."
        )
        made = check_contract(folder).tool
        assert made is not None
        assert made.spec.rules.execution_modes == ("windowed", "headless")
        assert made.page == folder / "ui"
        (folder / "ui" / "index.html").unlink()
        headless = check_contract(folder).tool
        assert headless is not None
        assert headless.page is None


class TestPublished:
    def test_the_result_schema_takes_all_that_a_call_may_be_answered_with(self, tmp_path: Path) -> None:
        made = tool(tmp_path, modes=["one-way", "two-way"])
        schema = published_result_schema(made.spec)
        assert schema is not None
        assert schema["type"] == "object"
        valid = Draft202012Validator(schema).is_valid
        job = a_job(window=Window(), execution_mode="windowed")
        assert valid({"id": "1"})
        assert valid(window_moves.no_result(job))
        assert valid(answers.acceptance(job, ticket="x", wait_limit_ms=5).structured)
        assert not valid({"status": "no_result"})
        assert not valid({})

    def test_a_tool_without_a_window_does_not_speak_of_no_result(self, tmp_path: Path) -> None:
        folder = write_tool(tmp_path / "t", config(), entry="def invokeHeadless(input, context): ...")
        made = check_contract(folder).tool
        assert made is not None
        schema = published_result_schema(made.spec)
        assert schema is not None
        assert not Draft202012Validator(schema).is_valid(window_moves.no_result(a_job(window=Window())))
        assert "window" not in envelope_schema(made.spec)["properties"]["executionMode"]["description"]

    def test_the_options_say_what_a_window_is_and_how_long_it_waits(self, tmp_path: Path) -> None:
        properties = envelope_schema(tool(tmp_path).spec)["properties"]
        assert properties["executionMode"]["enum"] == ["windowed"]
        assert "windowed opens the tool's page for a person" in properties["executionMode"]["description"]
        assert "default" not in properties["timeoutMs"]
        assert "A window is not given it" in properties["authToken"]["description"]
        other = envelope_schema(tool(tmp_path / "b", window={"timeoutMS": MINUTE}).spec)["properties"]
        assert other["timeoutMs"]["default"] == MINUTE


class TestReturned:
    def test_every_fault_of_it_is_told(self, tmp_path: Path) -> None:
        topic = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]}
        made = tool(tmp_path, topic=topic)
        assert made.check_returned({"b": 1}).structured == {"b": 1}
        with pytest.raises(ResultError) as error:
            made.check_returned({"a": 1})
        assert error.value.message.startswith("Output validation failed: ")
        assert "$.a: expected string" in error.value.message
        assert "$.b: required field is missing" in error.value.message

    def test_without_a_return_topic_any_object_will_do(self, tmp_path: Path) -> None:
        made = tool(tmp_path, topic=None)
        assert made.check_returned({"any": [1]}).structured == {"any": [1]}
        with pytest.raises(ResultError, match="expected object, got array"):
            made.check_returned([1])

    def test_the_headless_code_is_not_run_for_it(self, tmp_path: Path) -> None:
        folder = write_tool(tmp_path / "t", config(), page=True, entry="raise RuntimeError('loaded')")
        made = check_contract(folder).tool
        assert made is not None
        assert made.check_returned({"id": "1"}).structured == {"id": "1"}
