// A JSON value to look into. Parts are made when they are opened, so that a large value costs nothing unseen.

import { button, h } from './dom.js';
import { count, cut } from './format.js';

// Entries shown at once, and characters of one text.
const PAGE = 100;
const MOST_TEXT = 5_000;
// Small values stand open from the start.
const OPEN_ENTRIES = 30;
const OPEN_DEPTH = 3;

/** The tree of a value. */
export function tree(value) {
  return h('div', { class: 'tree' }, node(null, value, 0));
}

function node(name, value, depth) {
  const isList = Array.isArray(value);
  if (value === null || typeof value !== 'object' || (isList ? value.length === 0 : Object.keys(value).length === 0)) {
    return h('div', { class: 'leaf' }, label(name), leaf(value));
  }
  const entries = isList ? value.length : Object.keys(value).length;
  const body = h('div', { class: 'branch' });
  const branch = h('details', { open: depth < OPEN_DEPTH && entries <= OPEN_ENTRIES },
    h('summary', {}, label(name), h('span', { class: 'kind' }, isList ? `[${count(entries)}]` : `{${count(entries)}}`)),
    body);
  let made = false;
  const make = () => {
    if (made || !branch.open) return;
    made = true;
    const pairs = isList ? value.map((item, at) => [at, item]) : Object.entries(value);
    grow(body, pairs, 0, depth);
  };
  branch.addEventListener('toggle', make);
  make();
  return branch;
}

function grow(body, pairs, from, depth) {
  for (const [name, item] of pairs.slice(from, from + PAGE)) body.append(node(String(name), item, depth + 1));
  const left = pairs.length - from - PAGE;
  if (left <= 0) return;
  const more = button(`${count(left)} more`, () => {
    const last = more.previousElementSibling;
    more.remove();
    grow(body, pairs, from + PAGE, depth);
    last.nextElementSibling.querySelector('summary')?.focus();
  }, { class: 'button small' });
  body.append(more);
}

const label = (name) => name !== null && [h('span', { class: 'key' }, name), h('span', { class: 'colon' }, ': ')];

function leaf(value) {
  if (typeof value !== 'string') {
    const words = value === null ? 'null' : JSON.stringify(value);
    return h('span', { class: `value ${value === null ? 'null' : typeof value}` }, words);
  }
  const shown = h('span', { class: 'value string' }, cut(value, MOST_TEXT));
  if (value.length <= MOST_TEXT) return shown;
  return [shown, button(`all ${count(value.length)} characters`, (event) => {
    shown.textContent = value;
    event.currentTarget.remove();
  }, { class: 'button small' })];
}
