"""The process that ends what a killed app leaves behind: it knows what runs, and asks before it forces."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.upstream.connection import watcher
from tests.support.upstream import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="has process groups, and looks into /proc")

POLITE = "import time; print('up', flush=True); time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {POLITE}"


def group(code: str) -> subprocess.Popen[str]:
    made = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert made.stdout is not None
    assert made.stdout.readline() == "up\n"
    return made


def code_of(process: subprocess.Popen[str]) -> int:
    code = process.wait(10)
    assert process.stdout is not None
    process.stdout.close()
    return code


def test_what_is_left_is_what_was_not_taken_back() -> None:
    assert watcher.watch(io.StringIO("+12\n+13\n-12\nodd\n\n+x\n+14")) == {13, 14}
    assert watcher.watch(io.StringIO("")) == set()


def test_groups_are_asked_then_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PATIENCE", 0.2)
    deaf, polite = group(DEAF), group(POLITE)
    watcher.end({deaf.pid, polite.pid})
    assert (code_of(deaf), code_of(polite)) == (-signal.SIGKILL, -signal.SIGTERM)
    watcher.end({deaf.pid})  # it is gone, and that is no error


def test_the_process_ends_with_its_input_and_takes_the_groups_along() -> None:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", watcher.__file__], stdin=subprocess.PIPE, text=True, start_new_session=True
    )
    kept, given_back = group(DEAF), group(POLITE)
    assert process.stdin is not None
    process.stdin.write(f"+{kept.pid}\n+{given_back.pid}\n-{given_back.pid}\n")
    process.stdin.flush()
    os.kill(process.pid, 0)
    process.stdin.close()
    assert code_of(kept) == -signal.SIGKILL
    assert process.wait(10) == 0
    assert is_alive(given_back.pid)
    given_back.kill()
    code_of(given_back)


def test_it_is_started_once_and_only_for_a_child() -> None:
    made = watcher.Watcher()
    made.discard(1)
    assert not made._tried
    made.add(2**22 + 1)
    made.discard(2**22 + 1)
    made.add(2**22 + 2)
    process = made._process
    assert process is not None
    started = time.monotonic()
    made.close()
    assert process.returncode == 0
    assert time.monotonic() - started < 5
    made.add(3)  # nobody is there to be told, and that is no error


def test_nothing_of_the_app_is_loaded_by_it() -> None:
    text = Path(watcher.__file__).read_text()
    assert "from shared" not in text
    assert "import shared" not in text
