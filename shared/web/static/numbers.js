// Numbers and a small chart, over the calls that are loaded.

import { button, clear, h, shown, svg, text } from './dom.js';
import { count, cut, duration, moment, plural } from './format.js';
import { hashOf } from './router.js';
import { isOver, MOST_COUNTED } from './calls.js';
import { heading } from './parts.js';
import { perTool } from './stats.js';

// Bars of the chart, which has room for so many tools.
const MOST_BARS = 12;
const MOST_WIDTH = 720;
const STEP = 28;
const LEGEND = [['good', 'completed'], ['bad', 'failed or rejected'], ['run', 'running']];

export function numbersView(app) {
  const { calls } = app;
  const over = h('p', { class: 'foot', role: 'status' });
  const totals = h('dl', { class: 'totals' });
  const chart = h('figure', { class: 'card chart' });
  const table = h('div', { class: 'card scroll', tabindex: '0', role: 'region', 'aria-label': 'Numbers per tool' });
  const again = button('Try again', () => load(), { hidden: true });
  let gone = false;
  let failed = '';
  let drawn = '';
  calls.select({});
  app.poller.now();

  async function load() {
    try {
      failed = '';
      await calls.upTo(MOST_COUNTED, () => !gone);
    } catch (error) {
      failed = error.message;
    }
    if (!gone) draw();
  }

  function draw() {
    const rows = calls.rows.slice(0, MOST_COUNTED);
    text(over, said(rows));
    shown(again, Boolean(failed));
    const tools = perTool(rows);
    const now = JSON.stringify(tools);
    shown(chart, rows.length > 0);
    shown(table, rows.length > 0);
    if (now === drawn || !rows.length) return;
    drawn = now;
    drawTotals(rows, tools);
    clear(chart).append(h('figcaption', {}, h('h2', {}, 'Calls per tool'), h('p', { class: 'legend' },
      LEGEND.map(([kind, words]) => h('span', {}, h('span', { class: `swatch ${kind}` }), words, ' ')))), bars(tools));
    clear(table).append(tableOf(tools));
  }

  function said(rows) {
    if (failed) return `Older calls could not be loaded: ${failed}`;
    if (!calls.loaded) return 'Loading…';
    if (!rows.length) return 'Nothing has been called yet.';
    const since = `since ${moment(rows.at(-1).createdAt)}`;
    if (rows.length >= MOST_COUNTED) return `Over the newest ${count(MOST_COUNTED)} calls, ${since}; older ones are not counted.`;
    return calls.complete ? `Over all ${plural(rows.length, 'call')}, ${since}.` : `Over the ${plural(rows.length, 'call')} loaded so far, ${since}; at most ${count(MOST_COUNTED)} are counted.`;
  }

  function drawTotals(rows, tools) {
    const failures = tools.reduce((sum, tool) => sum + tool.failures, 0);
    const ended = rows.filter(isOver).length;
    const pairs = [['Calls', count(rows.length)], ['Failed', count(failures)], ['Failed, of those ended', ended ? `${((failures / ended) * 100).toFixed(1)} %` : '–'],
      ['Running', count(rows.length - ended)], ['Tools called', count(tools.length)]];
    clear(totals).append(...pairs.map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value))));
  }

  const changed = () => {
    draw();
    if (calls.loaded && !calls.complete && calls.rows.length < MOST_COUNTED && !failed) load();
  };
  calls.addEventListener('change', changed);
  draw();
  if (calls.loaded) load();
  return {
    element: h('div', { class: 'view' }, heading('Numbers'), over, again, totals, chart, table),
    leave() {
      gone = true;
      calls.removeEventListener('change', changed);
    },
  };
}

/** Stacked bars. The table below says the same in words, so that the picture itself needs none. */
function bars(tools) {
  const seen = tools.slice(0, MOST_BARS);
  const most = Math.max(...seen.map((tool) => tool.calls), 1);
  // In px of the page, so that the letters are as large as all others.
  const width = Math.min(MOST_WIDTH, Math.max(document.documentElement.clientWidth - 84, 240));
  const names = Math.min(200, width * 0.34);
  const scale = (width - names - 50) / most;
  const height = seen.length * STEP + 4;
  const parts = seen.flatMap((tool, at) => {
    const y = at * STEP + 6;
    const good = tool.calls - tool.failures - tool.running;
    let x = names;
    const bar = (number, kind) => {
      const length = number * scale;
      const made = number > 0 && svg('rect', { x, y, width: Math.max(length, 1.5), height: STEP - 14, class: `bar ${kind}` });
      x += length;
      return made;
    };
    const made = [bar(good, 'good'), bar(tool.failures, 'bad'), bar(tool.running, 'run')];
    const middle = y + (STEP - 14) / 2;
    return [
      svg('text', { x: 0, y: middle, class: 'name', 'dominant-baseline': 'central' }, cut(tool.name, Math.floor(names / 8))),
      ...made,
      svg('text', { x: x + 8, y: middle, class: 'amount', 'dominant-baseline': 'central' }, count(tool.calls)),
    ].filter(Boolean);
  });
  return [
    svg('svg', { viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true', class: 'bars', preserveAspectRatio: 'xMinYMin meet' }, ...parts),
    tools.length > MOST_BARS && h('p', { class: 'hint' }, `The ${MOST_BARS} most called of ${plural(tools.length, 'tool')}.`),
  ].filter(Boolean).reduce((place, part) => (place.append(part), place), h('div', {}));
}

/** How many calls of a tool failed, and were rejected, each number a link to them. */
function failuresOf(tool) {
  const link = (status, words) => h('a', { class: 'bad', href: hashOf('invocations', '', { tool: tool.name, status }), 'aria-label': words.endsWith(status) ? null : `${words} ${status}` }, words);
  const failed = tool.failures - tool.rejected;
  return [failed > 0 && link('failed', count(failed)), failed > 0 && tool.rejected > 0 && ' + ',
    tool.rejected > 0 && link('rejected', `${count(tool.rejected)} rejected`), tool.failures === 0 && '0'];
}

function tableOf(tools) {
  const number = (value, more = '') => h('td', { class: `number ${more}` }, value);
  const longest = Math.max(...tools.map((tool) => tool.p95 ?? 0), 1);
  return h('table', { class: 'per-tool' }, h('caption', { class: 'sr' }, 'Calls, failures and durations per tool'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Tool'), ['Calls', 'Failed', 'Running', 'p50', 'p95'].map((name) => h('th', { scope: 'col', class: name === 'Running' ? 'number running' : 'number' }, name)), h('th', { scope: 'col', class: 'range-head' }, 'p50 to p95'))),
    h('tbody', {}, tools.map((tool) => h('tr', {},
      h('th', { scope: 'row' }, h('a', { href: hashOf('invocations', '', { tool: tool.name }) }, tool.name)),
      number(count(tool.calls)), number(failuresOf(tool)), number(count(tool.running), 'running'),
      number(tool.p50 === null ? '–' : duration(tool.p50)), number(tool.p95 === null ? '–' : duration(tool.p95)),
      h('td', { class: 'range' }, range(tool, longest))))));
}

/** p50 and p95 on a common scale; logarithmic, since tools differ by orders of magnitude. */
function range(tool, longest) {
  if (tool.p50 === null) return null;
  const at = (ms) => 4 + (Math.log1p(ms) / Math.log1p(longest)) * 132;
  return svg('svg', { viewBox: '0 0 140 12', width: 140, height: 12, 'aria-hidden': 'true' },
    svg('line', { x1: 4, x2: 136, y1: 6, y2: 6, class: 'axis' }),
    svg('line', { x1: at(tool.p50), x2: at(tool.p95), y1: 6, y2: 6, class: 'span' }),
    svg('circle', { cx: at(tool.p50), cy: 6, r: 3.5, class: 'low' }), svg('circle', { cx: at(tool.p95), cy: 6, r: 3.5, class: 'high' }));
}
