"""How dev.py reads and shows what the app answers."""

from __future__ import annotations

import importlib
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from infra.local.dev import client, demo
from infra.local.dev.console import DevError

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Answers(BaseHTTPRequestHandler):
    status: ClassVar[int] = 200
    body: ClassVar[str] = ""
    seen: ClassVar[list[tuple[str, dict[str, str], Any]]] = []

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), json.loads(content)))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(_Answers, "seen", [])
    with HTTPServer(("127.0.0.1", 0), _Answers) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def _event(message: dict[str, Any]) -> str:
    return f"event: message\ndata: {json.dumps(message)}\n\n"


def test_call_over_sse(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # not for this machine's own addresses
    importlib.reload(client)
    monkeypatch.setattr(_Answers, "body", _event({"result": {"content": []}, "id": 1, "jsonrpc": "2.0"}))
    assert client.call_tool(server + "/x", "echo", {"a": 1}, {"X-Key": "k"}, 10) == {"content": []}
    ((path, headers, message),) = _Answers.seen
    assert path == "/x"
    assert headers["Accept"] == "application/json, text/event-stream"
    assert headers["X-Key"] == "k"
    assert message["params"] == {"name": "echo", "arguments": {"a": 1}}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, "", "401 Unauthorized"),
        (200, _event({"error": {"code": -32602, "message": "Unknown tool: 'echo'"}}), "Unknown tool"),
        (
            200,
            _event({"result": {"isError": True, "content": [{"type": "text", "text": "csv is empty"}]}}),
            "csv is empty",
        ),
        (200, "<html>", "not JSON"),
    ],
)
def test_failures_are_told(
    server: str, monkeypatch: pytest.MonkeyPatch, status: int, body: str, said: str
) -> None:
    monkeypatch.setattr(_Answers, "status", status)
    monkeypatch.setattr(_Answers, "body", body)
    with pytest.raises(DevError, match=said):
        client.call_tool(server, "echo", {}, {}, 10)


def test_nobody_there() -> None:
    with pytest.raises(DevError, match="refused"):
        client.get_json("http://127.0.0.1:1/", {}, 10)


def test_last_event_counts() -> None:
    assert client.last_event('data: {"a": 1}\n\nevent: message\ndata: {"b": 2}\n\n').strip() == '{"b": 2}'
    assert client.last_event('{"plain": true}') == '{"plain": true}'


def test_compact_json_breaks_only_what_is_too_wide() -> None:
    value = {"name": "é" * 30, "columns": [{"n": 1, "m": "x" * 20}, {"n": 2, "m": "y" * 20}], "none": []}
    text = demo.compact_json(value, width=60)
    assert json.loads(text) == value
    assert '    {"n": 1, "m": "xxxxxxxxxxxxxxxxxxxx"},\n' in text
    assert max(map(len, text.splitlines())) <= 60


def test_compact_json_keeps_inner_levels_on_one_line() -> None:
    value = {"columns": [{"top": ["x" * 30, "y" * 30]}, {"top": []}]}
    text = demo.compact_json(value, width=20)
    assert json.loads(text) == value
    assert len(text.splitlines()) == 6


def test_job_is_shown_with_progress_and_logs(capsys: pytest.CaptureFixture[str]) -> None:
    demo.show_job(
        {
            "status": "completed",
            "attempt": 1,
            "progress": {"percent": 100, "message": "all rows"},
            "logs": [
                {"seq": 1, "timestamp": "2024-01-01T00:00:00Z", "level": "info", "message": "read 3 rows"}
            ],
        }
    )
    shown = capsys.readouterr().out
    assert "completed" in shown
    assert "100 %, all rows" in shown
    assert "info  read 3 rows" in shown


def test_result_blocks_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [
        {"type": "text", "text": "plain"},
        {"type": "text", "text": '{"a": null, "b": [{"c": null}]}'},
        {"type": "image", "mimeType": "image/png", "data": "A" * 4096},
    ]
    demo.show_result({"content": blocks})
    assert capsys.readouterr().out == 'plain\n{"b": [{}]}\n(image: image/png, 3.0 KiB)\n'
