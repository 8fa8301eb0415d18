"""The page's files, and the headers that they and all other answers come with."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.web import answers, page
from shared.web.page import PageApi
from shared.web.static_files import TYPES, Asset, StaticFiles

SECRET = b"not to be served"
NAMES = sorted(path.name for path in page.FOLDER.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of every kind, and things that must not be served in it and around it."""
    static = tmp_path / "static"
    (static / "sub").mkdir(parents=True)
    for name in ("index.html", "app.js", "app.css", "favicon.svg", "a.b-c_1.json"):
        (static / name).write_text(f"this is {name}")
    for path in (
        tmp_path / "secret.txt", static / "sub" / "in.js", static / ".hidden.js", static / "app.py",
        static / "README.md", static / "Upper.js", static / "noending", static / "a..js", static / "app.js~",
    ):  # fmt: skip
        path.write_bytes(SECRET)
    (static / "link.js").symlink_to(tmp_path / "secret.txt")
    (static / "folder.js").mkdir()
    return static


def get(
    folder: Path, function: str, name: str | None = None, method: str = "GET", **headers: str
) -> func.HttpResponse:
    request = func.HttpRequest(
        method=method,
        url="http://localhost/",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        params={},
        route_params={} if name is None else {"file": name},
        body=b"",
    )
    answer: func.HttpResponse = asyncio.run(getattr(PageApi(folder), function)(request))
    return answer


@pytest.mark.parametrize(
    ("function", "name", "content_type"),
    [
        ("index", None, "text/html; charset=utf-8"),
        ("icon", None, "image/svg+xml; charset=utf-8"),
        ("asset", "app.js", "text/javascript; charset=utf-8"),
        ("asset", "app.css", "text/css; charset=utf-8"),
        ("asset", "a.b-c_1.json", "application/json"),
    ],
)
def test_a_file_comes_with_its_type_and_tag(
    folder: Path, function: str, name: str | None, content_type: str
) -> None:
    answer = get(folder, function, name)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)
    assert answer.get_body().startswith(b"this is ")
    assert answer.headers["Cache-Control"] == "no-cache"
    again = get(folder, function, name, If_None_Match=answer.headers["ETag"])
    assert (again.status_code, again.get_body(), again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
    head = get(folder, function, name, "HEAD")
    assert (head.status_code, head.get_body()) == (200, b"")
    assert head.headers["Content-Length"] == str(len(answer.get_body()))


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "../secret.txt", "..%2fsecret.txt", "..\\secret.txt", "sub/in.js", "sub", ".hidden.js",
        "app.py", "README.md", "Upper.js", "APP.JS", "noending", "a..js", "app.js~", "app.js\0.css", "app.js/",
        "link.js", "folder.js", "/etc/passwd", "con", "nul.js", "app.js\n",
    ],
)  # fmt: skip
def test_nothing_else_is_served(folder: Path, name: str) -> None:
    answer = get(folder, "asset", name)
    assert answer.status_code == 404
    assert SECRET not in answer.get_body()


def test_files_are_not_read_on_the_event_loop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk keeps no other request waiting."""
    threads: list[int] = []
    read = StaticFiles.get

    def watched(files: StaticFiles, name: str) -> Asset | None:
        threads.append(threading.get_ident())
        return read(files, name)

    monkeypatch.setattr(StaticFiles, "get", watched)
    assert get(folder, "index").status_code == 200
    assert len(threads) == 1
    assert threading.get_ident() not in threads


@given(st.text(max_size=30))
def test_any_text_is_looked_up_safely(name: str) -> None:
    asset = StaticFiles(page.FOLDER).get(name)
    assert asset is None or name in NAMES


@pytest.mark.parametrize("function", ["index", "icon", "asset"])
def test_other_verbs_are_refused(folder: Path, function: str) -> None:
    answer = get(folder, function, "app.js", "POST")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_changed_file_is_served_as_it_is_now(folder: Path) -> None:
    files = StaticFiles(folder)
    before = files.get("app.js")
    assert before is not None
    assert files.get("app.js") is before
    (folder / "app.js").write_text("something else")
    after = files.get("app.js")
    assert after is not None
    assert (after.body, after.tag == before.tag) == (b"something else", False)
    (folder / "app.js").unlink()
    assert files.get("app.js") is None


def test_the_pages_policy_lets_nothing_in_from_elsewhere(folder: Path) -> None:
    headers = get(folder, "index").headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "media-src": "blob: data:",
        "connect-src": "'self'",
        "frame-src": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]


@pytest.mark.parametrize(("function", "name"), [("index", None), ("icon", None), ("asset", "app.js")])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_every_answer_has_the_headers(folder: Path, function: str, name: str | None, method: str) -> None:
    for tag in ("", "*"):
        answer: Any = get(folder, function, name, method, If_None_Match=tag)
        assert all(name in answer.headers for name in answers.SECURITY_HEADERS)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


class TestOwnFiles:
    def test_the_page_asks_only_for_files_that_are_served(self) -> None:
        index = (page.FOLDER / page.INDEX).read_text("utf-8")
        files = StaticFiles(page.FOLDER)
        assert "<title>" in index
        wanted = re.findall(r"(?:src|href)=\"/?assets/([^\"]+)\"", index)
        assert wanted
        assert [name for name in [*wanted, page.ICON] if files.get(name) is None] == []

    def test_the_page_has_nothing_inline_that_the_policy_would_stop(self) -> None:
        index = (page.FOLDER / page.INDEX).read_text("utf-8")
        assert not re.findall(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)|<base", index)

    def test_every_file_there_can_be_served(self) -> None:
        files = StaticFiles(page.FOLDER)
        assert [name for name in NAMES if files.get(name) is None] == []
        assert all("charset" in kind for kind in TYPES.values() if kind.startswith("text/"))
