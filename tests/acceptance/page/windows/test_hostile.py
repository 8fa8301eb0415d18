"""A tool's page that does harm, in a real browser: it gains nothing.

What it tries stands in `hostile/ui`. A server of somebody else's listens beside: what reaches it has left.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Response, expect

from tests.acceptance.conftest import TOKEN
from tests.acceptance.page.conftest import Site
from tests.acceptance.page.windows.conftest import Listener, launched, said, tool, tool_frame
from tests.acceptance.windows.conftest import Windows

pytestmark = pytest.mark.acceptance

#: The browser tells of everything that it refuses. Dialogs and errors of the app's page are still faults.
REFUSALS = ["error: ", "warning: "]
GONE = "The tool\u2019s page has gone elsewhere and was closed."
LEAVING = (
    "elsewhere", "replaced", "refreshed", "linked", "loaded again", "its own file", "nothing",
    "a document of data", "a document of a blob", "the page of the app", "the jobs of the app",
)  # fmt: skip
#: All that a script of a page can find out about where it is and what it was given.
SEEN = """() => JSON.stringify({
    html: document.documentElement.outerHTML, address: location.href, name, referrer: document.referrer, heard,
    requests: performance.getEntries().map(entry => entry.name), state: history.state,
    ancestors: [...(location.ancestorOrigins ?? [])],
    globals: Object.values(Object.getOwnPropertyDescriptors(window)).map(({ value }) => value)
        .filter(value => typeof value === 'string'),
})"""


def begin(site: Site, windows: Windows, elsewhere: Listener, attack: str) -> str:
    """Opens the hostile page in the owner's window; its job."""
    # That the browser can reach the other server shows that silence means something.
    control = site.page.context.new_page()
    control.goto(f"{elsewhere.url}/control")
    control.close()
    assert "GET /control HTTP/1.1" in elsewhere.heard
    elsewhere.heard.clear()
    site.expected += REFUSALS
    arguments = {"attack": attack, "to": elsewhere.url}
    job_id, _ = launched(windows, "hostile", arguments, connectionName="Dev")
    site.open(f"#/windows/{job_id}")
    return job_id


def names(windows: Windows) -> list[Any]:
    dev = windows.dataverse.environment("dev")
    return sorted((dev.record("account", one) or {})["name"] for one in dev.ids("account"))


def test_nothing_that_it_tries_gains_anything(site: Site, windows: Windows, elsewhere: Listener) -> None:
    sessions: list[Any] = []
    tabs: list[Any] = []
    files: list[Any] = []
    page, before = site.page, names(windows)

    def answered(response: Response) -> None:
        if response.url.endswith("/session"):
            sessions.append(response.json()["session"])

    page.on("response", answered)
    page.on("download", lambda file: files.append(file))
    job_id = begin(site, windows, elsewhere, "all")
    page.context.on("page", lambda tab: tabs.append(tab))
    frame = tool_frame(page, job_id)
    outcome = tool(page).locator("#outcome")
    expect(outcome).to_be_visible(timeout=90_000)
    came: dict[str, str] = json.loads(outcome.inner_text())

    assert len(came) > 75
    assert {name: how for name, how in came.items() if how == "gained"} == {}
    assert elsewhere.heard == []
    assert (tabs, files) == ([], [])
    assert page.url == f"{site.origin}/#/windows/{job_id}"
    assert names(windows) == before
    # Too much or too odd is told so, one message at a time, and the window goes on.
    assert "at most 1048576 are taken" in came["a huge call"]
    assert "at most 16777216 are taken" in came["a huge answer"]
    assert "nested deeper than 100 levels" in came["a deep answer"]
    assert "$.answer" in came["an answer that does not fit"]
    for name in ("deleting", "updating", "creating", "a batch", "an action", "a post to the platform"):
        assert "may change data" in came[name], name
    # The page asks for what is left of its window: nobody's token, and no session.
    (session,) = sessions
    assert len(session) == 43
    seen = frame.evaluate(SEEN)
    for secret in (TOKEN, session):
        assert secret not in seen
        assert [url for url in site.urls if secret in url] == []
        assert secret not in page.content()
    kept = page.evaluate("() => [JSON.stringify(sessionStorage), localStorage.length, document.cookie]")
    assert kept == [f'{{"toolbox.token":"{TOKEN}"}}', 0, ""]
    # Nothing has ended the job: an honest answer still counts.
    body = windows.app.job(job_id).json()
    assert (body["status"], body["window"]["state"]) == ("pending", "open")
    frame.evaluate("() => void toolboxAPI.invocation.returnData({ answer: 'honest' })")
    said(page, "Thank you. The answer has been sent.")
    assert windows.app.ended(job_id)["result"] == {"answer": "honest"}


@pytest.mark.parametrize("attack", LEAVING)
def test_a_page_that_goes_elsewhere_is_closed(
    site: Site, windows: Windows, elsewhere: Listener, attack: str
) -> None:
    job_id = begin(site, windows, elsewhere, attack)
    said(site.page, GONE)
    expect(site.page.get_by_text("The call still waits: open its window again.")).to_be_visible()
    assert elsewhere.heard == []
    assert site.page.url == f"{site.origin}/#/windows/{job_id}"
    assert windows.app.job(job_id).json()["status"] == "pending"


def test_a_page_that_sends_too_many_messages_is_shut_off(
    site: Site, windows: Windows, elsewhere: Listener
) -> None:
    job_id = begin(site, windows, elsewhere, "flood")
    said(site.page, "The tool\u2019s page sends too many messages and was shut off.")
    assert windows.app.job(job_id).json()["status"] == "pending"


def test_a_page_that_answers_several_times_answers_once(
    site: Site, windows: Windows, elsewhere: Listener
) -> None:
    """Answers that are sent at once race each other; one of them counts, and for good."""
    job_id = begin(site, windows, elsewhere, "twice")
    expect(site.page.locator("#view .empty-title")).to_be_visible()
    result = windows.app.ended(job_id)["result"]
    assert result in [{"answer": "one"}, {"answer": "two"}, {"answer": "three"}]
    lines = [line["message"] for line in windows.app.job(job_id).json()["logs"]]
    assert lines.count("a person has given the result") == 1
    assert windows.app.job(job_id).json()["result"] == result


#: A page elsewhere that opens a window's link, frames it too, and sends both what the app's page would send.
OPENER = """<!doctype html><title>Elsewhere</title><link rel="icon" href="data:,"><button id="go">Go</button>
<iframe id="framed" src="LINK"></iframe><p id="tries">0</p><script>
const forged = [{ type: 'return', data: { answer: 'forged' } }, { type: 'close' },
    { type: 'toolbox:port', version: 1 }, { type: 'launch', context: { question: 'forged' }, connections: [] }];
document.getElementById('go').onclick = () => {
    const opened = open('LINK');
    const send = (to) => {
        for (const message of forged) to.postMessage(message, '*', [new MessageChannel().port2]);
        for (let at = 0; at < to.length; at += 1) send(to[at]);
    };
    setInterval(() => {
        for (const to of [opened, document.getElementById('framed').contentWindow]) if (to) send(to);
        document.getElementById('tries').textContent = Number(document.getElementById('tries').textContent) + 1;
        document.title = `cut off: ${opened?.closed}`;
    }, 20);
};
</script>"""


def test_another_site_can_neither_frame_a_window_nor_talk_to_it(
    windows: Windows, elsewhere: Listener, another: Callable[[], Site]
) -> None:
    job_id, link = launched(windows)
    visitor = another()
    visitor.expected += REFUSALS
    elsewhere.page = OPENER.replace("LINK", link)
    page = visitor.page
    page.goto(f"{elsewhere.url}/page")
    with page.context.expect_page() as opened:
        page.locator("#go").click()
    window = opened.value
    # The ticket is not used up by the frame, which shows nothing.
    expect(tool(window).locator("#fault")).to_have_text("Why?")
    tries = int(page.locator("#tries").inner_text())
    visitor.until(lambda: int(page.locator("#tries").inner_text()) > tries + 50)
    expect(page).to_have_title("cut off: true")
    assert [frame.url for frame in page.frames if frame.url.startswith(visitor.origin)] == []
    assert windows.app.job(job_id).json()["status"] == "pending"
    expect(tool(window).locator("#fault")).to_have_text("Why?")
    tool(window).locator("#answer").fill("honest")
    tool(window).get_by_role("button", name="Send").click()
    said(window, "Thank you. The answer has been sent.")
    assert windows.app.ended(job_id)["result"] == {"answer": "honest"}
