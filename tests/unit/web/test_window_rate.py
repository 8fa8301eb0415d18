"""How often one window may ask, and which windows are remembered."""

from __future__ import annotations

import pytest

from shared.web import window_rate


def test_a_window_with_a_call_under_way_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_rate, "MOST", 2)
    monkeypatch.setattr(window_rate, "AT_ONCE", 1)
    rates = window_rate.Rates(lambda: 0.0)
    with rates.running("one"):
        for other in ("two", "three", "four"):
            with rates.asking(other):
                pass
        with pytest.raises(window_rate.RateError, match="under way"), rates.running("one"):
            pass
        assert len(rates._buckets) == 2


def test_calls_at_once_are_bounded_and_rooms_come_back() -> None:
    rates = window_rate.Rates(lambda: 0.0)
    held = [rates.running("one") for _ in range(window_rate.AT_ONCE)]
    for place in held:
        place.__enter__()
    with pytest.raises(window_rate.RateError, match="under way"), rates.running("one"):
        pass
    held[0].__exit__(None, None, None)
    with rates.running("one"):
        pass


def test_tokens_come_back_with_time_and_old_windows_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(window_rate, "MOST", 2)
    rates = window_rate.Rates(lambda: now[0])
    for _ in range(int(window_rate.BURST)):
        with rates.asking("one"):
            pass
    with pytest.raises(window_rate.RateError), rates.asking("one"):
        pass
    now[0] = 0.1
    for one in ("one", "two", "three"):
        with rates.asking(one):
            pass
    assert len(rates._buckets) == 2
