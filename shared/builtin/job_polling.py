"""The prompt `job_polling`: tells an agent how to run a tool as a job and how to read the job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from shared.auth import TOKEN_HEADER
from shared.builtin.tool_docs import find
from shared.errors import ToolError
from shared.tool import prompt
from shared.tool.spec import ExecutionMode, Mode, ToolSpec


def job_polling(tools: Callable[[], Iterable[ToolSpec]]) -> Callable[..., Any]:
    """The prompt."""

    @prompt(title="Run a tool as a job")
    async def job_polling(
        tool: Annotated[str | None, "The tool to run. Left out: the advice is for any tool."],
    ) -> str:
        """How to run a tool as a job that outlives the call, and how to follow it to its result."""
        if tool is None:
            return instructions(None)
        found = find(tools(), tool)
        if found is None:
            known = ", ".join(sorted(spec.name for spec in tools())) or "none"
            raise ToolError(f"There is no tool '{tool[:80]}'. Known tools: {known}.")
        if ExecutionMode.HEADLESS not in found.rules.execution_modes:
            return (
                f"The tool '{found.name}' does not run as a job: its execution modes are "
                f"{', '.join(found.rules.execution_modes)}. Call it and use the result of the call."
            )
        return instructions(found)

    return job_polling


_START = {
    Mode.ONE_WAY: """\
Call the tool with its arguments and `"__pptb": {"executionMode": "headless", "mode": "one-way"}` among them.
The call is answered at once.""",
    Mode.TWO_WAY: """\
Call the tool with its arguments and `"__pptb": {"executionMode": "headless", "mode": "two-way"}` among them.
A quick job is answered with its result, and you are done.""",
}
_FOLLOW = f"""\
2. An answer with `status` "accepted" holds `jobId` and `statusUrl`: the job goes on by itself. Keep both. Do
   not call the tool again for the same work: that starts a second job (unless both calls carry the same
   `__pptb.idempotencyKey`).
3. Read the job with the tool `job_status`: `jobId`, and `waitMs` up to 25000 to wait for news in the call. A
   program may also GET `statusUrl` (a path on this server) with the header {TOKEN_HEADER}, its access token.
   A job of somebody else is not found, like one that does not exist.
4. While `status` is `pending` or `in_progress`, read again. Tell the user `progress.percent` and
   `progress.message` when they change; `logs` has the details. If the result is no longer wanted, call
   `job_cancel` with the `jobId`.
5. `completed`: the data is in `result`, images and the like are in `content`. `failed`: `error` says why, and
   `errorCode` is a stable word for it, such as `timeout` or `tool_error`. Both are final. `job_list` finds jobs
   whose id was lost."""
_EITHER = """\
With `"mode": "two-way"` instead, the call itself waits a while for the result. If that is not long enough, the
answer is the same acceptance, with `waitLimitMs`: go on at 2."""
_LIMIT = """\
`__pptb.timeoutMs` sets how long one attempt of the job may take, in milliseconds; the acceptance says what was
granted."""


def instructions(spec: ToolSpec | None) -> str:
    """The text for one tool, or for any."""
    what = f"the tool '{spec.name}'" if spec else "a tool that has the execution mode 'headless'"
    modes = (Mode.ONE_WAY, Mode.TWO_WAY) if spec is None else spec.rules.modes
    start = _START[Mode.ONE_WAY if Mode.ONE_WAY in modes else Mode.TWO_WAY]
    parts = [f"Run {what} as a job, and follow it to its end.", f"1. {start}\n{_FOLLOW}"]
    if len(modes) > 1:
        parts.append(_EITHER)
    return "\n\n".join([*parts, _LIMIT])
