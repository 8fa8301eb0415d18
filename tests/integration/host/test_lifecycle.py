"""Starting, failing to start, stopping, and running out of time."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.integration.host import support
from tests.integration.host.support import FIXTURE, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.host.conftest import StartHost

pytestmark = pytest.mark.integration

HTTP_ONLY = ("--only-triggers", "http")


def fails(directory: Path, *arguments: str, app: Path = FIXTURE, **env: str) -> tuple[int, str]:
    """Exit code and output of a host that does not start."""
    process, output, ready, _ = support.launch(directory, *arguments, app=app, env=env)
    code = process.wait(support.DEADLINE)
    assert not ready.exists()
    return code, output.read_text()


def make_app(folder: Path, source: str = "", host_json: str = '{"version": "2.0"}') -> Path:
    """An app folder with that function_app.py."""
    folder.mkdir(exist_ok=True)
    (folder / "host.json").write_text(host_json)
    (folder / "function_app.py").write_text(
        f"import azure.functions as func\napp = func.FunctionApp()\n{source}"
    )
    return folder


def abandoned(host: support.Host, path: str) -> threading.Thread:
    """A request in a thread of its own that gets no answer."""

    def call() -> None:
        with pytest.raises(httpx.TransportError):
            host.client.get(path)

    thread = threading.Thread(target=call)
    thread.start()
    return thread


def tool(name: str, function: str, **fields: str) -> str:
    """Source of an mcpToolTrigger function."""
    extra = "".join(f", {key}={value!r}" for key, value in fields.items())
    return (
        f"@app.mcp_tool_trigger(arg_name='context', tool_name={name!r}{extra})\n"
        f"def {function}(context: str) -> str: ...\n"
    )


def test_ready_line_lists_functions_and_endpoint(host: support.Host) -> None:
    text = host.text()
    assert f"echo: [GET,POST] {host.url}/api/echo/{{id}}" in text
    assert "z_echo: mcpToolTrigger" in text
    assert f"MCP server endpoint: {host.url}/runtime/webhooks/mcp" in text
    assert f"Host ready: {host.url} " in text
    assert "disabled_one" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_lets_running_requests_finish(start_host: StartHost, number: int) -> None:
    host = start_host(*HTTP_ONLY)
    answers: list[str] = []

    def call(path: str) -> None:
        answers.append(host.client.get(path).text)

    calls = [
        threading.Thread(target=call, args=(path,)) for path in ("/api/slow?seconds=2", "/api/block?seconds=1")
    ]
    for thread in calls:
        thread.start()
    wait_for(lambda: len(host.events()) == 2)
    os.kill(host.process.pid, number)
    for thread in calls:
        thread.join()
    assert host.wait() == 0
    assert answers == ["done", "done"]
    assert not host.output.with_name("ready.json").exists()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", host.port or 0))


def test_work_that_does_not_finish_is_left_after_ten_seconds(start_host: StartHost) -> None:
    host = start_host(*HTTP_ONLY)
    thread = abandoned(host, "/api/block?seconds=40")
    wait_for(lambda: host.events("block started"))
    start = time.monotonic()
    assert host.stop() == 0
    assert 8 < time.monotonic() - start < 15
    thread.join()


def test_second_signal_ends_at_once(start_host: StartHost) -> None:
    host = start_host(*HTTP_ONLY)
    thread = abandoned(host, "/api/slow?seconds=40")
    wait_for(lambda: host.events("slow started"))
    host.process.terminate()
    wait_for(lambda: "Stopping" in host.text())
    host.process.terminate()
    assert host.wait() == 4
    thread.join()


@pytest.mark.parametrize("name", ["slow", "block", "block_loop"])
def test_function_timeout_ends_the_process(start_host: StartHost, name: str) -> None:
    host = start_host(*HTTP_ONLY, env={"AzureFunctionsJobHost__functionTimeout": "00:00:01"})
    with pytest.raises(httpx.TransportError):
        host.client.get(f"/api/{name}?seconds=30")
    assert host.wait() == 75
    text = host.text()
    assert f"Timeout value of 00:00:01 exceeded by function 'Functions.{name}' (Id: '" in text
    assert "A function timeout has occurred. Restarting worker process executing invocationId '" in text


def test_settings_file_is_read_and_the_environment_wins(start_host: StartHost, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    values = {"FIXTURE_SETTING": "from file", "FIXTURE_LOG": "not this one"}
    settings.write_text(json.dumps({"IsEncrypted": False, "Values": values}))
    host = start_host(*HTTP_ONLY, "--settings", str(settings))
    assert host.client.get("/api/surroundings").json()["setting"] == "from file"
    host.client.get("/api/slow?seconds=0")
    assert host.events("slow started")


def test_only_triggers_switches_the_rest_off(start_host: StartHost) -> None:
    host = start_host(*HTTP_ONLY)
    assert host.client.get("/api/any_method").status_code == 200
    assert host.client.post("/runtime/webhooks/mcp", json={}).status_code == 404
    assert host.events("tick") == []


# what stops the start


def test_import_error_shows_the_apps_frames_only(tmp_path: Path) -> None:
    app = make_app(tmp_path / "app", "import not_there\n")
    code, text = fails(tmp_path, app=app)
    assert code == 1
    assert "No module named 'not_there'" in text
    assert 'function_app.py", line 3' in text
    assert "azure_functions_runtime/" not in text
    assert "infra" not in text


def test_app_that_exits_while_imported(tmp_path: Path) -> None:
    code, text = fails(tmp_path, app=make_app(tmp_path / "app", "raise SystemExit(9)\n"))
    assert code == 1
    assert "The app ended the process while it was imported (exit code 9)." in text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (tool("Same", "a") + tool("same", "b"), "Tool with name 'same' is already registered."),
        (
            "@app.queue_trigger(arg_name='msg', queue_name='%NOT_SET%', connection='')\ndef f(msg: str): ...\n",
            "'%NOT_SET%' does not resolve to a value: queueName of the queueTrigger of function 'f' needs the",
        ),
        (
            "@app.queue_trigger(arg_name='msg', queue_name='q', connection='Other')\ndef f(msg: str): ...\n",
            "The queueTrigger of function 'f' needs a storage connection string in the setting Other.",
        ),
        (
            "@app.timer_trigger(arg_name='t', schedule='61 * * * * *')\ndef f(t: func.TimerRequest): ...\n",
            "schedule of function 'f': '61' is not a valid second.",
        ),
        ("del app\n", "Could not find top level function app instances in function_app.py."),
    ],
)
def test_app_that_cannot_run_is_refused_in_one_message(tmp_path: Path, source: str, message: str) -> None:
    code, text = fails(tmp_path, app=make_app(tmp_path / "app", source))
    assert code == 1
    assert message in text
    assert "Traceback" not in text or "del app" in source


@pytest.mark.parametrize(
    ("host_json", "message"),
    [
        ("{", "host.json is not valid JSON"),
        ("[]", "host.json must hold a JSON object."),
        ("{}", 'host.json must say "version": "2.0".'),
        ('{"version": "2.0", "functionTimeout": "soon"}', "functionTimeout in host.json must be a time span"),
        (
            '{"version": "2.0", "extensions": {"queues": {"batchSize": 33}}}',
            "extensions.queues.batchSize must be a number from 1 to 32, not '33'.",
        ),
    ],
)
def test_bad_host_json(tmp_path: Path, host_json: str, message: str) -> None:
    code, text = fails(tmp_path, app=make_app(tmp_path / "app", host_json=host_json))
    assert code == 1
    assert message in text
    assert "Traceback" not in text


def test_folder_without_an_app(tmp_path: Path) -> None:
    assert fails(tmp_path, app=tmp_path) == (1, f"{tmp_path} has no host.json: it is not a Functions app.\n")
    assert fails(tmp_path, app=tmp_path / "no") == (1, f"There is no folder {tmp_path / 'no'}.\n")


def test_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, text = fails(tmp_path, "--port", str(port))
    assert (code, text) == (3, f"Port {port} is in use. Choose another with --port.\n")


def test_wrong_command_line(tmp_path: Path) -> None:
    code, text = fails(tmp_path, "--only-triggers", "blob")
    assert code == 2
    assert "choose from http, mcp, queue, timer" in text


def test_function_with_an_unknown_trigger_is_left_out(start_host: StartHost, tmp_path: Path) -> None:
    source = (
        "@app.blob_trigger(arg_name='b', path='x/{n}', connection='')\ndef blobs(b: func.InputStream): ...\n"
        "@app.route(route='admin/x')\ndef reserved(req: func.HttpRequest) -> str: ...\n"
        "@app.route(route='good')\nasync def good(req: func.HttpRequest) -> str: return 'good'\n"
    )
    host_json = '{"version": "2.0", "extensions": {"http": {"routePrefix": ""}}}'
    app = make_app(tmp_path / "app", source.replace("'good')", "'good', auth_level='anonymous')"), host_json)
    host = start_host(app=app)
    assert host.client.get("/good").text == "good"
    assert "The 'blobs' function is in error: this host has no blobTrigger." in host.text()
    assert "The 'reserved' function is in error: The specified route conflicts" in host.text()
