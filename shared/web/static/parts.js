// Small parts that several views show: badges, progress, facts, notes.

import { attribute, h, shown, text } from './dom.js';
import { duration, fullMoment, moment, now } from './format.js';
import { isOver, standing } from './calls.js';

const WORDS = {
  pending: 'Queued',
  in_progress: 'Running',
  completed: 'Completed',
  failed: 'Failed',
  rejected: 'Rejected',
  cancelled: 'Cancelled',
  cancelling: 'Cancelling',
  waiting: 'Waiting for you',
  'no-result': 'No result',
};

/** A status in a word, a colour and a shape: none of them alone. */
export function badge() {
  return h('span', { class: 'badge' }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', {}));
}

export function setBadge(element, call) {
  const state = standing(call);
  attribute(element, 'data-state', state in WORDS ? state : 'other');
  text(element.lastChild, WORDS[state] ?? state);
}

export const statusWord = (status) => WORDS[status] ?? status;

/** A progress bar with its message, for a call that runs; without either it is hidden. */
export function progress(label) {
  const bar = h('progress', { max: 100, 'aria-label': label });
  const words = h('span', { class: 'progress-words' });
  return h('div', { class: 'progress', hidden: true }, bar, words);
}

export function setProgress(element, call) {
  const told = call.progress;
  const visible = call.status === 'in_progress' && told && typeof told.percent === 'number';
  shown(element, visible);
  if (!visible) return;
  const [bar, words] = element.children;
  if (bar.value !== told.percent) bar.value = told.percent;
  text(words, told.message ? `${told.percent}% · ${told.message}` : `${told.percent}%`);
}

/** How long a call took, or takes so far. */
export function lasting(call) {
  if (typeof call.durationMs === 'number') return duration(call.durationMs);
  if (isOver(call)) return '';
  return duration(now() - Date.parse(call.createdAt));
}

export function time(iso) {
  return h('time', { datetime: iso, title: fullMoment(iso) }, moment(iso));
}

/** A list of facts: pairs of a term and what it is. Empty ones are left out. */
export function facts(pairs, props) {
  return h('dl', { class: 'facts', ...props }, pairs
    .filter(([, value]) => value !== '' && value !== null && value !== undefined)
    .map(([term, value]) => h('div', {}, h('dt', {}, term), h('dd', {}, value))));
}

/** A message in a box. `kind`: info, warning, error, good. */
export function note(kind, title, ...words) {
  return h('div', { class: `note ${kind}`, role: kind === 'error' ? 'alert' : null },
    title && h('strong', {}, title), words.length > 0 && h('div', {}, ...words));
}

export const chips = (words, label) =>
  words.length > 0 && h('ul', { class: 'chips', 'aria-label': label }, words.map((word) => h('li', {}, word)));

/** The heading of a view; it takes the focus when the view opens. */
export const heading = (words) => h('h1', { tabindex: '-1' }, words);
