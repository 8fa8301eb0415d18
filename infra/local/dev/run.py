"""`dev.py run`: storage, the app, two calls (three with `--dataverse`); then serve until told to stop."""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

from infra.local.dev import dataverse_demo, dataverse_settings, demo, paths, ports, setup, upstream
from infra.local.dev.console import DevError, headline, paint, say
from infra.local.dev.host import port_in_use
from infra.local.dev.processes import Interrupted
from infra.local.dev.session import EMULATOR, Session
from infra.local.dev.settings import demo_token, effective_settings
from shared.settings import DEFAULT_OWNER

if TYPE_CHECKING:
    from infra.local.dev.dataverse import Place


def run(port: int, *, once: bool, auth: bool, temp_data: bool, dataverse: bool = False) -> int:
    """The exit code: 0 when all went well, also when it served until it was told to stop. Raises `DevError`."""
    check_port(port)
    setup.ensure_settings()
    settings = effective_settings(paths.LOCAL_SETTINGS, os.environ)
    session = Session(os.environ)
    ended_well = False
    try:
        session.start_storage(settings.get("AzureWebJobsStorage", EMULATOR), temp_data=temp_data)
        judged = session.check_settings(settings)
        for line in upstream.faults(settings):
            say(paint(line, "yellow"))
        place = None
        if dataverse:
            place = session.start_dataverse(settings, dict.fromkeys((DEFAULT_OWNER, *judged.owner_tokens)))
        session.start_host(port, auth=auth)
        app = demo.App(
            url=session.host.url,
            token=demo_token(settings),
            extension_key=settings.get("MCP_EXTENSION_KEY") if auth else None,
        )
        try:
            job_id = demo.make_calls(app)
            if place is not None:
                dataverse_demo.make_call(app)
        except DevError as error:
            raise session.host.error(error.message, error.hint) from error
        if not once:
            _show_how_to_go_on(app, job_id, place)
            try:
                session.serve(auth=auth)
            except Interrupted:
                say("\nStopping … (Ctrl-C stops at once)")
        ended_well = True
    finally:
        session.stop(keep_log=None if ended_well else paths.HOST_LOG)
    return 0


def check_port(port: int) -> None:
    """Raises `DevError` when the app could not listen on the port."""
    try:
        free = ports.is_free(port)
    except PermissionError:
        raise DevError(f"Port {port} needs more rights than you have.", "Choose one above 1023.") from None
    if not free:
        raise port_in_use(port)


def _show_how_to_go_on(app: demo.App, job_id: str, place: Place | None) -> None:
    headline("The app is running")
    say(f"MCP endpoint  {app.url}{demo.MCP_PATH}")
    say(f"The job       {app.url}/mcp/jobs/{job_id}")
    if place is not None:
        say(f"Dataverse     {place.url}/api/data/v9.2 (a stand-in, gone when this stops)")
        say(f"Connection    {dataverse_settings.NAME}")
    say("List the tools:")
    _show_mcp_request(app, "tools/list")
    if place is not None:
        say("Query Dataverse, one page:")
        _show_mcp_request(app, "tools/call", dataverse_demo.EXAMPLE)
    say("Read the job:")
    say(f"  curl -s {app.url}/mcp/jobs/{job_id}{_header('X-MCP-Auth-Token', app.token or '')}")
    say("Stop with Ctrl-C. What follows is the app's log.\n")


def _show_mcp_request(app: demo.App, method: str, params: dict[str, Any] | None = None) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params is not None:
        message["params"] = params
    headers = {
        **app.mcp_headers,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    shown = "".join(_header(name, value) for name, value in headers.items())
    body = shlex.quote(json.dumps(message, separators=(",", ":")))
    say(f"  curl -s {app.url}{demo.MCP_PATH}{shown} \\\n    -d {body}")


def _header(name: str, value: str) -> str:
    return f" \\\n    -H {shlex.quote(f'{name}: {value}')}"
