"""The SDK's session, as this package needs it: raw results, its end made visible, negotiation in bounded time.

Raw results, because the app checks them itself with cached validators, because a server that sends one block of
a kind the SDK does not know must not lose its whole answer, and because checking twice costs a third of a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from mcp.client.session import ClientSession
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ClientMessageMetadata
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    DiscoverResult,
    ErrorData,
    Implementation,
    JSONRPCRequest,
    LoggingMessageNotification,
    PromptListChangedNotification,
    ToolListChangedNotification,
    UnsupportedProtocolVersionErrorData,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from shared import telemetry
from shared.upstream.connection.faults import Failure, FailureKind, NotSentError
from shared.upstream.connection.inbox import Inbox
from shared.upstream.connection.limits import PROBE_SHARE
from shared.upstream.connection.link import ListKind

if TYPE_CHECKING:
    from mcp.client.session import IncomingMessage
    from mcp.shared.dispatcher import CallOptions, ProgressFnT

    from shared.upstream.connection.link import Events, ProgressFn
    from shared.upstream.connection.transport import Streams

_CLIENT: Final = Implementation(name="toolbox-functions", version="1")
#: Seconds before a subscription that was lost is asked for again; doubled each time, up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 1.0, 60.0
#: Seconds that telling a server of a cancelled request may take.
_CANCEL_SECONDS: Final = 5.0


class _Waiter:
    """What waits for an answer, as the SDK's dispatcher knows it. Its own are made of two streams each."""

    def __init__(self, on_progress: ProgressFnT | None) -> None:
        self.on_progress = on_progress
        self.outcome: asyncio.Future[dict[str, Any] | ErrorData] = asyncio.get_running_loop().create_future()
        self.send = self

    def send_nowait(self, outcome: dict[str, Any] | ErrorData) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class _Dispatcher(JSONRPCDispatcher):
    """Sets `lost` once nothing can be received any more. `late`: told of answers that nobody waits for."""

    def __init__(self, streams: Streams, late: Callable[[int | str], None]) -> None:
        super().__init__(streams.read, streams.write)
        self._late = late
        self.lost = asyncio.Event()
        if isinstance(streams.read, Inbox):
            streams.read.resolve = self._resolve_pending

    async def ask(
        self,
        request_id: str,
        method: str,
        params: dict[str, Any],
        headers: dict[str, str] | None,
        on_progress: ProgressFnT | None,
    ) -> dict[str, Any]:
        """The same as `send_raw_request` for a request that its caller bounds and traces by itself: without the
        clock, the spans and the streams that the SDK makes for each. `request_id`: no number.
        """
        if on_progress is not None:
            params["_meta"] = {**(params.get("_meta") or {}), "progressToken": request_id}
        # All of it is of our making: nothing to check.
        message = JSONRPCRequest.model_construct(jsonrpc="2.0", id=request_id, method=method, params=params)
        waiter = self._pending[request_id] = cast("Any", _Waiter(on_progress))
        try:
            try:
                await self._write(message, ClientMessageMetadata(headers=headers) if headers else None)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise NotSentError("the connection is closed") from None
            outcome = await waiter.outcome
        except asyncio.CancelledError:
            cancel = partial(self._cancel_outbound, request_id, "caller cancelled", None)
            await self._final_write(
                cancel, shield=True, timeout=_CANCEL_SECONDS, describe=f"cancellation of {request_id!r}"
            )
            raise
        finally:
            self._pending.pop(request_id, None)
        if isinstance(outcome, ErrorData):
            raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)
        return cast("dict[str, Any]", outcome)

    @property
    def closed(self) -> bool:
        """Whether a request would be refused without being sent."""
        return self._closed

    def _resolve_pending(self, request_id: int | str | None, outcome: dict[str, Any] | ErrorData) -> None:
        if request_id is not None and coerce_request_id(request_id) not in self._pending:
            self._late(request_id)
        super()._resolve_pending(request_id, outcome)

    def _fan_out_closed(self) -> None:
        # First: whoever is told that the connection has closed looks whether it is lost.
        self.lost.set()
        super()._fan_out_closed()

    async def run(self, *arguments: Any, **options: Any) -> None:
        try:
            await super().run(*arguments, **options)
        finally:
            self.lost.set()


class SdkLink(ClientSession):
    """An open session over the streams of a transport (the `Link` of this package). Enter it, then `negotiate`.

    The requests that a server makes of a client (sampling, elicitation, roots) are refused by the SDK's
    defaults; no capability for them is announced.
    """

    def __init__(self, streams: Streams, events: Events) -> None:
        self._streams = streams
        self._events = events
        dispatcher = _Dispatcher(streams, events.answered_late)
        self._messages = dispatcher
        self.lost = dispatcher.lost
        super().__init__(dispatcher=dispatcher, message_handler=self._notified, client_info=_CLIENT)

    async def negotiate(self, seconds: float) -> None:
        """2026-07-28 when the server knows it, else the handshake. `seconds`: what the caller allows for all of
        it.

        The SDK's own negotiation is not public, and lets a server that is silent on the probe use up ten
        seconds.
        """
        version = LATEST_MODERN_VERSION
        for again in (True, False):
            try:
                async with asyncio.timeout(seconds * PROBE_SHARE):
                    found = await self.send_discover(version)
            except TimeoutError:
                found = None
            except MCPError as error:
                if _hopeless(error):
                    raise
                if error.code == UNSUPPORTED_PROTOCOL_VERSION and (other := _mutual(error, _KNOWN)) is None:
                    raise
                if error.code == UNSUPPORTED_PROTOCOL_VERSION and other in MODERN_PROTOCOL_VERSIONS and again:
                    version = other
                    continue
                found = None
            if found is not None and self._adopted(found):
                return
            try:
                await self.initialize()
            except MCPError as error:
                # The probe came late but was taken: the server names what it speaks now.
                modern = _mutual(error, MODERN_PROTOCOL_VERSIONS)
                if error.code != UNSUPPORTED_PROTOCOL_VERSION or modern is None or not again:
                    raise
                version = modern
                continue
            return

    def _adopted(self, found: dict[str, Any]) -> bool:
        try:
            result = DiscoverResult.model_validate(found)
        except ValidationError:
            return False
        if not any(version in MODERN_PROTOCOL_VERSIONS for version in result.supported_versions):
            return False
        self.adopt(result)
        return True

    @property
    def modern(self) -> bool:
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> Mapping[str, Any]:
        known = self.server_capabilities
        return {} if known is None else known.model_dump(by_alias=True, mode="json", exclude_none=True)

    @property
    def session_id(self) -> str | None:
        return self._streams.session()

    def ending(self) -> str:
        return self._streams.ending()

    def kill(self) -> None:
        self._streams.kill()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        request_id: str | None = None,
        on_progress: ProgressFn | None = None,
        log_level: str | None = None,
    ) -> dict[str, Any]:
        """The raw result. Cancelling it tells the server. Raises the SDK's `MCPError`, and `NotSentError`.

        `log_level`: servers of 2026-07-28 send log notifications only to a request that asks for them.
        """
        if self._messages.closed:
            raise NotSentError("the connection is closed")
        data: dict[str, Any] = {"method": method, "params": dict(params or {})}
        options: CallOptions = {}
        if log_level is not None and self.modern:
            data["params"]["_meta"] = {"io.modelcontextprotocol/logLevel": log_level}
        self._stamp(data, options)
        telemetry.into_message(data["params"], cast("dict[str, Any]", options))
        told = None if on_progress is None else _later(on_progress)
        if request_id is not None:
            return await self._messages.ask(request_id, method, data["params"], options.get("headers"), told)
        if told is not None:
            options["on_progress"] = told
        return await self._messages.send_raw_request(method, data["params"], options)

    def refuses(self, name: str, schema: Mapping[str, Any]) -> str | None:
        """Why a client must drop a tool with this schema (2026-07-28, header annotations), or None.

        A tool that is taken gets its header annotations remembered: `request` sends them.
        """
        if not self.modern:
            return None
        if (reason := find_invalid_x_mcp_header(dict(schema))) is not None:
            self._x_mcp_header_maps.pop(name, None)
            return reason
        self._x_mcp_header_maps[name] = x_mcp_header_map(dict(schema))
        return None

    async def watch(self) -> None:
        """Ask a server of 2026-07-28 to tell of changed lists, for as long as the session lives.

        Older servers tell without being asked, and this ends at once.
        """
        tools, prompts = (_tells(self.capabilities, kind) for kind in ListKind)
        pause = _FIRST_PAUSE
        while self.modern and (tools or prompts) and not self.lost.is_set():
            try:
                async with listen(self, tools_list_changed=tools, prompts_list_changed=prompts) as changes:
                    async for change in changes:
                        pause = _FIRST_PAUSE
                        if isinstance(change, ToolsListChanged):
                            self._events.changed(ListKind.TOOLS)
                        elif isinstance(change, PromptsListChanged):
                            self._events.changed(ListKind.PROMPTS)
            except SubscriptionLost:
                pass
            except ListenNotSupportedError:
                return
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LAST_PAUSE)

    async def _notified(self, message: IncomingMessage) -> None:
        if isinstance(message, LoggingMessageNotification):
            self._events.logged(message.params.level, message.params.logger, message.params.data)
        elif isinstance(message, ToolListChangedNotification):
            self._events.changed(ListKind.TOOLS)
        elif isinstance(message, PromptListChangedNotification):
            self._events.changed(ListKind.PROMPTS)


_KNOWN: Final = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS)


def _hopeless(error: MCPError) -> bool:
    """Whether the handshake would only meet the same: no connection, or no permission."""
    failure = Failure.of(error.error.data)
    if failure is None:
        return False
    return failure.kind is FailureKind.NETWORK or failure.status in (401, 403)


def _mutual(error: MCPError, ours: tuple[str, ...]) -> str | None:
    """The newest version that we know among those a server names in its refusal."""
    try:
        theirs = UnsupportedProtocolVersionErrorData.model_validate(error.error.data).supported
    except ValidationError:
        return None
    return next((version for version in reversed(ours) if version in theirs), None)


def _tells(capabilities: Mapping[str, Any], kind: ListKind) -> bool:
    return (capabilities.get(kind) or {}).get("listChanged") is True


def _later(on_progress: ProgressFn) -> ProgressFnT:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        on_progress(progress, total, message)

    return told
