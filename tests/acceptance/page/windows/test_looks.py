"""The window's view, by day and by night: no serious fault that axe-core finds, and a picture to look at."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.page.conftest import AXE, PATIENCE, PICTURES, SIZES, Scheme
from tests.acceptance.page.test_accessibility import faults, picture
from tests.acceptance.page.windows.conftest import launched, said, tool, tool_frame, watched
from tests.acceptance.windows.conftest import Windows

pytestmark = pytest.mark.acceptance


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Scheme:
    found: Scheme = request.param
    return found


def inside(page: Page, job_id: str) -> list[str]:
    """What axe-core calls serious or critical in the tool's page, which it cannot reach from without."""
    frame = tool_frame(page, job_id)
    frame.evaluate(AXE.read_text())
    found = frame.evaluate("() => axe.run(document)")["violations"]
    return [
        f"{one['id']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("size", SIZES)
def test_a_window_has_no_serious_fault(browser: Browser, windows: Windows, scheme: Scheme, size: str) -> None:
    """The picker, with many records, with some picked, with a fault; asked back; ended."""
    width, height = SIZES[size]
    context = browser.new_context(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": height},
        bypass_csp=True, locale="en-GB",
    )  # fmt: skip
    context.set_default_timeout(PATIENCE)
    site = watched(context.new_page(), windows.app)
    wrong: dict[str, list[str]] = {}
    PICTURES.mkdir(parents=True, exist_ok=True)

    def looked(view: str, job_id: str | None = None) -> None:
        found = faults(site.page) + ([] if job_id is None else inside(site.page, job_id))
        wide = site.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if found or wide > 0:
            wrong[view] = [*found, f"wider by {wide} px"]
        picture(site.page, PICTURES / f"window-{view}-{size}-{scheme}.png")

    asked = {"entityName": "account", "allowMultiSelect": True}
    job_id, _ = launched(windows, "entity-picker", asked, connectionName="Dev")
    page = site.open()
    expect(page.get_by_role("region", name="Waiting for you")).to_be_visible()
    looked("waiting")
    site.go(f"#/windows/{job_id}")
    expect(tool(page).get_by_text("12 records.")).to_be_visible()
    tool(page).get_by_label("Account 00002").check()
    tool(page).get_by_label("Account 00005").check()
    looked("picker", job_id)
    page.get_by_role("button", name="Close without an answer").click()
    looked("asked-back", job_id)
    page.get_by_role("button", name="Close it").click()
    said(page, "Closed without an answer.")
    looked("closed")
    broken, _ = launched(windows, "entity-picker", {"entityName": "no_such_table"}, connectionName="Dev")
    site.go(f"#/windows/{broken}")
    expect(tool(page).get_by_role("alert")).to_contain_text("no_such_table")
    looked("picker-fault", broken)
    context.close()
    assert wrong == {}


def test_search_and_buttons_stay_in_sight_among_many_records(browser: Browser, windows: Windows) -> None:
    """On a low screen it is the list that scrolls."""
    dev = windows.dataverse.environment("dev")
    for number in range(60):
        dev.insert("sample_project", {"sample_name": f"Plan {number:02}"})
    job_id, _ = launched(windows, "entity-picker", {"entityName": "sample_project"}, connectionName="Dev")
    context = browser.new_context(viewport={"width": 1280, "height": 720}, locale="en-GB")
    context.set_default_timeout(PATIENCE)
    site = watched(context.new_page(), windows.app)
    page = site.open(f"#/windows/{job_id}")
    expect(tool(page).get_by_text("50 records, and there are more.")).to_be_visible()
    tool(page).get_by_label("Plan 49").check()
    for name in ("Search", "Show more", "Use it"):
        expect(tool(page).get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    picture(page, PICTURES / "window-many-wide-light.png")
    tool(page).get_by_role("button", name="Use it").click()
    said(page, "Thank you. The answer has been sent.")
    assert windows.app.ended(job_id)["result"]["selectedName"] == "Plan 49"
    site.check()
    context.close()
