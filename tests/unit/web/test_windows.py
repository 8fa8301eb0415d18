"""Windows over HTTP: who gets a session, what it may do, and what hostile requests gain."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from shared import apis
from shared.apis.powerplatform import PowerPlatformApi
from shared.jobs import answers
from shared.jobs.model import Status
from shared.jobs.rows import stamp
from shared.jobs.window import new_secret
from shared.web import window_body, window_calls, window_rate, windows
from tests.support.dataverse import Wire, answer, body_of, refused, rows, target_of
from tests.unit.web.window_support import CONFIG, OTHER, TOKEN, Site, body, unknown


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


class TestSession:
    def test_a_ticket_is_exchanged_for_what_the_page_needs(self, site: Site) -> None:
        job_id, ticket = site.launched({"question": "Why?"}, connectionName="dev", timeoutMs=61_000)
        told = site.post("session", job_id, {"ticket": ticket})
        assert told.status_code == 200
        assert told.headers["Cache-Control"] == "no-store"
        found = body(told)
        job = site.job(job_id)
        assert found["context"] == {
            "question": "Why?",
            "__pptb": {
                "source": "mcp",
                "mode": "one-way",
                "correlationId": f"mcp-{job_id}",
                "timeoutMs": 61_000,
                "expectsResponse": False,
            },
        }
        assert found["tool"] == {"toolId": "asker", "toolName": "asker", "title": "Asker"}
        assert found["connections"] == [{"id": "dev", "name": "Dev", "url": "https://contoso.crm.dynamics.com"}]
        assert found["deadline"] == stamp(job.window_until)
        assert found["page"].startswith(f"/mcp/windows/{job_id}/page/")
        assert found["session"] not in found["page"]
        assert ticket not in json.dumps(found)

    def test_it_is_used_up_and_no_get_uses_it(self, site: Site) -> None:
        job_id, ticket = site.launched()
        refused_get = site.post("session", job_id, {"ticket": ticket}, method="GET")
        assert (refused_get.status_code, refused_get.headers["Allow"]) == (405, "POST")
        assert site.post("session", job_id, {"ticket": ticket}).status_code == 200
        assert site.post("session", job_id, {"ticket": ticket}).status_code == 401

    def test_every_bad_link_is_answered_with_the_same_bytes(self, site: Site) -> None:
        job_id, used = site.launched()
        site.post("session", job_id, {"ticket": used})
        other, _ = site.launched()
        answered = {
            (found.status_code, found.get_body())
            for found in (
                site.post("session", job_id, {"ticket": used}),
                site.post("session", other, {"ticket": used}),
                site.post("session", other, {"ticket": new_secret()}),
                site.post("session", unknown(), {"ticket": new_secret()}),
                site.post("session", "no-id", {"ticket": new_secret()}),
                site.post("session", other, {"ticket": "short"}),
                site.post("session", other, {"ticket": 7}),
                site.post("session", other, {"ticket": None}),
            )
        }
        assert len(answered) == 1
        ((status, text),) = answered
        assert status == 401
        assert b"used already, has expired" in text

    def test_the_owner_opens_it_with_the_token_and_nobody_else_does(self, site: Site) -> None:
        job_id, _ = site.launched()
        assert site.post("session", job_id, token=TOKEN).status_code == 200
        assert site.post("session", job_id, token=OTHER).status_code == 404
        assert site.post("session", unknown(), token=TOKEN).status_code == 404
        assert site.post("session", "no-id", token=TOKEN).status_code == 404
        for wrong in ("wrong", "", f"{TOKEN},{TOKEN}"):
            assert site.post("session", job_id, token=wrong).status_code == 401
        assert site.post("session", job_id).status_code == 401

    def test_a_wrong_token_is_refused_even_beside_a_good_ticket(self, site: Site) -> None:
        job_id, ticket = site.launched()
        assert site.post("session", job_id, {"ticket": ticket}, token="wrong").status_code == 401
        assert site.post("session", job_id, {"ticket": ticket}, token=TOKEN).status_code == 200

    def test_a_job_without_a_window_has_none(self, site: Site) -> None:
        job_id, _ = site.launched()
        site.store.write(replace(site.job(job_id), window=None))
        assert site.post("session", job_id, token=TOKEN).status_code == 404

    def test_one_that_has_ended_says_so(self, site: Site) -> None:
        job_id, session = site.opened()
        site.post("close", job_id, session=session)
        found = site.post("session", job_id, token=TOKEN)
        assert (found.status_code, body(found)["status"]) == (409, "completed")

    def test_a_page_of_another_site_can_ask_for_nothing(self, site: Site) -> None:
        """Neither a form, which is no JSON, nor a request that the browser says is another site's."""
        job_id, ticket = site.launched()
        given = {"ticket": ticket}
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"):
            assert site.post("session", job_id, given, Content_Type=kind).status_code == 415
        for origin in ("cross-site", "same-site"):
            assert site.post("session", job_id, given, Sec_Fetch_Site=origin).status_code == 403
        assert site.post("session", job_id, given, Sec_Fetch_Site="same-origin").status_code == 200

    @pytest.mark.parametrize(
        ("raw", "said"),
        [
            (b"", "is not JSON"),
            (b"{", "is not JSON"),
            (b"\xff{}", "is not JSON"),
            (b"[1]", "expected object, got array"),
            (b'{"ticket": NaN}', "is not JSON"),
            (b'{"ticket": "x", "more": 1}', "unknown field 'more'"),
            (b"[" * 4_000, "nested too deeply"),
            (b'{"ticket": ' + b"[" * 150 + b"]" * 150 + b"}", "nested deeper than 100 levels"),
        ],
    )
    def test_odd_bodies_are_refused_by_name(self, site: Site, raw: bytes, said: str) -> None:
        found = site.post("session", site.launched()[0], raw=raw)
        assert found.status_code == 400
        assert said in body(found)["error"]

    def test_large_ones_too(self, site: Site) -> None:
        job_id, session = site.opened()
        text = json.dumps({"ticket": "x" * windows.MOST_TICKET}).encode()
        assert site.post("session", job_id, raw=text).status_code == 413
        large = json.dumps({"data": {"answer": 1, "text": "x" * windows.MOST_RETURN}}).encode()
        assert site.post("give", job_id, raw=large, session=session).status_code == 413
        assert site.job(job_id).status is Status.PENDING

    def test_a_large_one_is_read_for_a_session_of_the_job_only(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing but brackets takes seconds to read: nobody may have that done without a session."""
        job_id, session = site.opened()
        _, other = site.opened()
        sizes: list[int] = []
        read = window_body.read

        def watched(request: Any, *arguments: Any) -> Any:
            assert threading.current_thread().name.startswith("large-json")  # other requests go on
            sizes.append(len(request.get_body()))
            return read(request, *arguments)

        monkeypatch.setattr(window_body, "read", watched)
        brackets = b"[" + b"[]," * windows.SMALL_BODY + b"[]]"
        for function, raw in (
            ("give", b'{"data": ' + brackets + b"}"),
            ("call", b'{"api": "dataverseAPI", "method": "queryData", "args": ' + brackets + b"}"),
        ):
            for stranger in (new_secret(), other):
                assert site.post(function, job_id, raw=raw, session=stranger).status_code == 401
            assert site.post(function, unknown(), raw=raw, session=session).status_code == 401
            assert sizes == []
            assert site.post(function, job_id, raw=raw, session=session).status_code in (400, 422)
            assert sizes == [len(raw)]
            sizes.clear()


class TestGiving:
    def test_what_fits_completes_the_job_once(self, site: Site) -> None:
        job_id, session = site.opened()
        found = site.post("give", job_id, {"data": {"answer": 2}}, session=session)
        assert (found.status_code, body(found)) == (
            200,
            {"jobId": job_id, "status": "completed", "window": "done"},
        )
        late = site.post("give", job_id, {"data": {"answer": 3}}, session=session)
        assert (late.status_code, body(late)["error"]) == (409, "The job has ended already: it is completed.")
        assert site.post("close", job_id, session=session).status_code == 409
        assert answers.result_of(site.job(job_id), site.store).structured == {"answer": 2}

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ({"answer": 0}, "$.answer: must be at least 1"),
            ({"answer": "x"}, "$.answer: expected integer"),
            ({}, "$.answer: required field is missing"),
            ([1], "expected object, got array"),
            ("text", "expected object, got string"),
            (False, "expected object, got boolean"),
        ],
    )
    def test_what_does_not_fit_is_told_and_can_be_corrected(self, site: Site, data: Any, said: str) -> None:
        job_id, session = site.opened()
        found = site.post("give", job_id, {"data": data}, session=session)
        assert found.status_code == 422
        assert said in body(found)["error"]
        assert site.job(job_id).status is Status.PENDING
        assert site.post("give", job_id, {"data": {"answer": 1}}, session=session).status_code == 200

    @pytest.mark.parametrize("way", ["close", "null"])
    def test_closing_and_null_are_no_result(self, site: Site, way: str) -> None:
        job_id, session = site.opened()
        if way == "close":
            found = site.post("close", job_id, session=session)
        else:
            found = site.post("give", job_id, {"data": None}, session=session)
        assert (found.status_code, body(found)["window"]) == (200, "closed")
        result = answers.result_of(site.job(job_id), site.store).structured
        assert result is not None
        assert (result["status"], result["correlationId"]) == ("no_result", f"mcp-{job_id}")

    def test_data_must_be_there(self, site: Site) -> None:
        job_id, session = site.opened()
        assert site.post("give", job_id, {}, session=session).status_code == 400
        assert site.job(job_id).status is Status.PENDING

    def test_without_a_session_of_this_window_all_is_refused_with_the_same_bytes(self, site: Site) -> None:
        job_id, session = site.opened()
        other, others = site.opened()
        call = {"api": "dataverseAPI", "method": "queryData", "args": []}
        for function, given in (("give", {"data": {"answer": 1}}), ("close", {}), ("call", call)):
            answered = {
                (found.status_code, found.get_body())
                for found in (
                    site.post(function, job_id, given),
                    site.post(function, job_id, given, token=TOKEN),
                    site.post(function, job_id, given, session=others),
                    site.post(function, other, given, session=session),
                    site.post(function, unknown(), given, session=session),
                    site.post(function, "no-id", given, session=session),
                    site.post(function, job_id, given, session="x"),
                    site.post(function, job_id, given, session=f"{session},{session}"),
                )
            }
            assert answered == {(401, b'{"error":"Unauthorized: valid window session required"}')}
        assert {site.job(one).status for one in (job_id, other)} == {Status.PENDING}

    def test_two_way_calls_get_what_a_person_gave(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(answers, "FIRST_POLL", 0.002)

        async def both() -> Any:
            payload = json.dumps({"name": "asker", "arguments": {}})
            calling = asyncio.create_task(site.invoker.answer(site.tool, payload))
            while not site.store.rows:
                await asyncio.sleep(0.001)
            (job_id,) = {row["jobId"] for row in site.store.rows.values() if "jobId" in row}
            session = body(await asyncio.to_thread(site.post, "session", job_id, token=TOKEN))["session"]
            await asyncio.to_thread(site.post, "give", job_id, {"data": {"answer": 5}}, session=session)
            return await calling

        found = asyncio.run(both())
        assert (found.structured, found.is_error) == ({"answer": 5}, False)

    def test_a_wait_that_ends_early_gives_the_link(self, tmp_path: Path) -> None:
        site = Site(tmp_path, TOOLBOX_MAX_WAIT_MS="10")
        found = site.call(mode="two-way").structured
        assert found is not None
        assert (found["status"], found["waitLimitMs"], found["window"]["state"]) == ("accepted", 10, "waiting")
        assert found["window"]["url"].startswith("https://tools.example.com/#window=")
        assert found["window"]["url"] in found["message"]
        job_id, _, ticket = found["window"]["url"].partition("#window=")[2].partition(".")
        assert site.post("session", job_id, {"ticket": ticket}).status_code == 200

    def test_the_link_never_believes_a_header(self, tmp_path: Path) -> None:
        site = Site(tmp_path, TOOLBOX_BASE_URL="", WEBSITE_HOSTNAME="")
        headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
        transport = {"name": "http-streamable", "properties": {"headers": headers}}
        payload = json.dumps(
            {"name": "asker", "arguments": {"__pptb": {"mode": "one-way"}}, "transport": transport}
        )
        found = asyncio.run(site.invoker.answer(site.tool, payload)).structured
        assert found is not None
        assert found["window"]["url"].startswith("/#window=")
        assert "evil" not in json.dumps(found)


class TestCalls:
    @pytest.fixture
    def wire(self, monkeypatch: pytest.MonkeyPatch) -> Wire:
        wire = Wire()
        monkeypatch.setitem(vars(apis), "dataverseAPI", wire.api)
        return wire

    def call(self, site: Site, at: tuple[str, str], method: str, *args: Any, **more: Any) -> Any:
        given = {"api": "dataverseAPI", "method": method, "args": list(args), **more}
        return site.post("call", at[0], given, session=at[1])

    def test_a_query_runs_under_the_jobs_connection(self, site: Site, wire: Wire) -> None:
        at = site.opened(connectionName="dev")
        wire.answers.append(answer({"value": rows(2)}))
        found = self.call(site, at, "queryData", "accounts?$top=2")
        assert (found.status_code, body(found)) == (200, {"value": {"value": rows(2)}})
        assert target_of(wire.request) == "accounts?$top=2"

    def test_a_method_that_the_contract_names_may_write(self, site: Site, wire: Wire) -> None:
        at = site.opened(connectionName="dev")
        wire.answers.append(answer({"accountid": "8c1f0c6e-2f4b-4d0e-9a0b-0c3c5a7d1e2f"}, 201))
        found = self.call(site, at, "create", "account", {"name": "A"})
        assert found.status_code == 200, body(found)
        assert body_of(wire.request) == {"name": "A"}

    def test_a_call_that_reads_the_power_platform_comes_back(
        self, site: Site, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By Dataverse's rule: what reads may be called, what writes only if the contract names it."""
        monkeypatch.setitem(vars(apis), "powerplatformAPI", PowerPlatformApi(wire._resolve, wire.hosts))
        at = site.opened(connectionName="dev")

        def asks(method: str, *args: Any, at: tuple[str, str] = at) -> func.HttpResponse:
            given = {"api": "powerplatformAPI", "method": method, "args": list(args)}
            return site.post("call", at[0], given, session=at[1])

        wire.answers.append(answer({"value": [{"name": "Leave requests"}]}))
        found = asks("PowerApps.Get", "environments/dev/apps?api-version=2024-10-01")
        assert (found.status_code, body(found)) == (200, {"value": {"value": [{"name": "Leave requests"}]}})
        assert (wire.request.method, str(wire.request.url)) == (
            "GET",
            "https://api.powerplatform.com/powerapps/environments/dev/apps?api-version=2024-10-01",
        )
        wire.answers.append(refused(403, "Forbidden", "not for you"))
        found = asks("PowerApps.Get", "apps")
        assert found.status_code == 422
        assert "Forbidden: not for you" in body(found)["error"]
        for verb in ("Post", "Put", "Patch", "Delete"):
            assert asks(f"PowerApps.{verb}", "apps").status_code == 403
        assert asks("PowerApp.Get", "apps").status_code == 400
        assert asks("PowerApps.Get", "https://evil.example/apps").status_code in (400, 422)
        assert asks("PowerApps.Get", "apps", at=site.opened()).status_code == 422
        assert len(wire.requests) == 2

    @pytest.mark.parametrize(
        "method", ["update", "delete", "execute", "executeBatch", "deploySolution", "createMultiple"]
    )
    def test_any_other_that_may_write_is_refused(self, site: Site, wire: Wire, method: str) -> None:
        found = self.call(site, site.opened(connectionName="dev"), method, "account", "1")
        assert found.status_code == 403
        assert "agents.window.apiMethods" in body(found)["error"]
        assert wire.requests == []

    @pytest.mark.parametrize(
        "method",
        [
            "scope",
            "_resolver",
            "__class__",
            "query_data",
            "iterateQuery",
            "constructor",
            "queryData.__call__",
            "x",
        ],
    )
    def test_what_is_no_method_is_refused(self, site: Site, wire: Wire, method: str) -> None:
        found = self.call(site, site.opened(connectionName="dev"), method)
        assert found.status_code == 400
        assert "none that a window can call" in body(found)["error"]

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"api": "toolboxAPI", "method": "x"}, "api: must be one of"),
            ({"api": "dataverseAPI"}, "method: must be a text"),
            ({"api": 1, "method": "queryData"}, "api: must be a text"),
            ({"api": "dataverseAPI", "method": "queryData", "args": {}}, "args: must be a list"),
            ({"api": "dataverseAPI", "method": "queryData", "args": [1] * 17}, "args: must be a list"),
            ({"api": "dataverseAPI", "method": "queryData", "target": []}, "target: must be"),
            ({"api": "dataverseAPI", "method": "queryData", "args": [1, 2, 3, 4]}, "too many positional"),
            ({"api": "dataverseAPI", "method": "queryData", "args": []}, "missing a required argument"),
        ],
    )
    def test_odd_calls_are_told(self, site: Site, given: Any, said: str) -> None:
        job_id, session = site.opened(connectionName="dev")
        found = site.post("call", job_id, given, session=session)
        assert found.status_code == 400
        assert said in body(found)["error"]

    def test_headers_are_not_taken_from_a_page(self, site: Site, wire: Wire) -> None:
        """`MSCRMCallerID` would act for somebody else."""
        at = site.opened(connectionName="dev")
        found = self.call(site, at, "queryData", "accounts", None, {"MSCRMCallerID": "x"})
        assert found.status_code == 403
        assert wire.requests == []

    def test_a_refusal_of_the_service_is_told_without_secrets(self, site: Site, wire: Wire) -> None:
        at = site.opened({"apiKey": "sentinel-of-a-key"}, connectionName="dev")
        wire.answers.append(refused(400, "0x1", "no such column: sentinel-of-a-key"))
        found = self.call(site, at, "queryData", "accounts?$select=x")
        assert found.status_code == 422
        assert "no such column" in body(found)["error"]
        assert "sentinel" not in body(found)["error"]

    def test_an_answer_that_is_too_large_is_told(
        self, site: Site, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(window_calls, "MOST_ANSWER", 100)
        at = site.opened(connectionName="dev")
        wire.answers.append(answer({"value": rows(50)}))
        found = self.call(site, at, "queryData", "accounts")
        assert found.status_code == 422
        assert "Ask for fewer rows" in body(found)["error"]

    def test_a_call_takes_no_longer_than_a_person_waits(
        self, site: Site, wire: Wire, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(window_calls, "CALL_SECONDS", 0.05)
        at = site.opened(connectionName="dev")

        async def never(query: str) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(window_calls, "_method", lambda name: never)
        found = self.call(site, at, "queryData", "accounts")
        assert (found.status_code, "took longer" in body(found)["error"]) == (422, True)

    def test_without_a_connection_only_helpers_work(self, site: Site) -> None:
        at = site.opened()
        found = self.call(site, at, "queryData", "accounts")
        assert (found.status_code, "has no connection" in body(found)["error"]) == (422, True)
        assert self.call(site, at, "buildLabel", "Name").status_code == 200

    def test_after_the_end_nothing_is_called(self, site: Site, wire: Wire) -> None:
        at = site.opened(connectionName="dev")
        site.post("close", at[0], session=at[1])
        assert self.call(site, at, "queryData", "accounts").status_code == 409
        assert wire.requests == []

    def test_one_window_that_asks_too_often_waits_and_another_does_not(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(window_rate, "BURST", 3.0)
        monkeypatch.setattr(site.api, "_rates", window_rate.Rates(lambda: 0.0))
        at, other = site.opened(), site.opened()
        found = [self.call(site, at, "buildLabel", "Name") for _ in range(5)]
        assert [one.status_code for one in found] == [200, 200, 200, 429, 429]
        assert found[-1].headers["Retry-After"] == "1"
        assert self.call(site, other, "buildLabel", "Name").status_code == 200

    def test_strangers_give_a_window_that_asks_too_often_no_new_start(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor does the window itself, with sessions that it makes up, or by showing its own to another job."""
        monkeypatch.setattr(window_rate, "BURST", 3.0)
        monkeypatch.setattr(window_rate, "MOST", 2)
        at, (other, _) = site.opened(), site.launched()
        monkeypatch.setattr(site.api, "_rates", window_rate.Rates(lambda: 0.0))
        for _ in range(3):
            assert self.call(site, at, "buildLabel", "Name").status_code == 200
        for job_id, session in (
            (at[0], new_secret()),
            (unknown(), at[1]),
            (other, at[1]),
            (other, new_secret()),
        ):
            assert self.call(site, (job_id, session), "buildLabel", "Name").status_code == 401
            for function in ("give", "call"):  # nor with a body that is none
                assert site.post(function, job_id, raw=b"{", session=session).status_code == 401
            assert site.post("close", job_id, session=session).status_code == 401
            assert site.post("session", job_id, {"ticket": session}).status_code == 401
            assert site.get(job_id, f"{session}/index.html").status_code == 401
        assert self.call(site, at, "buildLabel", "Name").status_code == 429
        assert site.post("give", at[0], {"data": {"answer": 1}}, session=at[1]).status_code == 429


def test_a_repeated_call_gets_a_link_that_works(site: Site) -> None:
    job_id, ticket = site.launched(idempotencyKey="k")
    again, fresh = site.launched(idempotencyKey="k")
    assert again == job_id
    assert fresh != ticket
    assert site.post("session", job_id, {"ticket": ticket}).status_code == 401
    assert site.post("session", job_id, {"ticket": fresh}).status_code == 200


def test_a_tool_whose_page_is_gone_is_not_found(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id, session = site.opened()
    monkeypatch.setattr(site.api, "_catalogue", {})
    assert site.post("give", job_id, {"data": {"answer": 1}}, session=session).status_code == 404


def test_storage_that_is_away_is_said_and_the_window_stays(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job_id, session = site.opened()

    def away(*_: Any) -> Any:
        raise OSError("sentinel-of-an-address")

    with monkeypatch.context() as patch:
        patch.setattr(site.store, "open", away)
        found = site.post("give", job_id, {"data": {"answer": 1}}, session=session)
        assert (found.status_code, found.headers["Retry-After"]) == (503, "5")
        assert "sentinel" not in body(found)["error"]
    assert site.post("give", job_id, {"data": {"answer": 1}}, session=session).status_code == 200
    assert "could not be answered" in caplog.text


def test_the_contract_of_these_tests_is_windowed_only(site: Site) -> None:
    assert site.tool.spec.rules.execution_modes == ("windowed",)
    assert site.tool.spec.rules.window_methods == tuple(CONFIG["agents"]["window"]["apiMethods"])


def test_what_a_failed_call_leaves_in_the_log_holds_no_token(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(label: str) -> None:
        raise RuntimeError(f"refused: {label}")

    job_id, session = site.opened()
    monkeypatch.setattr(window_calls, "_method", lambda _: broken)
    asked = {"api": "dataverseAPI", "method": "buildLabel", "args": ["Bearer plain-words-4711"]}
    found = site.post("call", job_id, asked, session=session)
    assert found.status_code == 422
    assert "of its window has failed" in caplog.text
    assert "RuntimeError: refused: Bearer [redacted]" in caplog.text
    assert "plain-words-4711" not in caplog.text + str(body(found))
