"""Takes the README's picture of the page from the running app, with calls of every kind in it.

.venv/bin/python -m tests.support.readme_picture
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import ViewportSize, sync_playwright

from infra.local.azurite import Azurite
from infra.local.dev.browser import found
from tests.acceptance.conftest import ROOT, TOKEN, App, start_app

PICTURE: Final = ROOT / "docs" / "images" / "page.png"
SAMPLE: Final = ROOT / "tools" / "csv_profile" / "sample.csv"
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SIZE: Final[ViewportSize] = {"width": 1180, "height": 830}


def make_calls(app: App) -> None:
    """One that a person has to answer, jobs, calls that are none, and two that went wrong."""
    csv = SAMPLE.read_text("utf-8")
    job = {"executionMode": "headless", "mode": "one-way"}
    app.call("csv_profile", {"csv": csv})
    for _ in range(3):
        app.ended(app.call("csv_profile", {"csv": csv}, job)["structuredContent"]["jobId"])
    app.call("csv_profile", {"csv": 5})
    app.call("csv_profile", {"csv": csv}, {"executionMode": "headless"})
    failed = app.call("dataverse-query", {"fetchXml": "<fetch><entity name='account'/></fetch>"}, job)
    app.ended(failed["structuredContent"]["jobId"])
    app.call("tool_list", {})
    app.call("csv_profile", {"csv": csv})
    app.call("entity-picker", {"entityName": "account"}, {"executionMode": "windowed", "mode": "one-way"})


def make_long_call(app: App) -> None:
    """A job that runs for some seconds."""
    large = "id,name,amount\n" + "".join(f"{row},name {row % 977},{row * 7 % 1000}\n" for row in range(300_000))
    app.call("csv_profile", {"csv": large}, {"executionMode": "headless", "mode": "one-way"})


def take(app: App, picture: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found(), args=list(FLAGS))
        page = browser.new_page(viewport=SIZE, color_scheme="light", locale="en-GB", reduced_motion="reduce")
        page.goto(f"http://127.0.0.1:{app.port}/#/invocations")
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        page.get_by_text("entity-picker").first.wait_for()
        page.wait_for_load_state("networkidle")
        make_long_call(app)
        page.get_by_role("progressbar").first.wait_for()
        page.mouse.move(SIZE["width"] / 2, 5)  # away from every row
        picture.parent.mkdir(exist_ok=True)
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        Azurite.start(Path(name) / "storage", free_ports=True) as azurite,
    ):
        app = start_app(Path(name), azurite.connection_string)
        try:
            make_calls(app)
            take(app, PICTURE)
        finally:
            app.stop()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
