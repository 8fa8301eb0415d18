"""The page's modules that need no page, in Node.js: what its numbers count, and how often it asks.

Each test is a script. It imports a module as the browser would, and what it prints as JSON is looked at here.
Time is one that the script moves on by itself, so that nothing waits.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

STATIC = Path(__file__).parents[3] / "shared" / "web" / "static"

#: Timers that go off when the script says so, and a document. `step()` runs the timer that is next and gives
#: the ms that it was set to; `rest()` lets everything come to an end that waits for no timer.
CLOCK = """
let now = 1_900_000_000_000;
const timers = new Map();
let number = 0;
Date.now = () => now;
globalThis.setTimeout = (action, ms) => { timers.set(++number, { action, ms, at: now + ms }); return number; };
globalThis.clearTimeout = (id) => { timers.delete(id); };
const rest = () => new Promise((done) => setImmediate(done));
async function step() {
  const [id, timer] = [...timers].sort(([, one], [, other]) => one.at - other.at)[0] ?? [];
  if (!timer) return null;
  timers.delete(id);
  now = timer.at;
  timer.action();
  await rest();
  return timer.ms;
}
const heard = new Set();
globalThis.document = {
  visibilityState: 'visible',
  addEventListener: (kind, action) => { heard.add(action); },
  removeEventListener: (kind, action) => { heard.delete(action); },
};
async function see(state) {
  document.visibilityState = state;
  for (const action of [...heard]) action();
  await rest();
}
"""


def ran(tmp_path: Path, script: str) -> Any:
    """What a script has printed. In it, `use(name)` imports a module of the page."""
    node = shutil.which("node")
    assert node is not None
    # A copy that says what the browser is told by the tag: these are modules.
    static = tmp_path / "static"
    if not static.exists():
        shutil.copytree(STATIC, static)
        (static / "package.json").write_text('{"type": "module"}')
    use = f"const use = (name) => import(new URL(name, {json.dumps(static.as_uri() + '/')}));\n"
    command = [node, "--input-type=module"]
    done = subprocess.run(command, input=use + script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


class TestNumbers:
    def per_tool(self, tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
        script = f"""
        const {{ perTool }} = await use('stats.js');
        console.log(JSON.stringify(perTool({json.dumps(rows)})));
        """
        return ran(tmp_path, script)

    @pytest.mark.parametrize(
        ("durations", "p50", "p95"),
        [
            ([], None, None),
            ([7], 7, 7),
            ([1, 9], 1, 9),
            ([1, 5, 9], 5, 9),
            ([1, 2, 3, 4], 2, 4),
            (list(range(1, 21)), 10, 19),
            (list(range(1, 22)), 11, 20),
            (list(range(1, 101)), 50, 95),
        ],
    )
    def test_a_quantile_is_a_duration_that_there_was(
        self, tmp_path: Path, durations: list[int], p50: int | None, p95: int | None
    ) -> None:
        """By the nearest rank: the smallest number that is no less than such a part of all of them."""
        script = f"""
        const {{ quantile }} = await use('stats.js');
        console.log(JSON.stringify([0.5, 0.95].map((part) => quantile({durations}, part))));
        """
        assert ran(tmp_path, script) == [p50, p95]

    def test_calls_are_counted_by_their_tool_and_how_they_ended(self, tmp_path: Path) -> None:
        def call(tool: str, status: str, duration: int | None = None) -> dict[str, Any]:
            return {"toolName": tool, "status": status, "durationMs": duration}

        rows = [
            call("copy", "completed", 100), call("copy", "failed", 9), call("copy", "completed", 30),
            # What was rejected was not run: it took no time worth counting.
            call("copy", "rejected", 1), call("copy", "rejected", 1),
            # How long these take is not known yet, whatever they say.
            call("copy", "pending", 5_000), call("copy", "in_progress", 6_000),
            call("send", "completed", 8), call("send", "completed", 2), call("send", "completed", 4),
            call("send", "completed", 6),
            call("", "rejected"),
            call("ask", "in_progress"),
        ]  # fmt: skip
        unknown, ask = (
            {"name": name, "calls": 1, "failures": failed, "rejected": failed, "running": 1 - failed,
             "p50": None, "p95": None}
            for name, failed in (("(unknown)", 1), ("ask", 0))
        )  # fmt: skip
        assert self.per_tool(tmp_path, rows) == [
            {"name": "copy", "calls": 7, "failures": 3, "rejected": 2, "running": 2, "p50": 30, "p95": 100},
            {"name": "send", "calls": 4, "failures": 0, "rejected": 0, "running": 0, "p50": 4, "p95": 8},
            unknown,
            ask,
        ]

    def test_of_nothing_there_are_no_numbers(self, tmp_path: Path) -> None:
        assert self.per_tool(tmp_path, []) == []

    def test_so_many_calls_are_loaded_as_are_counted_and_no_more(self, tmp_path: Path) -> None:
        """The Numbers view loads `upTo(MOST_COUNTED)` of a list that has more, and asks for no page beyond."""
        script = """
        let asked = 0;
        const hex = (n) => n.toString(16).padStart(12, '0');
        globalThis.sessionStorage = { getItem: () => 'a token' };
        globalThis.fetch = async (place) => {
          const query = new URL(place, 'http://localhost').searchParams;
          const from = Number(query.get('cursor') ?? 0);
          const until = from + Number(query.get('limit'));
          asked += 1;
          const invocations = [];
          for (let at = from; at < until; at++) {
            invocations.push({ id: hex(100_000 - at), toolName: 't', status: 'completed' });
          }
          const headers = { 'Content-Type': 'application/json', ETag: '"1"' };
          return new Response(JSON.stringify({ invocations, cursor: String(until) }), { headers });
        };
        const { Calls, MOST_COUNTED } = await use('calls.js');
        const calls = new Calls();
        const early = calls.upTo(MOST_COUNTED); // a view may open before the newest page is here
        await calls.refresh(new AbortController().signal);
        await early;
        const first = asked;
        await calls.upTo(MOST_COUNTED);
        console.log(JSON.stringify([MOST_COUNTED, calls.rows.slice(0, MOST_COUNTED).length, first, asked]));
        """
        # A first page of 50, then ten of 100.
        assert ran(tmp_path, script) == [1_000, 1_000, 11, 11]


def test_lines_that_were_broken_by_hand_are_put_together(tmp_path: Path) -> None:
    text = "Profiles a text: rows,\nand more.\n\nSecond\nparagraph:\n- one\n- two\n1. first\n  indented\nend"
    script = f"""
    const {{ unwrapped }} = await use('format.js');
    console.log(JSON.stringify(unwrapped({json.dumps(text)})));
    """
    told = "Profiles a text: rows, and more.\n\nSecond paragraph:\n- one\n- two\n1. first\n  indented end"
    assert ran(tmp_path, script) == told


class TestPoller:
    def polled(self, tmp_path: Path, script: str) -> Any:
        return ran(tmp_path, f"{CLOCK}\nconst {{ Poller }} = await use('poll.js');\n{script}")

    def test_it_asks_every_two_seconds_while_the_page_is_seen(self, tmp_path: Path) -> None:
        script = """
        let rounds = 0;
        const poller = new Poller(async () => { rounds += 1; }).start();
        await rest();
        const pauses = [await step(), await step(), await step()];
        poller.stop();
        console.log(JSON.stringify({ pauses, rounds, left: timers.size, listening: heard.size }));
        """
        expected = {"pauses": [2_000, 2_000, 2_000], "rounds": 4, "left": 0, "listening": 0}
        assert self.polled(tmp_path, script) == expected

    def test_it_asks_seldom_while_nobody_looks_and_at_once_when_somebody_does(self, tmp_path: Path) -> None:
        script = """
        let rounds = 0;
        const poller = new Poller(async () => { rounds += 1; }).start();
        await rest();
        await see('hidden');
        const before = rounds;
        const pauses = [await step(), await step()];
        const hidden = rounds;
        await see('visible');
        const seen = rounds;
        pauses.push(await step());
        poller.stop();
        console.log(JSON.stringify({ before, hidden, seen, pauses }));
        """
        # The round that was due when the page was hidden still comes.
        expected = {"before": 1, "hidden": 3, "seen": 4, "pauses": [2_000, 30_000, 2_000]}
        assert self.polled(tmp_path, script) == expected

    def test_its_pauses_grow_while_it_fails_up_to_half_a_minute_and_no_longer(self, tmp_path: Path) -> None:
        script = """
        let failing = true;
        const told = [];
        const poller = new Poller(async () => { if (failing) throw new Error('no answer'); }, {
          told: ({ ok, error, retryAt }) => told.push([ok, error?.message, retryAt && retryAt - now]),
        }).start();
        await rest();
        const pauses = [];
        for (let round = 0; round < 5; round++) pauses.push(await step());
        failing = false;
        pauses.push(await step(), await step());
        poller.stop();
        console.log(JSON.stringify({ pauses, told }));
        """
        found = self.polled(tmp_path, script)
        assert found["pauses"] == [4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 2_000]
        # Each round is told of, and of a failed one when the next one comes.
        failed = [[False, "no answer", pause] for pause in (4_000, 8_000, 16_000, 30_000, 30_000, 30_000)]
        assert found["told"] == [*failed, [True, None, None], [True, None, None]]

    @pytest.mark.parametrize(
        ("seconds", "pause"), [("1", 4_000), ("9", 9_000), ("300", 30_000), ("soon", 4_000), (None, 4_000)]
    )
    def test_it_waits_as_long_as_the_server_asks_for(
        self, tmp_path: Path, seconds: str | None, pause: int
    ) -> None:
        """`Retry-After` of a real answer; never shorter than its own pause, and never for minutes."""
        headers = {"Content-Type": "application/json"} | ({} if seconds is None else {"Retry-After": seconds})
        script = f"""
        globalThis.sessionStorage = {{ getItem: () => 'a token' }};
        const headers = {json.dumps(headers)};
        globalThis.fetch = async () => new Response('{{"error": "busy"}}', {{ status: 503, headers }});
        const {{ request }} = await use('api.js');
        const said = [];
        const poller = new Poller((signal) => request('/mcp/invocations', {{ signal }}), {{
          told: ({{ error }}) => said.push(error.message),
        }}).start();
        while (!said.length) await rest();
        const found = await step();
        poller.stop();
        console.log(JSON.stringify([found, said[0]]));
        """
        assert self.polled(tmp_path, script) == [pause, "busy"]

    def test_the_work_may_say_when_it_wants_to_go_on_and_that_it_is_done(self, tmp_path: Path) -> None:
        script = """
        const wanted = [500, undefined, false];
        const told = [];
        new Poller(async () => wanted.shift(), { told: ({ ended }) => told.push(Boolean(ended)) }).start();
        await rest();
        const pauses = [await step(), await step(), await step()];
        console.log(JSON.stringify({ pauses, told, listening: heard.size }));
        """
        expected = {"pauses": [500, 2_000, None], "told": [False, False, True], "listening": 0}
        assert self.polled(tmp_path, script) == expected

    def test_a_round_that_is_given_up_is_no_failure(self, tmp_path: Path) -> None:
        """`now()` while a round is under way: that one is aborted, and nothing is told of it."""
        script = """
        const told = [];
        let rounds = 0;
        const poller = new Poller((signal) => {
          rounds += 1;
          if (rounds > 1) return Promise.resolve();
          return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)));
        }, { told: ({ ok }) => told.push(ok) }).start();
        await rest();
        poller.now();
        await rest();
        const pause = await step();
        poller.stop();
        poller.now();
        await rest();
        console.log(JSON.stringify({ told, rounds, pause, left: timers.size }));
        """
        assert self.polled(tmp_path, script) == {"told": [True, True], "rounds": 3, "pause": 2_000, "left": 0}
