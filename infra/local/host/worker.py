"""The one place that knows the worker library (azure-functions-runtime): load an app, invoke a function.

The library keeps its registry in module globals, so a process hosts one app, once. It offers two entries for an
invocation: a native one that takes values directly and the one that production uses on Python 3.13, which
reads protobuf messages. Both are behind ``Worker.invoke`` and a test holds them to the same answers.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import azure_functions_runtime
from azure_functions_runtime import native_invocation
from azure_functions_runtime.http_v2 import HttpV2Registry

from infra.local.host import protos
from infra.local.host.codec import from_datum, from_typed_data, to_datum, to_typed_data
from infra.local.host.errors import AppError
from infra.local.host.values import Binding, Direction, Function, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from infra.local.host.values import HttpCall, Value

# The library has no annotations worth checking against.
library: Any = azure_functions_runtime
native_entry: Any = native_invocation.invocation_request_native
http_v2_enabled: Any = HttpV2Registry.http_v2_enabled


class Entry(StrEnum):
    """Which of the library's invocation entries is used."""

    NATIVE = "native"
    PROTOBUF = "protobuf"


class Worker:
    """The loaded app. Invocations must run on the event loop that loaded it."""

    def __init__(self, functions: tuple[Function, ...], entry: Entry) -> None:
        self.functions = functions
        self._invoke = _invoke_native if entry is Entry.NATIVE else _invoke_protobuf

    @classmethod
    async def load(cls, app_dir: Path, entry: Entry = Entry.NATIVE) -> Worker:
        """Import and index the app in ``app_dir``, which must be on sys.path and be the working directory.

        Raises AppError with the worker's message and the app's traceback frames when that fails.
        """
        library.start_threadpool_executor()
        init = protos.Request(
            name="worker_init_request",
            request=protos.Request(
                worker_init_request=protos.Request(capabilities={}, function_app_directory=str(app_dir))
            ),
            properties={"host": "127.0.0.1", "protos": protos},
        )
        response = await library.worker_init_request(init)
        if response.result.status != protos.StatusResult.Success:
            raise AppError(_describe(response.result.exception))
        if http_v2_enabled():
            raise AppError(
                "This host does not support azurefunctions-extensions-http-fastapi, which the app uses."
            )
        metadata = await library.functions_metadata_request(protos.Request(request=None))
        functions = []
        for item in metadata.function_metadata_results or ():
            functions.append(_function(item))
            load = protos.Request(function_load_request=protos.Request(function_id=item.function_id))
            await library.function_load_request(protos.Request(request=load))
        return cls(tuple(functions), entry)

    async def invoke(
        self,
        function: Function,
        invocation_id: str,
        inputs: Sequence[tuple[str, Value | HttpCall | None]],
        metadata: Mapping[str, Value],
    ) -> Outcome:
        """Run a function once. Exceptions of the app come back as a failed Outcome, never as exceptions."""
        return await self._invoke(function, invocation_id, inputs, metadata)

    def stop(self) -> None:
        """Stop the thread pool; waits for threads that are still running a function."""
        library.stop_threadpool_executor()


def _function(item: Any) -> Function:
    bindings = []
    for raw in item.raw_bindings:
        fields = cast(dict[str, Any], json.loads(raw))
        bindings.append(
            Binding(
                name=str(fields.get("name", "")),
                type=str(fields.get("type", "")),
                direction=Direction(str(fields.get("direction", "IN")).upper()),
                fields=fields,
            )
        )
    return Function(id=item.function_id, name=item.name, bindings=tuple(bindings))


def _describe(error: Any) -> str:
    """The worker's message plus the traceback without the frames of import machinery and of the library."""
    if error is None:
        return "The worker could not load the app and gave no reason."
    lines = str(error.stack_trace or "").rstrip().splitlines()
    kept: list[str] = []
    skipping = False
    for line in lines:
        if line.startswith('  File "'):
            skipping = "azure_functions_runtime" in line or "<frozen importlib" in line or "/importlib/" in line
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return f"The app could not be loaded. {error.message}\n" + "\n".join(kept)


async def _invoke_native(
    function: Function,
    invocation_id: str,
    inputs: Sequence[tuple[str, Value | HttpCall | None]],
    metadata: Mapping[str, Value],
) -> Outcome:
    ok, returned, outputs, error, _ = await native_entry(
        invocation_id,
        function.id,
        [(name, to_datum(value)) for name, value in inputs],
        {name: to_datum(value) for name, value in metadata.items()},
    )
    if not ok:
        return Outcome(ok=False, error=error)
    try:
        values = [(name, from_datum(datum)) for name, datum in outputs]
        return Outcome(
            ok=True,
            returned=from_datum(returned),
            outputs=tuple((name, value) for name, value in values if value is not None),
        )
    except (TypeError, ValueError, NotImplementedError) as bad:  # as the other entry fails inside
        return Outcome(ok=False, error=repr(bad))


async def _invoke_protobuf(
    function: Function,
    invocation_id: str,
    inputs: Sequence[tuple[str, Value | HttpCall | None]],
    metadata: Mapping[str, Value],
) -> Outcome:
    message = protos.Request(
        invocation_id=invocation_id,
        function_id=function.id,
        input_data=[protos.ParameterBinding(name=name, data=to_typed_data(value)) for name, value in inputs],
        trigger_metadata={name: to_typed_data(value) for name, value in metadata.items()},
        trace_context=protos.Request(trace_parent="", trace_state="", attributes={}),
        retry_context=protos.Request(retry_count=0, max_retry_count=0, exception=None),
    )
    request = protos.Request(request=protos.Request(invocation_request=message))
    response = await library.invocation_request(request)
    if response.result.status != protos.StatusResult.Success:
        return Outcome(ok=False, error=response.result.exception.message)
    values = [(item.name, from_typed_data(item.data)) for item in response.output_data]
    return Outcome(
        ok=True,
        returned=from_typed_data(response.return_value),
        outputs=tuple((name, value) for name, value in values if value is not None),
    )


def add_to_path(app_dir: Path) -> None:
    """Put the app first on sys.path, and behind it the folder that a remote build installs packages into."""
    packages = app_dir / ".python_packages" / "lib" / "site-packages"
    if packages.is_dir():
        sys.path.insert(0, str(packages))
    sys.path.insert(0, str(app_dir))
