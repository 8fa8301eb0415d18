"""The project's one tree of errors.

Every error that a caller, an agent or an operator may read derives from `ToolboxError`; its message is safe to
show (no secret, no path, no traceback) and says what is legal. A subclass states its default message and its
stable `code`.

    ToolboxError
      SettingsError        a setting is missing or illegal: the app does not start, or the call fails
      ConfigError          the configuration of upstream servers is illegal, or cannot be read
        MCPConfigError       … in one server's entry
          MissingTransportFieldError  … which lacks what its transport needs
      DeclarationError     a tool is declared wrongly: found when the tool is loaded
      CallError            a call cannot be carried out as asked
        InputError         arguments do not fit the tool's input schema
        EnvelopeError      `arguments.__pptb` is illegal
        UnsupportedModeError  the tool does not have the requested mode
        AuthenticationError   the access token is wrong
        ConnectionsError      a saved connection cannot be found, or not be used
      ToolError            raised by a tool's author: the text goes to the caller as it is (redacted)
        ResultError        what the tool returned cannot be sent
        NoConnectionError  the call has no connection in a slot that its tool asks for
        ServiceError       a service that a tool called has refused, or cannot be reached
          DataverseError      … the Dataverse Web API
          PowerPlatformError  … the Power Platform API
        MCPError             an upstream MCP server cannot do what was asked
          MCPConnectionError   it cannot be reached, or is no longer there
            MCPTimeoutError      … within its time
          MCPProtocolError     it answered with an error of the protocol, or not as the protocol says
          MCPToolNotFoundError it has no such tool
      JobError             a stored job cannot be made, read or moved
        JobNotFoundError   no such job for this owner
        LostLeaseError     the row has moved on: this process may not write it any more
        PayloadError       an input or result body is too large, lost, or was changed
        JobEndedError      the job has ended already: there is nothing to cancel
        IdempotencyError   the idempotency key was used for other arguments
        ArtifactError      an artifact cannot be stored as asked
        WindowError        a window cannot be opened, or not do what its page asks for
          WindowTicketError    … with this link
          WindowSessionError   … with this session
        JobCancelledError  raised inside a tool by `update_progress` when its job is no longer wanted
      NoInvocationError    an API was used by code that belongs to no running call
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class ToolboxError(Exception):
    """Something went wrong in the toolbox."""

    #: Stable word for programs; the text is for people.
    code: ClassVar[str] = "error"
    default: ClassVar[str] = "Something went wrong in the toolbox."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message if message is not None else self.default)

    @property
    def message(self) -> str:
        # A tool's own subclass may have been made without any text.
        return str(self.args[0]) if self.args else self.default


class SettingsError(ToolboxError):
    code = "settings"
    default = "A setting is missing or illegal."


class ConfigError(ToolboxError):
    """`field`: what is wrong, as a path in the configuration or the name of a variable."""

    code = "config"
    default = "The configuration is illegal."

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.reason = message
        super().__init__(f"Configuration error in '{field}': {message}")


class MCPConfigError(ConfigError):
    """One server's entry is illegal."""


class MissingTransportFieldError(MCPConfigError):
    """`transport`: the one that needs the missing field."""

    def __init__(self, field: str, transport: str) -> None:
        self.transport = transport
        super().__init__(field, f"'{field}' is required for {transport} transport")


class DeclarationError(ToolboxError):
    code = "declaration"
    default = "A tool is declared wrongly."


class CallError(ToolboxError):
    code = "call"
    default = "The call cannot be carried out as asked."


class InputError(CallError):
    """`faults`: `$.path: what is wrong` texts, all of them."""

    code = "invalid_input"
    default = "Input validation failed."

    def __init__(self, message: str | None = None, faults: Sequence[str] = ()) -> None:
        self.faults = tuple(faults)
        if message is None and faults:
            message = f"Input validation failed: {'; '.join(faults)}"
        super().__init__(message)


class EnvelopeError(CallError):
    code = "invalid_envelope"
    default = "The call options under __pptb are illegal."


class UnsupportedModeError(CallError):
    code = "unsupported_mode"
    default = "The tool does not have the requested mode."


class AuthenticationError(CallError):
    code = "unauthorized"
    default = "Unauthorized: valid MCP access token required"


class ConnectionsError(CallError):
    code = "connection"
    default = "The connection cannot be used."


class ToolError(ToolboxError):
    """Raise this in a tool to answer with a text of your own instead of a generic failure."""

    code = "tool_error"
    default = "The tool failed."


class ResultError(ToolError):
    code = "invalid_result"
    default = "The tool's result cannot be sent."


class NoConnectionError(ToolError):
    """Raised by an API inside of a tool. Its code is that of a connection that the caller has named wrongly."""

    code = "connection"
    default = "The call has no connection that its tool asks for."


class ServiceError(ToolError):
    """A service's refusal, with what its own error said.

    `service_code`: the service's word or number for it (`0x80040217`); `service_message`: its text; `status`:
    the HTTP status; `request_id`: what its operator finds the request by; `retry_after`: seconds. None where
    unknown.
    """

    default = "The service has refused."

    def __init__(
        self,
        message: str | None = None,
        *,
        service_code: str | None = None,
        service_message: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.service_code = service_code
        self.service_message = service_message
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class DataverseError(ServiceError):
    default = "Dataverse has refused."


class PowerPlatformError(ServiceError):
    default = "The Power Platform API has refused."


class MCPError(ToolError):
    """`server`: the upstream server's name; None where it does not matter which."""

    code = "upstream"
    default = "The upstream MCP server has failed."

    def __init__(self, message: str | None = None, server: str | None = None) -> None:
        super().__init__(message)
        self.server = server
        #: The end of what the server itself wrote, where it tells why: for the operator only.
        self.log = ""

    @property
    def full_message(self) -> str:
        """The message, and the server's own words where they tell more. Not for every caller."""
        return f"{self.message} The end of its log: {self.log}" if self.log else self.message


class MCPConnectionError(MCPError):
    """`command`: the executable that could not be started, if it was that."""

    code = "upstream_connection"
    default = "The upstream MCP server cannot be reached."

    def __init__(
        self, message: str | None = None, server: str | None = None, command: str | None = None
    ) -> None:
        super().__init__(message, server)
        self.command = command


class MCPTimeoutError(MCPConnectionError):
    """`timeout`: the seconds that have passed."""

    code = "upstream_timeout"
    default = "The upstream MCP server did not answer in time."

    def __init__(
        self,
        message: str | None = None,
        server: str | None = None,
        command: str | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(message, server, command)
        self.timeout = timeout


class MCPProtocolError(MCPError):
    """`error_code`: the JSON-RPC code, if it was an error answer."""

    code = "upstream_protocol"
    default = "The upstream MCP server did not answer as the protocol says."

    def __init__(
        self, message: str | None = None, server: str | None = None, error_code: int | None = None
    ) -> None:
        super().__init__(message, server)
        self.error_code = error_code


class MCPToolNotFoundError(MCPError):
    """`tool_name`: the tool that was asked for."""

    code = "upstream_tool_not_found"

    def __init__(self, tool_name: str, server: str | None = None, hint: str = "") -> None:
        self.tool_name = tool_name
        text = f"Tool '{tool_name}' not found on server" + (f" '{server}'" if server else "")
        super().__init__(f"{text}; {hint}" if hint else text, server)


class JobError(ToolboxError):
    code = "job"
    default = "The job cannot be handled."


class JobNotFoundError(JobError):
    code = "not_found"
    default = "Job not found"


class LostLeaseError(JobError):
    code = "lost_lease"
    default = "The job has moved on without this worker."


class PayloadError(JobError):
    code = "payload"
    default = "The job's stored input or result cannot be used."


class WindowError(JobError):
    code = "window"
    default = "The window cannot do that."


class WindowTicketError(WindowError):
    """The same for a job that does not exist, a wrong, a used and an expired ticket."""

    code = "window_ticket"
    default = (
        "This link cannot be used: it was used already, has expired, or is no link of this app's. Ask for a "
        "new one, or open the window from the app's page with your access token."
    )


class WindowSessionError(WindowError):
    """The same for every job and every session that is not one of it."""

    code = "window_session"
    default = "Unauthorized: valid window session required"


class JobCancelledError(JobError):
    code = "cancelled"
    default = "The job was cancelled."


class JobEndedError(JobError):
    """`status`: how the job has ended."""

    code = "job_ended"
    default = "The job has ended already."

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(f"The job has ended already: it is {status}.")


class IdempotencyError(JobError):
    code = "idempotency_conflict"
    default = (
        "__pptb.idempotencyKey: this key was used before for the same tool with other arguments. Send the same "
        "arguments to get that job, or another key to start a new one."
    )


class ArtifactError(JobError):
    code = "artifact"
    default = "The artifact cannot be stored."


class NoInvocationError(ToolboxError):
    code = "no_invocation"
    default = "This is only available inside a tool's invocation."
