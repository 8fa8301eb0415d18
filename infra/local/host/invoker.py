"""Running functions: invocation ids, functionTimeout, output bindings, the log lines."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, Protocol

from infra.local.host.errors import ExitCode
from infra.local.host.values import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.local.host.values import Binding, Function, HttpCall, Value
    from infra.local.host.worker import Worker

logger = logging.getLogger("host.functions")


class OutputSender(Protocol):
    """What writes the values of output bindings."""

    async def send(self, binding: Binding, value: Value, data: Mapping[str, Any]) -> None:
        """Write one value; ``data`` is the trigger's binding data for ``{name}`` expressions."""
        ...


class Invoker:
    """Runs functions on the worker. Must be used on the event loop.

    ``timeout`` is functionTimeout in seconds, None for none. A thread cannot be killed, so on a timeout the
    process ends with ExitCode.FUNCTION_TIMEOUT: the real host restarts the worker process, which co-running
    invocations do not survive either. The watch is a thread because a function that blocks the loop must be
    caught too.
    """

    def __init__(self, worker: Worker, outputs: OutputSender, timeout: float | None) -> None:
        self._worker = worker
        self._outputs = outputs
        # invocation id -> (start, function name)
        self._running: dict[str, tuple[float, str]] = {}
        if timeout is not None:
            threading.Thread(target=self._watch, args=(timeout,), name="function-timeout", daemon=True).start()

    async def run(
        self,
        function: Function,
        value: Value | HttpCall,
        metadata: Mapping[str, Value] | None = None,
        *,
        inputs: Sequence[tuple[str, Value | None]] = (),
        data: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> Outcome:
        """Invoke a function with its trigger's ``value`` and send its outputs.

        ``metadata`` is the trigger metadata for the worker, ``inputs`` the other input bindings' values,
        ``data`` the binding data. With a ``reason`` start and end are logged at INFO, without one (the hot
        paths) at DEBUG. A failing output binding fails the invocation, as in the real host.
        """
        trigger = function.trigger
        assert trigger is not None  # the catalogue keeps functions with a trigger only
        invocation_id = str(uuid.uuid4())
        started = time.monotonic()
        level = logging.DEBUG if reason is None else logging.INFO
        if logger.isEnabledFor(level):
            why = f"Reason='{reason or 'This function was programmatically called via the host APIs.'}'"
            logger.log(level, "Executing 'Functions.%s' (%s, Id=%s)", function.name, why, invocation_id)
        self._running[invocation_id] = (started, function.name)
        try:
            outcome = await self._worker.invoke(
                function, invocation_id, [(trigger.name, value), *inputs], metadata or {}
            )
            if outcome.ok and function.outputs:
                outcome = await self._send_outputs(function, outcome, data or {})
        finally:
            del self._running[invocation_id]
        self._log_end(function, invocation_id, outcome, level, time.monotonic() - started)
        return outcome

    async def _send_outputs(self, function: Function, outcome: Outcome, data: Mapping[str, Any]) -> Outcome:
        values = dict(outcome.outputs)
        if outcome.returned is not None:
            values.setdefault("$return", outcome.returned)
        try:
            for binding in function.outputs:
                if binding.type != "http" and binding.name in values:
                    await self._outputs.send(binding, values[binding.name], data)
        except Exception as error:  # whatever storage raises, the invocation has failed
            return Outcome(ok=False, error=f"output binding: {error!r}")
        return outcome

    def _log_end(self, function: Function, id_: str, outcome: Outcome, level: int, seconds: float) -> None:
        if outcome.ok:
            if logger.isEnabledFor(level):
                text = "Executed 'Functions.%s' (Succeeded, Id=%s, Duration=%dms)"
                logger.log(level, text, function.name, id_, seconds * 1000)
        else:
            text = "Executed 'Functions.%s' (Failed, Id=%s, Duration=%dms): %s"
            logger.error(text, function.name, id_, seconds * 1000, outcome.error)

    def _watch(self, timeout: float) -> None:
        """Thread: end the process when the oldest invocation is overdue."""
        while True:
            oldest = min(list(self._running.items()), key=lambda item: item[1][0], default=None)
            due = timeout if oldest is None else oldest[1][0] + timeout - time.monotonic()
            if oldest is not None and due <= 0:
                end_for_timeout(oldest[1][1], oldest[0], timeout)
            time.sleep(min(max(due, 0.05), 1.0))


def end_for_timeout(function: str, invocation_id: str, timeout: float) -> None:
    """Log what the real host logs and end the process at once."""
    hours, rest = divmod(timeout, 3600)
    span = f"{int(hours):02}:{int(rest // 60):02}:{int(rest % 60):02}"
    logger.error(
        "Timeout value of %s exceeded by function 'Functions.%s' (Id: '%s'). Initiating cancellation.",
        span,
        function,
        invocation_id,
    )
    logger.error(
        "A function timeout has occurred. Restarting worker process executing invocationId '%s'.", invocation_id
    )
    logging.shutdown()
    sys.stdout.flush()
    os._exit(ExitCode.FUNCTION_TIMEOUT)
