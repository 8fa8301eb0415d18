"""Calls that broke off in the middle: what they left is mended, or removed, and never runs unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn

import pytest

from shared import ids
from shared.jobs import keys
from shared.jobs.model import utc_now
from shared.jobs.reaper import Reaper
from shared.jobs.store import KeyRow
from shared.jobs.table_store import TableJobStore
from shared.tool import Context
from tests.integration.faults.engine import Engine
from tests.integration.faults.support import Site
from tests.support.fault_plan import refuse
from tests.support.fault_proxy import FaultProxy

pytestmark = pytest.mark.integration


class KilledError(BaseException):
    """The process ends here: nothing of its own cleans up."""


class CutOffBeforeKey(TableJobStore):
    def take_key(self, row: KeyRow) -> NoReturn:
        raise KilledError


class CutOffBeforeMessage(TableJobStore):
    def send(self, job_id: str, *, delay: int = 0) -> NoReturn:
        raise KilledError


@pytest.fixture
def runs() -> list[str]:
    return []


@pytest.fixture
def work(runs: list[str]) -> Callable[..., str]:
    def work(text: str = "", *, context: Context) -> str:
        runs.append(str(context.job_id))
        return "done"

    return work


@pytest.fixture
def reap(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A run of the timer, for which every message of a pending job is overdue."""
    monkeypatch.setattr("shared.jobs.repair.RESEND_AFTER", timedelta(0))

    def run() -> None:
        def on_poison(body: str) -> None:
            raise AssertionError("nothing was given up")

        Reaper(site.store, retention=timedelta(days=7), budget=1_000, on_poison=on_poison).run()

    return run


def deliver_all(site: Site, engine: Engine) -> list[str]:
    """Delivers every message; the jobs that they were for."""
    found = []
    for message in site.take_messages():
        found.append(str(json.loads(message)["jobId"]))
        engine.deliver(found[-1])
    return found


@pytest.mark.parametrize("key", [None, "k"])
def test_a_job_whose_message_could_not_be_sent_is_accepted_and_sent_by_the_reaper(
    site: Site, work: Callable[..., str], runs: list[str], reap: Callable[[], None], key: str | None
) -> None:
    with FaultProxy(site.azurite.ports) as proxy:
        rule = proxy.arm(refuse(403), "queue POST", probability=1)
        with site.store_by(proxy.connection_string) as store:
            answer = Engine(store, work).call(key)
    assert rule.fired
    assert answer.is_error is False
    accepted = answer.structured
    assert (accepted["status"], accepted["jobStatus"]) == ("accepted", "pending")
    assert site.messages() == 0

    engine = Engine(site.store, work)
    reap()
    assert deliver_all(site, engine) == [accepted["jobId"]]
    assert engine.status(accepted["jobId"])["result"] == {"result": "done"}
    assert runs == [accepted["jobId"]]
    site.check_remains()


def test_a_job_that_was_sent_again_for_nothing_runs_once(
    site: Site, work: Callable[..., str], runs: list[str], reap: Callable[[], None]
) -> None:
    engine = Engine(site.store, work)
    job_id = engine.submit().job_id
    reap()
    reap()
    assert engine.job(job_id).sends == 3
    assert deliver_all(site, engine) == [job_id] * 3
    assert runs == [job_id]
    site.check_remains()


def test_a_call_cut_off_before_its_message_leaves_a_job_that_runs_once(
    site: Site, work: Callable[..., str], runs: list[str], reap: Callable[[], None]
) -> None:
    with site.store_by(kind=CutOffBeforeMessage) as store, pytest.raises(KilledError):
        Engine(store, work).submit(key="k")
    (left,) = site.jobs()
    engine = Engine(site.store, work)
    # The caller, who has heard nothing, asks again.
    assert engine.submit(key="k").job_id == left.job_id
    assert site.messages() == 0
    reap()
    assert deliver_all(site, engine) == [left.job_id]
    assert engine.submit(key="k").job_id == left.job_id
    assert runs == [left.job_id]
    site.check_remains()


def test_a_call_cut_off_before_its_key_leaves_a_job_that_never_runs(
    site: Site, work: Callable[..., str], runs: list[str], reap: Callable[[], None]
) -> None:
    with site.store_by(kind=CutOffBeforeKey) as store, pytest.raises(KilledError):
        Engine(store, work).submit({"text": "x" * 50_000}, key="k")
    assert len(site.jobs()) == 1
    reap()
    assert (site.jobs(), site.messages(), runs) == ([], 0, [])
    assert [where for where, _ in site.stored() if where.startswith("jobs/")] == [
        where for where, _ in site.stored() if where.startswith("jobs/state/")
    ]
    site.check_remains()


def test_a_job_cut_off_before_its_key_does_not_take_it_from_a_later_call(
    site: Site, work: Callable[..., str], runs: list[str], reap: Callable[[], None]
) -> None:
    with site.store_by(kind=CutOffBeforeKey) as store, pytest.raises(KilledError):
        Engine(store, work).submit(key="k")
    engine = Engine(site.store, work)
    winner = engine.submit(key="k")
    assert len(site.jobs()) == 2
    reap()
    assert [job.job_id for job in site.jobs()] == [winner.job_id]
    assert set(deliver_all(site, engine)) == {winner.job_id}
    assert engine.submit(key="k").job_id == winner.job_id
    assert runs == [winner.job_id]
    site.check_remains()


def test_a_body_without_a_job_is_removed_once_no_call_can_be_about_to_make_it(
    site: Site, work: Callable[..., str], reap: Callable[[], None]
) -> None:
    now = int(utc_now().timestamp() * 1000)
    old, young = ids.new_id(now - 2 * 3_600_000), ids.new_id(now)
    for job_id in (old, young):
        site.store.put_blob(keys.input_blob(job_id), b"sealed")
    site.store.put_blob(keys.result_blob(old, 1), b"{}")
    job_id = Engine(site.store, work).submit({"text": "x" * 50_000}).job_id
    reap()
    assert site.store.blob_page("").names == tuple(sorted(map(keys.input_blob, (young, job_id))))
