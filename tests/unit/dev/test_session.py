"""What `dev.py run` does when the host ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local.dev import processes, session
from infra.local.dev.console import DevError
from infra.local.host.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator


class _FakeHost:
    """Is ready at once, and ends with the next of the codes."""

    codes: Iterator[int]
    ports: list[int]

    def __init__(self, port: int, **_: Any) -> None:
        self.ports.append(port)
        self.port = port or 4711
        self.echo = False
        self.process = self
        self._code = next(self.codes)

    def wait_until_ready(self) -> None:
        pass

    def left_out(self) -> list[str]:
        return []

    def wait(self) -> int:
        return self._code

    def stop(self) -> None:
        pass

    def error(self, message: str) -> DevError:
        return DevError(message)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[session.Session]:
    monkeypatch.setattr(session, "HostProcess", _FakeHost)
    monkeypatch.setattr(processes, "kill_on_signals", lambda: None)
    monkeypatch.setattr(_FakeHost, "ports", [], raising=False)
    made = session.Session({})
    yield made
    made.stop()


def test_host_that_outran_function_timeout_is_started_again_at_its_address(
    running: session.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = iter([ExitCode.FUNCTION_TIMEOUT, ExitCode.FUNCTION_TIMEOUT, ExitCode.START_FAILED])
    monkeypatch.setattr(_FakeHost, "codes", codes, raising=False)
    running.start_host(0, auth=False)
    with pytest.raises(DevError, match="ended with exit code 1"):
        running.serve(auth=False)
    assert _FakeHost.ports == [0, 4711, 4711]
    assert capsys.readouterr().out.count("functionTimeout") == 2


def test_other_storage_is_left_alone(running: session.Session, capsys: pytest.CaptureFixture[str]) -> None:
    running.start_storage("DefaultEndpointsProtocol=https;AccountName=real", temp_data=False)
    assert "Azurite is not started" in capsys.readouterr().out


def test_settings_that_keep_the_app_from_starting_are_told_before_it_is_started(
    running: session.Session,
) -> None:
    wrong = {"CONNECTIONS": "{", "TOOLBOX_MAX_WAIT_MS": "soon", "TOOLBOX_PROJECTS": "{"}
    with pytest.raises(DevError) as caught:
        running.check_settings({"AzureWebJobsStorage": session.EMULATOR, **wrong})
    lines = caught.value.message.splitlines()
    assert sorted(line.split(" ")[0] for line in lines) == sorted(wrong)
    assert "local.settings.json" in caught.value.hint
    assert caught.value.details == ""
    assert running.check_settings({"AzureWebJobsStorage": session.EMULATOR, "CONNECTIONS": "[]"}).uses_emulator
