"""The files of a tool's page: which are served, as what, and under which policy."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import NoReturn

import pytest

from shared.web import window_page, window_rate
from shared.web.window_page import BRIDGE, page_file
from tests.unit.web.window_support import TOKEN, Site, body, unknown

ROOT = "/mcp/windows/1/page/2/"
SCRIPT = f'<script src="{ROOT}{BRIDGE}"></script>'


def hash_of(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def policy(site_or_headers: dict[str, str]) -> dict[str, list[str]]:
    parts = (part.split() for part in site_or_headers["Content-Security-Policy"].split(";"))
    return {name: values for name, *values in parts}


@pytest.fixture
def ui(tmp_path: Path) -> Path:
    folder = tmp_path / "tool" / "ui"
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><html><head></head></html>")
    (folder / "app.js").write_text("let a;")
    (folder / "parts" / "more.css").write_text("p {}")
    (folder.parent / "secret.txt").write_text("secret")
    (folder / ".env.txt").write_text("secret")
    (folder / "run.py").write_text("secret")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "out").symlink_to(folder.parent)
    return folder


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("parts/more.css", "text/css; charset=utf-8"),
        (BRIDGE, "text/javascript; charset=utf-8"),
    ],
)
def test_what_lies_below_ui_is_served_by_its_type(ui: Path, name: str, kind: str) -> None:
    found = page_file(ui, ROOT, name)
    assert found is not None
    assert found.content_type == kind
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Cache-Control"] == "no-store"
    # Each of them, were it opened by itself: an opaque origin that connects to nothing.
    told = policy(found.headers)
    assert told["sandbox"] == ["allow-scripts"]
    for directive in ("default-src", "connect-src", "form-action", "base-uri"):
        assert told[directive] == ["'none'"]
    assert told["frame-ancestors"] == ["'self'"]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt", "parts/../../secret.txt", "..", ".", "/etc/hosts.txt", "//x.js", "parts//more.css",
        "parts", "parts/", ".env.txt", "run.py", "link.txt", "out/secret.txt", "missing.js", "app.js\0",
        "app.js ",
        "..\\secret.txt", "C:/x.js", "%2e%2e/secret.txt", "index.html/", "a" * 600 + ".js", "_toolbox/other.js",
        "~/x.js", "app.js::$DATA", "APP.JS/x",
    ],
)  # fmt: skip
def test_nothing_else_is(ui: Path, name: str) -> None:
    assert page_file(ui, ROOT, name) is None


def test_a_large_file_is_not_read(ui: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_page, "MOST_BYTES", 3)
    assert page_file(ui, ROOT, "app.js") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<!doctype html><html><head><title>x</title>", "<!doctype html><html><head>{}<title>x</title>"),
        ("<!DOCTYPE html>\n<html lang='en'>\n<head data-x='>'>\n<script>1", None),
        ("<html><body>x", "<html>{}<body>x"),
        ("<!doctype html><p>x", "<!doctype html>{}<p>x"),
        ("<p>x<head>", "{}<p>x<head>"),
        ("", "{}"),
        ("<!-- <head> --><html><head>x", "<!-- <head> --><html><head>{}x"),
        ("<script>1</script><head>", "{}<script>1</script><head>"),
        ("\ufeff<!doctype html><html><head>", "<!doctype html><html><head>{}"),
        ("<html>\r\n<head>\r\nx", "<html>\n<head>{}\nx"),
    ],
)
def test_the_bridge_comes_before_every_script_of_the_page(ui: Path, text: str, expected: str | None) -> None:
    (ui / "index.html").write_bytes(text.encode())
    found = page_file(ui, ROOT, "index.html")
    assert found is not None
    written = found.body.decode()
    assert written.count(SCRIPT) == 1
    if expected is None:
        assert f"<head data-x='>'>{SCRIPT}" in written
    else:
        assert written == expected.format(SCRIPT)


def test_inline_scripts_of_the_file_run_and_no_others(ui: Path) -> None:
    one, two = '\n  let a = "<b>" && 1;\n', "let é = 2;"
    (ui / "index.html").write_bytes(
        f'<head><script>{one}</script><script type="module">{two}</script>'
        f'<script src="app.js">ignored</script></head>'.replace("\n", "\r\n").encode()
    )
    found = page_file(ui, ROOT, "index.html")
    assert found is not None
    assert policy(found.headers)["script-src"] == ["'self'", hash_of(one), hash_of(two)]


def test_files_may_be_used_by_a_page_on_an_opaque_origin(ui: Path) -> None:
    """To the browser they are another site's; a module, or a font, needs to be told so by CORS."""
    found = page_file(ui, ROOT, "app.js")
    assert found is not None
    assert found.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert found.headers["Access-Control-Allow-Origin"] == "*"


class TestOverHttp:
    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        return Site(tmp_path)

    def page(self, site: Site, job_id: str) -> str:
        told = body(site.post("session", job_id, token=TOKEN))["page"]
        return str(told).partition(f"/mcp/windows/{job_id}/page/")[2]

    def test_the_page_of_a_session_is_served_with_its_bridge(self, site: Site) -> None:
        job_id, _ = site.launched()
        path = self.page(site, job_id)
        key = path.partition("/")[0]
        found = site.get(job_id, path)
        assert found.status_code == 200
        assert f'src="/mcp/windows/{job_id}/page/{key}/{BRIDGE}"'.encode() in found.get_body()
        head = site.get(job_id, path, "HEAD")
        assert (head.status_code, head.get_body()) == (200, b"")
        assert head.headers["Content-Length"] == str(len(found.get_body()))
        assert site.get(job_id, f"{key}/nothing.js").status_code == 404
        assert site.get(job_id, path, "POST").status_code == 405

    def test_a_wrong_key_gets_the_same_answer_everywhere(self, site: Site) -> None:
        job_id, session = site.opened()
        other, _ = site.launched()
        path = self.page(site, job_id)
        for at, wrong in (
            (other, path), (unknown(), path), ("no-id", path), (job_id, "0" * 32 + "/index.html"),
            (job_id, f"{session}/index.html"), (job_id, "index.html"), (job_id, ""), (job_id, "/"),
        ):  # fmt: skip
            found = site.get(at, wrong)
            assert found.status_code == 401
            assert body(found) == {"error": "Unauthorized: valid window session required"}

    def test_it_is_gone_with_the_job(self, site: Site) -> None:
        job_id, session = site.opened()
        path = self.page(site, job_id)
        site.post("close", job_id, session=session)
        assert site.get(job_id, path).status_code == 409

    def test_refusals_have_an_opaque_origin_too(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever stands at an address of a page's, nothing in it runs, nor is it of our origin."""
        job_id, session = site.opened()
        path = self.page(site, job_id)
        key = path.partition("/")[0]
        found = [site.get(job_id, "0" * 32 + "/index.html"), site.get(job_id, f"{key}/nothing.js")]
        found.append(site.get(job_id, path, "POST"))
        with monkeypatch.context() as at:
            at.setattr(site.store, "get", _unreachable)
            found.append(site.get(job_id, path))
        site.post("close", job_id, session=session)
        found.append(site.get(job_id, path))
        monkeypatch.setattr(window_rate, "BURST", 0.0)
        found.append(site.get(job_id, path))
        assert [answer.status_code for answer in found] == [401, 404, 405, 503, 409, 429]
        for answer in found:
            told = answer.headers["Content-Security-Policy"]
            assert told == (
                "sandbox; default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            )


def _unreachable(*_: object) -> NoReturn:
    raise OSError("no route to the table")
