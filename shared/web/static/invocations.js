// The list of invocations.

import { button, clear, h, keyed, say, shown, text, uid } from './dom.js';
import { count, plural } from './format.js';
import { hashOf, requery } from './router.js';
import { isOver, isWaiting, MOST_COUNTED } from './calls.js';
import { badge, heading, lasting, progress, setBadge, setProgress, statusWord, time } from './parts.js';

const STATUSES = ['pending', 'in_progress', 'completed', 'failed', 'rejected'];
// What the server calls `mode`: whether the caller waits.
const WAYS = { 'two-way': 'two-way (the caller waits)', 'one-way': 'one-way (nobody waits)' };
// Scrolled further than this, new rows wait above instead of pushing away what is being read.
const AT_TOP = 160;
// Older rows are fetched this many px before the end comes into sight.
const AHEAD = 600;
// Pages without a fitting row that are read on one's own account; then a person has to ask for more.
const MOST_IN_VAIN = 8;

/** `app`: see app.js. Gives `{element, leave}`. */
export function invocationsView(app, { query }) {
  const { calls } = app;
  const words = h('input', {
    type: 'search', id: uid('search'), autocomplete: 'off', spellcheck: 'false', placeholder: 'Tool, input, error, id',
  });
  words.value = query.get('text') ?? '';
  const wish = (name) => (query.get(name) ? [[query.get(name), query.get(name)]] : []);
  const tool = choice('Any tool', wish('tool'), query.get('tool'));
  const status = choice('Any status', STATUSES.map((one) => [one, statusWord(one)]), query.get('status'));
  const mode = choice('Any mode', [...wish('executionMode'), ...wish('mode')], query.get('executionMode') ?? query.get('mode'));
  const reset = button('Clear filters', () => {
    words.value = tool.value = status.value = mode.value = '';
    filtered();
    words.focus();
  }, { class: 'button quiet' });

  const fresh = button('', () => {
    held = null;
    draw();
    scrollTo({ top: 0, behavior: 'instant' });
    body.querySelector('a')?.focus({ preventScroll: true });
  }, { class: 'button primary fresh', hidden: true });
  const body = h('div', { role: 'rowgroup', class: 'rows' });
  const table = h('div', { role: 'table', class: 'calls', 'aria-labelledby': 'calls-title' }, header(), body);
  const empty = h('div', { class: 'empty', hidden: true });
  const foot = h('p', { class: 'foot', role: 'status' });
  const more = button('Load older calls', () => { vain = 0; older(); }, { hidden: true });
  const end = h('div', { class: 'end' }, more, foot);
  const title = heading('Invocations');
  title.id = 'calls-title';

  /** Ids that were there before scrolling down; null while at the top. */
  let held = null;
  let failed = '';
  let gone = false;

  const filterOf = () => Object.fromEntries(
    Object.entries({ tool: tool.value, status: status.value, [mode.value in WAYS ? 'mode' : 'executionMode']: mode.value })
      .filter(([, value]) => value));

  function filtered() {
    held = null;
    vain = 0;
    failed = '';
    requery({ ...filterOf(), text: words.value.trim() });
    if (calls.select(filterOf())) app.poller.now();
    draw();
    if (words.value.trim()) search();
  }

  // A text is looked for among the rows that are here, so more of them are fetched, up to the limit.
  async function search() {
    const wanted = words.value;
    try {
      await calls.upTo(MOST_COUNTED, () => !gone && words.value === wanted);
      failed = '';
    } catch (error) {
      failed = error.message;
    }
    if (gone || words.value !== wanted) return;
    draw();
    say(`${plural(matching().length, 'call')} found`);
  }

  // Pages in a row that had nothing to show: with filters, what fits may lie far back.
  let vain = 0;
  async function older() {
    more.disabled = true;
    const before = matching().length;
    try {
      await calls.more();
      failed = '';
    } catch (error) {
      failed = error.message;
    }
    more.disabled = false;
    if (gone) return;
    vain = matching().length > before ? 0 : vain + 1;
    draw();
    // An observer tells of changes only: the end may be in sight as it was.
    requestAnimationFrame(() => { if (end.getBoundingClientRect().top < innerHeight + AHEAD) onward(); });
  }

  const onward = () => {
    if (!gone && !more.hidden && !more.disabled && !failed && vain < MOST_IN_VAIN) older();
  };

  const matching = () => {
    const wanted = words.value.trim().toLowerCase();
    return wanted ? calls.rows.slice(0, MOST_COUNTED).filter((call) => searchable(call).includes(wanted)) : calls.rows;
  };

  function draw() {
    const rows = matching();
    if (scrollY > AT_TOP) held ??= new Set(calls.rows.map((call) => call.id));
    else held = null;
    // Older ones come at the end, where they push nothing away.
    const newestHeld = held && firstOf(held);
    const seen = held ? rows.filter((call) => held.has(call.id) || call.id < newestHeld) : rows;
    const waiting = rows.length - seen.length;
    shown(fresh, waiting > 0);
    if (waiting) text(fresh, `${plural(waiting, 'new call')} ↑`);
    keyed(body, seen, { key: (call) => call.id, create: row, update });
    drawEnd(rows.length);
  }

  function drawEnd(found) {
    const searching = Boolean(words.value.trim());
    const filtering = searching || Object.keys(filterOf()).length > 0;
    shown(reset, filtering);
    shown(table, calls.loaded && found > 0);
    shown(empty, calls.loaded && found === 0 && (calls.complete || searching));
    if (!empty.hidden) clear(empty).append(...nothing(filtering));
    shown(more, calls.loaded && !calls.complete && !(searching && calls.rows.length >= MOST_COUNTED));
    let said = '';
    if (!calls.loaded) said = app.failure ? '' : 'Loading…';
    else if (failed) said = `Older calls could not be loaded: ${failed}`;
    else if (searching) {
      // Pages are as long as they are, so that more may be loaded than is looked at.
      const known = calls.rows.length;
      const some = known > MOST_COUNTED || (known === MOST_COUNTED && !calls.complete);
      const looked = some ? `newest ${plural(MOST_COUNTED, 'call')}` : `${plural(known, 'call')} loaded`;
      said = `${plural(found, 'match', 'matches')} among the ${looked}; a search looks at ${count(MOST_COUNTED)} at most.`;
    } else if (calls.incomplete) said = calls.incomplete;
    else if (calls.complete && found) said = `${plural(found, 'call')}. That is all.`;
    text(foot, said);
  }

  const nothing = (filtering) => (filtering
    ? [h('p', { class: 'empty-title' }, 'No call fits these filters.')]
    : [
      h('p', { class: 'empty-title' }, 'Nothing has been called yet.'),
      h('p', {}, 'Calls show here as they come. ',
        h('a', { href: hashOf('tools') }, 'Run a tool'), ' or ', h('a', { href: hashOf('connect') }, 'connect a client'), '.'),
    ]);

  function names() {
    const known = new Set([...app.tools.map((one) => one.name), ...calls.rows.map((call) => call.toolName)]);
    if (tool.value) known.add(tool.value);
    options(tool, 'Any tool', [...known].filter(Boolean).sort().map((name) => [name, name]), tool.value);
    const wished = mode.value in WAYS ? '' : mode.value;
    const modes = new Set(['inline', 'headless', ...app.tools.flatMap((one) => one.executionModes ?? []), wished]);
    options(mode, 'Any mode', [...[...modes].filter(Boolean).map((name) => [name, name]), ...Object.entries(WAYS)], mode.value);
  }

  function changed() {
    names();
    draw();
  }

  const watcher = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) onward();
  }, { rootMargin: `${AHEAD}px` });
  // Durations of what runs go on between two answers.
  const ticking = setInterval(() => {
    for (const node of body.querySelectorAll('[data-running] .lasting')) {
      const call = calls.get(node.closest('[role=row]').dataset.id);
      if (call) text(node, lasting(call));
    }
  }, 1000);
  const atTop = () => {
    if (held && scrollY <= AT_TOP) draw();
    else if (!held && scrollY > AT_TOP) held = new Set(calls.rows.map((call) => call.id));
  };

  let typing = null;
  words.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(filtered, 150); });
  for (const select of [tool, status, mode]) select.addEventListener('change', filtered);
  calls.addEventListener('change', changed);
  app.addEventListener('tools', names);
  addEventListener('scroll', atTop, { passive: true });
  names();
  if (calls.select(filterOf())) app.poller.now();
  draw();
  watcher.observe(end);
  if (words.value) search();

  const filters = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter invocations', on: { submit: (event) => event.preventDefault() } },
    labelled('Search', words, 'grow'), labelled('Tool', tool), labelled('Status', status), labelled('Mode', mode), reset);
  return {
    element: h('div', { class: 'view' }, title, filters, h('div', { class: 'fresh-line' }, fresh), table, empty, end),
    leave() {
      gone = true;
      clearInterval(ticking);
      clearTimeout(typing);
      watcher.disconnect();
      calls.removeEventListener('change', changed);
      app.removeEventListener('tools', names);
      removeEventListener('scroll', atTop);
    },
  };
}

/** What a text search looks at. */
const searchable = (call) => [call.toolName, call.toolId, call.inputSummary, call.error, call.errorCode, call.id,
  call.correlationId, call.owner, call.progress?.message].filter(Boolean).join('\n').toLowerCase();

const firstOf = (set) => { for (const value of set) return value; return ''; };

// What the row's tool and badge say already, and what would leave no room for the rest.
const KNOWN = /^(?:Tool '[^']*' failed: |Input validation failed: )/;
/** The part of an error that tells calls apart, in one line. */
const briefly = (error) => error.split('\n', 1)[0].replace(KNOWN, '');

function choice(any, pairs, value) {
  const select = h('select', { id: uid('choice') });
  options(select, any, pairs, value ?? '');
  return select;
}

function options(select, any, pairs, value) {
  const wanted = [['', any], ...pairs];
  const same = select.options.length === wanted.length && wanted.every(([name], at) => select.options[at].value === name);
  if (!same) select.replaceChildren(...wanted.map(([name, words]) => h('option', { value: name }, words)));
  if (select.value !== value) select.value = value;
}

const labelled = (words, field, more = '') =>
  h('div', { class: `field ${more}` }, h('label', { for: field.id }, words), field);

function header() {
  const names = ['Tool', 'Status', 'Mode', 'Duration', 'When', 'Owner', 'Attempt'];
  return h('div', { role: 'rowgroup', class: 'header' }, h('div', { role: 'row', class: 'row' },
    names.map((name) => h('span', { role: 'columnheader', class: name.toLowerCase() }, name))));
}

function row(call) {
  const cell = (name, ...children) => h('span', { role: 'cell', class: `cell ${name}` }, children);
  return h('div', { role: 'row', class: 'row', data: { id: call.id } },
    cell('tool', h('a', { href: hashOf('invocations', call.id) }, h('span', { class: 'name' }, call.toolName || '(unknown)')),
      h('span', { class: 'second' }, h('span', { class: 'summary' }), h('span', { class: 'also' }))),
    cell('status', badge(), progress('Progress')),
    cell('mode', h('span', {}), h('span', { class: 'way' })), cell('duration', h('span', { class: 'lasting' })), cell('when', time(call.createdAt)), cell('owner'), cell('attempt'));
}

function update(node, call) {
  const [tool, status, mode, took, , owner, attempt] = node.children;
  node.toggleAttribute('data-running', !isOver(call));
  node.toggleAttribute('data-waiting', isWaiting(call));
  text(tool.firstChild.firstChild, call.toolName || '(unknown)');
  // That it was cancelled, its badge says.
  const failure = isOver(call) && call.errorCode !== 'cancelled' && call.error;
  const [summary, also] = tool.lastChild.children;
  summary.classList.toggle('bad', Boolean(failure));
  text(summary, failure ? briefly(failure) : call.inputSummary === '{}' ? '' : call.inputSummary);
  // Shown where there is no room for the columns of the two.
  text(also, [call.attempt > 1 ? `attempt ${call.attempt}` : '', call.owner].filter(Boolean).join(' · '));
  setBadge(status.firstChild, call);
  setProgress(status.lastChild, call);
  text(mode.firstChild, call.executionMode);
  text(mode.lastChild, call.mode === 'one-way' ? ', one-way' : '');
  text(took.firstChild, lasting(call));
  text(owner, call.owner);
  text(attempt, call.attempt ? `${call.attempt}` : '');
}

