"""Stand-ins for the protobuf messages that the worker library builds and reads.

The library never imports protobuf itself: it is handed a module of message classes (``protos``). Real workers
pass generated classes; these plain ones have the same names, fields and ``WhichOneof`` where it is used, so
that neither gRPC nor protobuf has to be installed. Field names are the library's, not ours.
"""

from __future__ import annotations

from typing import Any, Final

_ONEOF_FIELDS: Final = frozenset(
    {
        "string",
        "json",
        "bytes",
        "http",
        "int",
        "double",
        "collection_bytes",
        "collection_string",
        "collection_sint64",
    }
)


class _Message:
    """A message whose fields are whatever it was built with; a field that was not set reads as None."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if not name[0].islower():  # fields only: the library probes for nested classes with try/except
            raise AttributeError(name)
        return None


class TypedData(_Message):
    """One value on the wire: exactly one field is set."""

    def WhichOneof(self, group: str) -> str | None:  # noqa: N802 - protobuf's spelling
        """Name of the field that is set; ``group`` is always ``data``."""
        return next((name for name in self.__dict__ if name in _ONEOF_FIELDS), None)


class ParameterBinding(_Message):
    """A named value: an input of the function or an output of it."""

    def WhichOneof(self, group: str) -> str | None:  # noqa: N802 - protobuf's spelling
        """``data`` always: shared memory is not used."""
        return "data"


class StatusResult(_Message):
    """Outcome of a request to the worker."""

    Failure = 0
    Success = 1


class BindingInfo(_Message):
    """A binding as indexed. Directions and data types have protobuf's numbers."""

    undefined = 0
    string = 1
    binary = 2
    stream = 3
    out = 1
    inout = 2


class SameSite:
    """Values of a cookie's SameSite attribute; ``None`` is the unset one."""

    Lax = "lax"
    Strict = "strict"
    ExplicitNone = "none"


setattr(SameSite, "None", None)  # `None` cannot be written as an attribute


class RpcHttpCookie(_Message):
    """A cookie of an HTTP answer."""

    SameSite = SameSite


class Timestamp(_Message):
    """Seconds since the epoch."""


class RpcHttp(_Message):
    """An HTTP request or answer."""


class RpcException(_Message):
    """``message`` and ``stack_trace`` of an exception in the app."""


class RpcRetryOptions(_Message):
    """A retry policy as indexed."""


class RpcFunctionMetadata(_Message):
    """A function as indexed."""


class WorkerMetadata(_Message):
    """Versions of the worker."""


class WorkerInitResponse(_Message):
    """Answer to worker_init_request."""


class FunctionMetadataResponse(_Message):
    """Answer to functions_metadata_request."""


class FunctionLoadResponse(_Message):
    """Answer to function_load_request."""


class InvocationResponse(_Message):
    """Answer to invocation_request."""


class NullableString(_Message):
    """A string that may be absent."""


class NullableBool(_Message):
    """A bool that may be absent."""


class NullableDouble(_Message):
    """A number that may be absent."""


class NullableTimestamp(_Message):
    """A time that may be absent."""


class Request(_Message):
    """Envelope of a request: the proxy worker's ``WorkerRequest`` and the messages inside it."""
