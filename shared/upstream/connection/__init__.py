"""Connections to upstream MCP servers: one task owns each, everybody else talks to it.

    state      the states of a connection and the legal moves between them
    limits     every bound of this package, with its reason
    tail       the bounded, redacted log of a server: its stderr, its log notifications, our own remarks
    lines      bytes -> lines, bounded
    process    the child of a stdio server: its own process group, killed whole
    stdio, sse, websocket, http   the transports; `opening` picks one
    session    the SDK's session, with raw results
    faults     what went wrong -> one error of the project's tree, without secrets
    listing    tools/list and prompts/list, page by page, guarded
    refresh    list_changed notifications -> few listings
    connection `ServerConnection`
    pool       one kept connection for each server and configuration

Only the standard library is loaded until the first connection is opened.
"""
