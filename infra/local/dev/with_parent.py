"""`python -m infra.local.dev.with_parent MODULE ARGUMENT …` runs MODULE, and stops it when its parent is gone.

The parent keeps the write end of this process's stdin and never writes. When it has gone, however it went, the
pipe ends: the module gets a SIGTERM, as it would have had from an orderly parent, and a while later is ended
anyway.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

_GRACE_SECONDS = 20.0


def _watch() -> None:
    # Signals are for the main thread, also where it blocks them to wait for one (`sigwait`).
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch, name="parent-watch", daemon=True).start()
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
