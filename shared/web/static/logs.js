// A job's log: lines as they come, by level, followed to the end or not.

import { button, clear, h, say, shown, text, uid } from './dom.js';
import { count, fullMoment, plural } from './format.js';

const LEVELS = ['debug', 'info', 'warning', 'error'];
// More lines than this are not kept in the page; the app keeps 200.
const MOST = 2_000;
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23',
});

/** The level's rank, 0 to 3. What is unknown counts as info, so that it is never hidden by mistake. */
const rank = (level) => {
  const name = { warn: 'warning', critical: 'error', fatal: 'error', trace: 'debug' }[level] ?? level;
  const found = LEVELS.indexOf(name);
  return found < 0 ? 1 : found;
};

/** `{element, last, take(lines, dropped), start()}`; `last` is the highest number seen. */
export function logPanel() {
  const level = h('select', { id: uid('level') },
    h('option', { value: '0' }, 'All levels'), h('option', { value: '1' }, 'Info and above'),
    h('option', { value: '2' }, 'Warnings and errors'), h('option', { value: '3' }, 'Errors'));
  const follow = h('input', { type: 'checkbox', id: uid('follow'), checked: true });
  const list = h('ol');
  // The lines are not read out as they come: a job may write many a second.
  const box = h('div', { class: 'log', tabindex: '0', role: 'log', 'aria-live': 'off', 'aria-label': 'Log lines' }, list);
  const dropped = h('p', { class: 'hint', hidden: true });
  const empty = h('p', { class: 'hint' }, 'No log lines yet.');
  const counted = h('span', { class: 'hint' });
  const down = button('To the end', () => { follow.checked = true; toEnd(); box.focus(); }, { class: 'button small', hidden: true });

  const panel = { last: 0, element: null, take, restart };

  function take(lines, lost) {
    const news = lines.filter((line) => line.seq > panel.last);
    shown(empty, list.childElementCount + news.length === 0);
    shown(box, list.childElementCount + news.length > 0);
    if (news.length) {
      panel.last = news.at(-1).seq;
      list.append(...news.map(lineOf));
      while (list.childElementCount > MOST) list.firstChild.remove();
      filter();
      if (follow.checked) toEnd();
    }
    shown(dropped, lost > 0 && list.childElementCount < lost + 200);
    if (lost > 0) text(dropped, `${plural(lost, 'older line')} no longer kept by the app.`);
  }

  /** Another attempt begins its own log, or the page begins anew. */
  function restart() {
    panel.last = 0;
    clear(list);
  }

  function filter() {
    const least = Number(level.value);
    let visible = 0;
    for (const line of list.children) {
      const yes = Number(line.dataset.rank) >= least;
      shown(line, yes);
      visible += yes ? 1 : 0;
    }
    const all = list.childElementCount;
    text(counted, visible === all ? plural(all, 'line') : `${count(visible)} of ${plural(all, 'line')}`);
  }

  function toEnd() {
    box.scrollTop = box.scrollHeight;
    shown(down, false);
  }

  box.addEventListener('scroll', () => {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
    // Whoever scrolls up wants to read: following stops until they are back at the end.
    follow.checked = atEnd;
    shown(down, !atEnd);
  }, { passive: true });
  level.addEventListener('change', () => { filter(); if (follow.checked) toEnd(); say(counted.textContent); });
  follow.addEventListener('change', () => { if (follow.checked) toEnd(); });

  // Also when it comes into sight, or its lines wrap otherwise: what is not shown cannot be scrolled.
  new ResizeObserver(() => { if (follow.checked) toEnd(); }).observe(list);

  panel.element = h('section', { class: 'card', 'aria-labelledby': 'log-title' },
    h('div', { class: 'card-head' }, h('h2', { id: 'log-title' }, 'Log'), counted, h('span', { class: 'spring' }), down,
      h('label', { class: 'check', for: follow.id }, follow, 'Follow'),
      h('label', { class: 'sr', for: level.id }, 'Least level shown'), level),
    dropped, empty, box);
  shown(box, false);
  return panel;
}

function lineOf(line) {
  const at = new Date(line.timestamp);
  const level = String(line.level ?? 'info');
  return h('li', { data: { rank: String(rank(level)) } },
    h('time', { datetime: line.timestamp, title: fullMoment(line.timestamp) }, Number.isNaN(at.getTime()) ? '' : clock.format(at)),
    h('span', { class: 'level' }, level), h('span', { class: 'message' }, line.message));
}
