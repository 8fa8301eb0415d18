"""Timer triggers in a running host."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.integration.host.support import wait_for

if TYPE_CHECKING:
    from tests.integration.host.conftest import StartHost

pytestmark = pytest.mark.integration


def test_timer_fires_on_schedule_and_never_twice_at_once(start_host: StartHost) -> None:
    host = start_host(
        "--only-triggers", "timer", env={"FIXTURE_SCHEDULE": "* * * * * *", "FIXTURE_TICK_SECONDS": "1.3"}
    )
    wait_for(lambda: len(host.events("tock")) >= 4)
    host.stop()
    events = host.events()
    assert [event["event"] for event in events] == ["tick", "tock"] * (len(events) // 2)
    tick = events[0]  # run_on_startup
    assert tick["past_due"] is False
    assert tick["schedule"] == {"AdjustForDST": True}
    assert tick["status"] == {}  # a schedule of less than a minute keeps none
    starts = [event["time"] for event in host.events("tick")]
    # A run takes 1.3 s: the second that it covers is skipped, not made up for.
    assert all(later - start > 1.5 for start, later in pairwise(starts[1:]))


def test_timer_status_and_start_by_hand(start_host: StartHost) -> None:
    host = start_host("--no-triggers", "queue", env={"FIXTURE_SCHEDULE": "0 0 0 1 1 *"})
    [first] = wait_for(lambda: host.events("tick"))
    assert first["status"]["Last"] == "0001-01-01T00:00:00+00:00"
    assert first["status"]["Next"].endswith("-01-01T00:00:00+00:00")
    assert host.client.post("/admin/functions/Tick").status_code == 202
    wait_for(lambda: len(host.events("tick")) == 2)


def test_sigterm_lets_a_run_finish(start_host: StartHost) -> None:
    host = start_host("--only-triggers", "timer", env={"FIXTURE_TICK_SECONDS": "1"})
    wait_for(lambda: host.events("tick"))
    assert host.stop() == 0
    assert host.events("tock")
