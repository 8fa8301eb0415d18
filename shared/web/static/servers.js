// Other MCP servers whose tools the app publishes beside its own.

import { path, request } from './api.js';
import { clear, h, text } from './dom.js';
import { plural, unwrapped } from './format.js';
import { hashOf } from './router.js';
import { facts, heading, note } from './parts.js';
import { Poller } from './poll.js';
import { isObject } from './schema.js';
import { tree } from './tree.js';

const EVERY = 5_000;
const STATES = { connected: 'completed', connecting: 'in_progress', error: 'failed', disabled: 'other' };

/** A server's state as a badge. */
function stateBadge(server) {
  // Made, and not yet asked for anything: a server is contacted by the first call of one of its tools.
  const state = server.state === 'created' ? 'not called yet' : server.state;
  const words = server.connected ? 'connected' : state || (server.error ? 'error' : 'not connected');
  const kind = server.connected ? 'completed' : server.error ? 'failed' : STATES[server.state] ?? 'other';
  return h('span', { class: 'badge', data: { state: kind } }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', {}, words.replaceAll('_', ' ')));
}

/** Polls one address and draws what comes, where it differs from before. */
function watched(app, address, draw, missing) {
  let tag = null;
  let seen = '';
  const poller = new Poller(async (signal) => {
    let body;
    try {
      const answer = await request(address, { signal, etag: tag });
      if (answer.status === 304) return undefined;
      tag = answer.etag;
      body = answer.body;
    } catch (error) {
      if (error.status !== 404) throw error;
      missing();
      return false;
    }
    const now = JSON.stringify(body);
    if (now !== seen) draw(body);
    seen = now;
    return undefined;
  }, { every: EVERY, told: (news) => app.tell(poller, news) }).start();
  return { stop() { poller.stop(); app.drop(poller); } };
}

export function serversView(app) {
  const place = h('div', {}, h('p', { class: 'foot' }, 'Loading…'));
  const none = (words) => clear(place).append(h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, words),
    h('p', {}, 'The app can publish the tools of other MCP servers beside its own.')));
  const poller = watched(app, path('mcp', 'servers'), ({ servers }) => {
    if (!servers?.length) return void none('No other servers are configured.');
    clear(place).append(h('ul', { class: 'cards' }, servers.map(card)), h('p', { class: 'foot' }, plural(servers.length, 'server')));
  }, () => none('This app serves no other servers.'));
  return { element: h('div', { class: 'view' }, heading('Servers'), place), leave: () => poller.stop() };
}

const card = (server) => h('li', { class: 'card link' },
  h('div', { class: 'card-head' }, h('h3', {}, h('a', { href: hashOf('servers', server.name) }, server.name)), h('span', { class: 'spring' }), stateBadge(server)),
  server.description && h('p', { class: 'clamp' }, server.description),
  server.error && h('p', { class: 'summary bad' }, server.error),
  h('p', { class: 'hint' }, [server.type, server.scope, plural(server.tool_count ?? 0, 'tool')].filter(Boolean).join(' · ')));

export function serverView(app, { id }) {
  const place = h('div', { class: 'server' }, h('p', { class: 'foot' }, 'Loading…'));
  const title = heading(id);
  const poller = watched(app, path('mcp', 'servers', id), (server) => {
    text(title, server.name);
    // What a person has opened stays open.
    const open = new Set([...place.querySelectorAll('details.schema[open]')].map((one) => one.dataset.name));
    clear(place).append(
      h('div', { class: 'title-line' }, stateBadge(server)),
      server.description && h('p', { class: 'prose' }, server.description),
      server.error ? note('error', 'It cannot be used.', server.error) : '',
      h('div', { class: 'columns' }, h('div', { class: 'main-column' }, toolList(server, open), logOf(server)),
        h('aside', { class: 'side', 'aria-label': 'Facts' }, facts([['Type', server.type], ['Scope', server.scope], ['State', server.state],
          ['Tools', String(server.tool_count ?? '')], ['Instance', server.instance && h('code', { class: 'id' }, server.instance)],
          ['Session', server.session_id && h('code', { class: 'id' }, server.session_id)]]))));
  }, () => clear(place).append(h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, 'There is no such server.'))));
  return {
    element: h('div', { class: 'view' }, h('p', { class: 'back' }, h('a', { href: hashOf('servers') }, '← Servers')), title, place),
    leave: () => poller.stop(),
  };
}

function toolList(server, open) {
  const tools = server.tools ?? [];
  if (!tools.length) return h('p', { class: 'foot' }, 'It has no tools.');
  return h('section', { class: 'card', 'aria-labelledby': 'server-tools' }, h('div', { class: 'card-head' }, h('h2', { id: 'server-tools' }, 'Tools')),
    tools.map((tool) => h('details', { class: 'schema', open: open.has(tool.name), data: { name: tool.name } },
      h('summary', {}, h('code', {}, tool.name), ' ', statesOf(tool)),
      tool.description && h('p', { class: 'prose' }, unwrapped(tool.description)),
      facts([['Published as', tool.published_name && !tool.disabled && tool.allowed !== false
        ? h('a', { href: hashOf('tools', tool.published_name) }, tool.published_name) : tool.published_name]]),
      (tool.notes ?? []).map((one) => h('p', { class: 'hint' }, one)),
      isObject(tool.input_schema) && tree(tool.input_schema))));
}

const statesOf = (tool) => [tool.disabled && 'disabled', tool.allowed === false && 'not allowed', tool.state && tool.state !== 'same' && tool.state.replaceAll('_', ' ')]
  .filter(Boolean).map((words) => h('span', { class: 'chip' }, words));

const logOf = (server) => server.log && h('section', { class: 'card', 'aria-labelledby': 'server-log' },
  h('div', { class: 'card-head' }, h('h2', { id: 'server-log' }, 'What it has written')), h('pre', { class: 'text tall', tabindex: '0' }, server.log));
