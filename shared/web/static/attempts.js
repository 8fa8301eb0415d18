// When the attempts of a job began and ended, and how.

import { attribute, h, keyed, shown, text } from './dom.js';
import { duration, fullMoment, moment } from './format.js';

const WORDS = {
  queued: 'Queued', running: 'Running', completed: 'Completed', failed: 'Failed', timeout: 'Out of time', cancelled: 'Cancelled',
  lost: 'Worker lost',
};
// The look of a badge, which is that of a call's status.
const STATES = { queued: 'pending', running: 'in_progress', completed: 'completed', cancelled: 'cancelled' };

/**
 * What is known of each attempt, oldest first: `{attempt, startedAt, endedAt, outcome, queued, ran}`, the last two in
 * ms, null where it cannot be told. `now`: ms, for the attempt that runs.
 */
export function attemptsOf(job, now) {
  const known = job.attempts ?? olderJob(job);
  return known.map((one, at) => {
    const began = Date.parse(one.startedAt);
    const ended = Date.parse(one.endedAt ?? '');
    // The wait of the first begins with the call; that of the others when the one before was lost.
    const since = one.attempt === 1 ? Date.parse(job.createdAt) : Date.parse(known[at - 1]?.endedAt ?? '');
    const until = Number.isNaN(ended) ? now : ended;
    return { ...one, queued: Number.isNaN(since) ? null : Math.max(began - since, 0), ran: Math.max(until - began, 0) };
  });
}

// Rows of an older release tell of the newest attempt only.
const olderJob = (job) => (job.attempt > 0 && job.startedAt ? [{ attempt: job.attempt, startedAt: job.startedAt, endedAt: job.completedAt }] : []);

/** Since when a job waits for a worker, in ms; null while it does not. */
export function waitsSince(job) {
  if (job.status !== 'pending' || job.window) return null;
  return Date.parse(job.attempts?.at(-1)?.endedAt ?? job.createdAt);
}

/** The card of a job that took more than one attempt. `show(attempts, waiting)`: ms that the next one is waited for. */
export function attemptPanel() {
  const body = h('tbody', {});
  const number = (name) => h('th', { scope: 'col', class: 'number' }, name);
  const element = h('section', { class: 'card', 'aria-labelledby': 'attempts-title', hidden: true },
    h('div', { class: 'card-head' }, h('h2', { id: 'attempts-title' }, 'Attempts')),
    h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Times of the attempts' }, h('table', { class: 'attempts' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'No.'), h('th', { scope: 'col' }, 'Outcome'), h('th', { scope: 'col', class: 'started' }, 'Started'), number('Queued for'), number('Ran for'))),
      body)));
  return {
    element,
    show(attempts, waiting) {
      const rows = waiting === null || !attempts.length ? attempts : [...attempts, { attempt: attempts.at(-1).attempt + 1, startedAt: '', queued: waiting, ran: null }];
      shown(element, rows.length > 1);
      if (rows.length > 1) keyed(body, rows, { key: (one) => one.attempt, create: row, update });
      return rows.length > 1;
    },
  };
}

const row = (one) => h('tr', {}, h('th', { scope: 'row' }, String(one.attempt)),
  h('td', {}, h('span', { class: 'badge' }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', {}))),
  h('td', { class: 'started' }, h('time', {})), h('td', { class: 'number' }), h('td', { class: 'number' }));

function update(node, one) {
  const [, outcome, started, queued, ran] = node.children;
  attribute(started.firstChild, 'datetime', one.startedAt || null);
  attribute(started.firstChild, 'title', fullMoment(one.startedAt) || null);
  text(started.firstChild, moment(one.startedAt) || '–');
  text(queued, one.queued === null ? '–' : duration(one.queued));
  text(ran, one.ran === null ? '–' : duration(one.ran));
  const state = one.outcome ?? (one.startedAt ? 'running' : 'queued');
  attribute(outcome.firstChild, 'data-state', STATES[state] ?? 'failed');
  text(outcome.firstChild.lastChild, WORDS[state] ?? state);
}
