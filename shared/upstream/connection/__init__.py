"""Connections to upstream MCP servers: one task owns each, everybody else talks to it.

    connection   `ServerConnection`: what a caller uses
    pool         one kept connection for each server and configuration, and the one reconnect
    lifecycle    the owner task: opens, serves, closes, in bounded time
    calls        the requests that run, and those that were abandoned
    lists        the tools and prompts; `listing` reads pages, `refresh` makes few of many notifications
    opening      the transport of a configuration, and the fall back from streamable HTTP to SSE
    session      the SDK's session with raw results; `link` is what of it the rest relies on
    stdio, sse, websocket, http   the transports; `transport` is what they give, `inbox` what they fill
    direct, kept, calling, events   calls over streamable HTTP past the HTTP client: what is posted how, on kept
                 connections, and how an answer is read, event by event
    process      the child of a stdio server: its own process group, killed whole
    lines, tail  bytes -> bounded lines; the bounded, redacted log of a server
    faults, translate, dead   what went wrong -> one error of the project's tree, without secrets
    secrets, levels, limits, state   what must not be shown, levels of logs, every bound, the states

Importing `connection` or `pool` loads the SDK: do it at the first upstream call, off the event loop.
"""
