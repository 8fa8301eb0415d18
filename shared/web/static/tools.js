// The tools: what there is, what is broken and why, what each takes, and running it.

import { ApiError, path, request } from './api.js';
import { button, clear, copyButton, h, say, shown, text, uid } from './dom.js';
import { Blobs } from './files.js';
import { cut, duration, madeAt, now, plural, unwrapped } from './format.js';
import { argumentForm, isNothing, jsonEditor } from './form.js';
import { hashOf } from './router.js';
import { chips, facts, heading, note } from './parts.js';
import { argumentsOf, isObject, typeWords } from './schema.js';
import { resultParts } from './result.js';
import { tree } from './tree.js';

// [hint, its value, what is shown]. Without a word of it a tool counts as destructive, so that a no is news too.
const HINTS = [
  ['readOnlyHint', true, 'read-only'], ['destructiveHint', true, 'destructive'], ['destructiveHint', false, 'not destructive'],
  ['idempotentHint', true, 'idempotent'], ['openWorldHint', true, 'open world'],
];

// ms by which the server's clock may seem to differ from this one's.
const CLOCKS = 3_000;

// Reasons of one contract are told in one text, each with its path.
const SEVERAL = /; (?=\$[.:[])/;

export function toolsView(app, { query }) {
  const words = h('input', { type: 'search', id: uid('search'), autocomplete: 'off', placeholder: 'Name or description' });
  words.value = query.get('text') ?? '';
  const faults = h('div', {});
  const list = h('div', {});
  const said = h('p', { class: 'foot', role: 'status' });

  function draw() {
    drawFaults();
    const wanted = words.value.trim().toLowerCase();
    const found = app.tools.filter((tool) => `${tool.name}\n${tool.title}\n${tool.description}`.toLowerCase().includes(wanted));
    const own = found.filter(isOwn);
    const others = found.filter((tool) => !isOwn(tool));
    clear(list).append(...group(own.length && others.length ? 'From this app’s tools folder' : '', own), ...group(own.length && others.length ? 'Built in, and from other servers' : '', others));
    if (app.toolsError && !app.tools.length) text(said, app.toolsError);
    else if (!app.toolsLoaded) text(said, 'Loading…');
    else text(said, wanted ? `${plural(found.length, 'tool')} of ${app.tools.length}` : found.length ? plural(found.length, 'tool') : 'The app has no tools.');
  }

  function drawFaults() {
    clear(faults);
    if (!app.faults.length) return;
    faults.append(h('section', { class: 'note error', 'aria-labelledby': 'broken-title' },
      h('h2', { id: 'broken-title' }, `${plural(app.faults.length, 'broken tool')}`),
      h('p', {}, 'What is wrong in these folders keeps their tools from being published:'),
      h('dl', { class: 'faults' }, app.faults.map(({ folder, reasons }) => h('div', {}, h('dt', {}, h('code', {}, folder ? `tools/${folder}` : 'tools')),
        (reasons ?? []).flatMap((reason) => reason.split(SEVERAL)).map((reason) => h('dd', {}, reason)))))));
  }

  words.addEventListener('input', draw);
  app.addEventListener('tools', draw);
  draw();
  app.loadTools();
  return {
    element: h('div', { class: 'view' }, heading('Tools'), faults,
      h('form', { class: 'filters', role: 'search', 'aria-label': 'Find tools', on: { submit: (event) => event.preventDefault() } },
        h('div', { class: 'field grow' }, h('label', { for: words.id }, 'Search'), words)), list, said),
    leave: () => app.removeEventListener('tools', draw),
  };
}

// Built-in tools, and those of other servers, are from no folder: words stand in its place.
const isOwn = (tool) => /^[\w.-]+$/.test(tool.folder ?? '');

const group = (title, tools) => (tools.length ? [title && h('h2', { class: 'group-title' }, title), h('ul', { class: 'cards' }, tools.map(card))].filter(Boolean) : []);

function card(tool) {
  return h('li', { class: 'card link' },
    h('h3', {}, h('a', { href: hashOf('tools', tool.name) }, cut(tool.title || tool.name, 80))),
    tool.title && tool.title !== tool.name && h('code', { class: 'id' }, tool.name),
    h('p', { class: 'clamp' }, cut(tool.description ?? '', 400)),
    chips([...(tool.executionModes ?? []), ...hints(tool)], 'How it runs'));
}

const hints = (tool) => HINTS.filter(([name, value]) => tool.annotations?.[name] === value).map(([, , words]) => words);

export function toolView(app, { id }) {
  const place = h('div', {});
  let shownTool = null;
  let leave = () => {};
  const title = heading(id);

  function draw() {
    const tool = app.tools.find((one) => one.name.toLowerCase() === id.toLowerCase());
    if (tool === shownTool && tool) return;
    if (!tool) {
      if (!app.toolsLoaded) return void clear(place).append(h('p', { class: 'foot' }, app.toolsError || 'Loading…'));
      if (shownTool) return;
      clear(place).append(h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, 'The app has no such tool.'), h('p', {}, 'Broken ones are listed with ', h('a', { href: hashOf('tools') }, 'all tools'), '.')));
      return;
    }
    // A form that is being filled in is not taken away because the list was read again.
    if (shownTool && JSON.stringify(shownTool) === JSON.stringify(tool)) return;
    shownTool = tool;
    text(title, tool.title || tool.name);
    leave();
    const run = runPanel(app, tool);
    leave = run.leave;
    clear(place).append(about(tool), h('div', { class: 'columns' }, h('div', { class: 'main-column' }, run.element), h('aside', { class: 'side', 'aria-label': 'Facts' }, toolFacts(tool))), schemas(tool));
  }

  app.addEventListener('tools', draw);
  draw();
  app.loadTools();
  return {
    element: h('div', { class: 'view' }, h('p', { class: 'back' }, h('a', { href: hashOf('tools') }, '← Tools')), title, place),
    leave() {
      app.removeEventListener('tools', draw);
      leave();
    },
  };
}

const about = (tool) => h('div', { class: 'lead' },
  h('p', { class: 'prose' }, unwrapped(tool.description ?? '')),
  chips(hints(tool), 'What it does to its surroundings'));

function toolFacts(tool) {
  const marked = (all, first) => all?.map((one) => (one === first && all.length > 1 ? `${one} (default)` : one)).join(', ');
  return facts([
    ['Name', h('code', { class: 'id' }, tool.name)],
    ['Runs', marked(tool.executionModes, tool.defaultExecutionMode)],
    ['Modes', marked(tool.modes, tool.defaultMode)],
    ['Time limit', tool.timeoutMs ? duration(tool.timeoutMs) : ''],
    ['Attempts', tool.maxAttempts > 1 ? `up to ${tool.maxAttempts}` : tool.maxAttempts],
    ['Capabilities', (tool.capabilities ?? []).join(', ')],
    ['From', isOwn(tool) ? h('code', { class: 'id' }, `tools/${tool.folder}`) : tool.folder],
    ['Calls', h('a', { href: hashOf('invocations', '', { tool: tool.name }) }, 'Its invocations')],
  ]);
}

function schemas(tool) {
  const part = (title, schema) => schema && h('details', { class: 'card schema' }, h('summary', {}, h('h2', {}, title)),
    h('div', { class: 'part-head' }, copyButton('Copy JSON', () => JSON.stringify(schema, null, 2))), table(schema), tree(schema));
  return h('div', { class: 'schemas' }, part('Input schema', tool.inputSchema), part('Output schema', tool.outputSchema));
}

function table(schema) {
  if (!isObject(schema.properties)) return null;
  const required = new Set(schema.required ?? []);
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Properties' }, h('table', {},
    h('thead', {}, h('tr', {}, ['Name', 'Type', 'Given', 'Description'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, Object.entries(schema.properties).map(([name, one]) => h('tr', {},
      h('th', { scope: 'row' }, h('code', {}, name)), h('td', {}, typeWords(one, schema)),
      h('td', {}, required.has(name) ? 'always' : 'maybe'), h('td', {}, cut(String(one?.description ?? ''), 300)))))));
}

/** The form, and what came of the last run. */
function runPanel(app, tool) {
  const schema = argumentsOf(tool.inputSchema);
  const form = argumentForm(schema);
  const has = Object.keys(schema.properties).length > 0;
  const editor = jsonEditor(uid('json'), { rows: 12, must: (value) => (isObject(value) ? '' : 'must be a JSON object') });
  const asJson = h('div', { class: 'field', hidden: true }, h('label', { for: editor.area.id }, 'Arguments, as JSON'), editor.element);
  const modes = tool.executionModes ?? ['inline'];
  const how = h('fieldset', { class: 'choices', hidden: modes.length < 2 }, h('legend', {}, 'Run it'),
    modes.map((mode) => {
      const radio = h('input', { type: 'radio', name: 'run-mode', value: mode, id: uid('mode'), checked: mode === (tool.defaultExecutionMode ?? modes[0]) });
      return h('label', { for: radio.id }, radio, h('span', {}, mode), h('span', { class: 'hint' }, MODE_WORDS[mode] ?? ''));
    }));
  const named = namedFields(tool);
  const toggle = button('Edit as JSON', swap, { class: 'button quiet' });
  const run = h('button', { type: 'submit', class: 'button primary' }, 'Run');
  const give = button('Stop waiting', () => abort?.abort(), { hidden: true });
  const said = h('span', { class: 'hint', role: 'status' });
  const came = h('div', { class: 'came' });
  const blobs = new Blobs();
  let abort = null;
  let json = false;

  function swap() {
    if (!json) {
      // Faults do not matter here: what can be read is carried over.
      editor.set(form.read().value);
    } else {
      const value = editor.read([]);
      if (!isNothing(value)) form.set(value);
    }
    json = !json;
    shown(asJson, json);
    shown(form.element, !json && has);
    text(toggle, json ? 'Back to the form' : 'Edit as JSON');
    (json ? editor.area : form.element.querySelector('input, textarea, select'))?.focus();
  }

  function given() {
    if (!json) return form.read();
    const faults = [];
    const value = editor.read(faults);
    return { value: isNothing(value) ? {} : value, faults };
  }

  async function submit(event) {
    event.preventDefault();
    if (abort) return;
    const { value, faults } = given();
    if (faults.length) {
      text(said, `${plural(faults.length, 'field')} to mend`);
      faults[0].field.focus();
      return;
    }
    // Who writes `__pptb` into the JSON means it: what stands there is sent, and the form's choices fill the rest.
    const written = value.__pptb;
    const mode = written?.executionMode ?? how.querySelector('input:checked')?.value ?? modes[0];
    const asked = { ...envelopeOf(tool, mode), ...named.read() };
    const envelope = written === undefined || isObject(written) ? { ...asked, ...written } : written;
    const body = isObject(envelope) && !Object.keys(envelope).length ? value : { ...value, __pptb: envelope };
    abort = new AbortController();
    run.disabled = true;
    shown(give, true);
    clear(came);
    blobs.free();
    const began = performance.now();
    const sent = now();
    const ticking = setInterval(() => text(said, `Running, ${duration(performance.now() - began)}`), 500);
    text(said, 'Running…');
    try {
      const { body: told } = await request(path('mcp', 'tools', tool.name), { method: 'POST', body, signal: abort.signal });
      text(said, `Answered after ${duration(performance.now() - began)}`);
      if (!accepted(told, mode)) answer(told, sent);
    } catch (error) {
      text(said, '');
      if (error.name === 'AbortError') came.append(note('info', 'No longer waiting.', 'The call itself goes on; it shows among the ', h('a', { href: hashOf('invocations') }, 'invocations'), '.'));
      else came.append(note('error', 'The call could not be made.', error instanceof ApiError ? error.message : String(error)));
    } finally {
      clearInterval(ticking);
      abort = null;
      run.disabled = false;
      shown(give, false);
      app.poller.now();
    }
  }

  /** Whether the answer is the acceptance of a job, whose own view then opens. */
  function accepted(body, mode) {
    const told = body.structuredContent;
    if (body.isError || told?.status !== 'accepted' || typeof told.jobId !== 'string') return false;
    location.hash = hashOf(mode === 'windowed' ? 'windows' : 'invocations', told.jobId);
    return true;
  }

  function answer(body, sent) {
    const jobId = Object.entries(body.meta ?? {}).find(([name]) => name.endsWith('jobId'))?.[1] ?? body.structuredContent?.jobId;
    // The answer to an inline call does not say its id, under which its files are kept: it was made meanwhile.
    const owns = (owner) => (typeof jobId === 'string' ? owner === jobId : madeAt(owner) > sent - CLOCKS && madeAt(owner) < now() + CLOCKS);
    const parts = resultParts({ structured: body.structuredContent, content: body.content }, blobs, owns);
    const head = body.isError
      ? h('h2', {}, 'Failed')
      : h('h2', {}, 'Result');
    came.append(h('section', { class: body.isError ? 'card bad' : 'card', 'aria-label': 'What came of it', tabindex: '-1' },
      h('div', { class: 'card-head' }, head, typeof jobId === 'string' && h('a', { href: hashOf('invocations', jobId) }, 'Its invocation')),
      parts.length ? parts : h('p', { class: 'hint' }, 'It answered with nothing.')));
    say(body.isError ? 'The call failed' : 'The call is done');
  }

  // Enter makes a new line where a text may have several.
  const keys = (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
  };
  shown(form.element, has);
  return {
    element: h('div', {}, h('form', { class: 'card run', 'aria-labelledby': 'run-title', autocomplete: 'off', novalidate: true, on: { submit, keydown: keys } },
      h('div', { class: 'card-head' }, h('h2', { id: 'run-title' }, 'Run'), h('span', { class: 'spring' }), has && toggle),
      !has && h('p', { class: 'hint' }, 'It takes no arguments.'), form.element, asJson, how, named.element,
      h('div', { class: 'actions' }, run, give, said)), came),
    leave() {
      abort?.abort();
      blobs.free();
    },
  };
}

const MODE_WORDS = {
  inline: 'now, in this request',
  headless: 'as a job, which goes on by itself',
  windowed: 'in a window, where a person answers',
};

const NAMED = { connectionName: 'Connection', project: 'Project' };

/** What a call may name: each option of `NAMED` that the tool's schema has. `read()`: those that were filled in. */
function namedFields(tool) {
  const offered = tool.inputSchema?.properties?.__pptb?.properties ?? {};
  const inputs = Object.entries(NAMED).filter(([name]) => isObject(offered[name])).map(([name, label]) => {
    const id = uid('option');
    const input = h('input', { type: 'text', id, 'aria-describedby': `${id}-hint`, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off' });
    const element = h('div', { class: 'field' }, h('label', { for: id }, `${label} `, h('code', {}, name)),
      h('p', { class: 'hint', id: `${id}-hint` }, offered[name].description), input);
    return { name, label, input, element };
  });
  const words = inputs.map(({ label }) => label.toLowerCase()).join(' and ');
  return {
    element: inputs.length > 0 && h('details', { class: 'options' }, h('summary', {}, words.charAt(0).toUpperCase() + words.slice(1)),
      h('div', { class: 'fields' }, inputs.map(({ element }) => element))),
    read: () => Object.fromEntries(inputs.map(({ name, input }) => [name, input.value.trim()]).filter(([, given]) => given)),
  };
}

/** How a call runs. A job is not waited for where that can be: its own view follows it better. */
function envelopeOf(tool, mode) {
  const asked = { executionMode: mode };
  if (mode !== 'inline' && tool.modes?.includes('one-way')) asked.mode = 'one-way';
  if (mode === 'inline' && tool.modes?.includes('two-way')) asked.mode = 'two-way';
  return (tool.executionModes ?? []).length ? asked : {};
}
