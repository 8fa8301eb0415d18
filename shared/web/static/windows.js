// Windows: a call that waits for a person, who answers in the tool's own page.
//
// The tool's page is untrusted. It is shown in a frame on an opaque origin (sandbox="allow-scripts"): it cannot read
// this page, its storage or its token, open windows, post forms or navigate the top. All it has is one MessagePort,
// which it is handed once, when its frame has loaded; this page listens to no `message` events at all, so that no other
// frame can forge one. Every message is JSON, checked for its form and size, and is passed on to the server, which checks
// it again under a session that is good for this one job.
//
//   launch link    /#window=<jobId>.<ticket>: the ticket leaves the address at once and is exchanged by POST, once;
//                  without a ticket it is for the owner, who has the token
//   POST /mcp/windows/{jobId}/session   {"ticket"} without a token, or {} with the owner's
//        -> {"session", "page", "context", "tool", "connections", "toolName"?, "expectsResponse"?, "deadline"?}
//   POST /mcp/windows/{jobId}/call      {"api", "method", "args"} -> {"value"}
//   POST /mcp/windows/{jobId}/return    {"data"} -> {"window": "done" | "closed"}; 422 {"error"}: not what the contract
//                                       allows, may be corrected
//   POST /mcp/windows/{jobId}/close     {}
//        the last three with the header X-MCP-Window-Session; 409: the call has ended, 401: the session has
//
//   the frame, at its load: {type: "toolbox:port", version: 1} with the port, and on the port
//   page -> tool   {type: "launch", context, tool, connections} | {type: "result", id, value} | {type: "error", id, message}
//                  | {type: "rejected", message} (what was returned is not allowed) | {type: "done"}
//   tool -> page   {type: "call", id, api, method, args} | {type: "return", data} | {type: "close"}

import { path, request } from './api.js';
import { button, clear, h, say, shown, text } from './dom.js';
import { cut, duration, now } from './format.js';
import { hashOf } from './router.js';
import { heading, note } from './parts.js';
import { isObject } from './schema.js';

const SESSION_HEADER = 'X-MCP-Window-Session';
const LAUNCH = /^#window=([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})(?:\.([A-Za-z0-9_-]{16,256}))?$/;
const APIS = new Set(['dataverseAPI', 'powerplatformAPI']);
const METHOD = /^[A-Za-z][A-Za-z0-9_.]{0,99}$/;
// Characters of JSON; the server counts bytes.
const MOST_CALL = 1024 * 1024;
const MOST_RETURN = 16 * 1024 * 1024;
const MOST_AT_ONCE = 16;
// Messages a tool may send in a while; one that sends more is broken or hostile, and is heard no longer.
const MOST_MESSAGES = 500;
const WHILE = 10_000;

/**
 * The ticket of a launch link, which is taken out of the address and the history before anything else happens.
 * @returns {{jobId: string, ticket: string | undefined} | null}
 */
export function takeTicket() {
  if (!location.hash.startsWith('#window=')) return null;
  const found = LAUNCH.exec(location.hash);
  history.replaceState(null, '', found ? hashOf('windows', found[1]) : hashOf('invocations'));
  return found?.[2] ? { jobId: found[1], ticket: found[2] } : null;
}

/** What a tool's message asks for, or why it is refused. Anything but plain JSON of a known form is. */
export function readMessage(data) {
  let written;
  try {
    written = JSON.stringify(data);
  } catch {
    return { fault: 'the message is not JSON' };
  }
  if (written === undefined || !isObject(data)) return { fault: 'the message is not a JSON object' };
  const message = JSON.parse(written);
  const limit = message.type === 'return' ? MOST_RETURN : MOST_CALL;
  if (written.length > limit) return { fault: `the message has ${written.length} characters; at most ${limit} are taken`, message };
  switch (message.type) {
    case 'call':
      if (typeof message.id !== 'number' && typeof message.id !== 'string') return { fault: 'id: must be a number or a text' };
      if (!APIS.has(message.api)) return { fault: `api: must be one of ${[...APIS].join(', ')}`, message };
      if (typeof message.method !== 'string' || !METHOD.test(message.method)) return { fault: 'method: must be a name', message };
      if (!Array.isArray(message.args ?? [])) return { fault: 'args: must be a list', message };
      return { message };
    case 'return':
    case 'close':
      return { message };
    default:
      return { fault: 'type: must be call, return or close' };
  }
}

/** Passes messages between one tool's frame and the server. `told`: {returned, rejected, closed, failed}. */
export class Bridge {
  #job; #session; #port = null; #told; #underway = 0; #times = []; #over = false; #handed = false;

  constructor(jobId, session, told) {
    this.#job = jobId;
    this.#session = session;
    this.#told = told;
  }

  /** Hands the frame its port. Once: whatever is loaded into the frame later is not the page that was opened. */
  hand(frame, { context = null, tool = null, connections = [] }) {
    if (this.#handed) return false;
    this.#handed = true;
    const channel = new MessageChannel();
    this.#port = channel.port1;
    this.#port.onmessage = (event) => this.#heard(event.data);
    // An opaque origin has no name to address; the window is this frame's, and what is sent is no secret.
    frame.contentWindow.postMessage({ type: 'toolbox:port', version: 1 }, '*', [channel.port2]);
    this.#send({ type: 'launch', context, tool, connections });
    return true;
  }

  end() {
    this.#over = true;
    this.#port?.close();
  }

  async close() {
    if (this.#over) return;
    await this.#post('close', {});
    this.#finish('closed');
  }

  #send(message) {
    if (!this.#over) this.#port?.postMessage(message);
  }

  #finish(what, detail) {
    if (this.#over) return;
    this.#send({ type: 'done' });
    this.end();
    this.#told[what]?.(detail);
  }

  #heard(data) {
    if (this.#over || this.#flooded()) return;
    const { message, fault } = readMessage(data);
    if (fault) {
      this.#send({ type: 'error', id: message?.id ?? null, message: fault });
      return;
    }
    if (message.type === 'call') this.#call(message);
    else if (message.type === 'return') this.#return(message);
    else this.close().catch((error) => this.#failed(error));
  }

  #flooded() {
    const at = performance.now();
    this.#times = this.#times.filter((time) => at - time < WHILE);
    this.#times.push(at);
    if (this.#times.length <= MOST_MESSAGES) return false;
    this.end();
    this.#told.failed?.('The tool’s page sends too many messages and was shut off.');
    return true;
  }

  async #call({ id, api, method, args = [] }) {
    if (this.#underway >= MOST_AT_ONCE) {
      this.#send({ type: 'error', id, message: `at most ${MOST_AT_ONCE} calls at once` });
      return;
    }
    this.#underway += 1;
    try {
      const body = await this.#post('call', { api, method, args });
      this.#send({ type: 'result', id, value: body?.value ?? null });
    } catch (error) {
      this.#send({ type: 'error', id, message: error.message });
      if (error.status === 401) this.#failed(error);
    } finally {
      this.#underway -= 1;
    }
  }

  async #return({ data = null }) {
    try {
      const body = await this.#post('return', { data });
      this.#finish(body?.window === 'closed' ? 'closed' : 'returned');
    } catch (error) {
      if (error.status === 400 || error.status === 413 || error.status === 422) {
        this.#send({ type: 'rejected', message: error.message });
        this.#told.rejected?.(error.message);
      } else {
        this.#failed(error);
      }
    }
  }

  #failed(error) {
    // No answer, or one that may be better in a moment, is no end: the person can send again.
    if (error.status === 0 || error.status === 429 || error.status >= 500) {
      this.#send({ type: 'rejected', message: error.message });
      this.#told.rejected?.(error.message);
      return;
    }
    this.#finish('failed', error.status === 409 ? 'This call has ended already.' : error.message);
  }

  async #post(what, body) {
    const headers = { [SESSION_HEADER]: this.#session };
    return (await request(path('mcp', 'windows', this.#job, what), { method: 'POST', body, headers, anonymous: true, quiet: true })).body;
  }
}

/** Opens a window's session: by ticket, or with the owner's token. */
async function openSession(jobId, ticket) {
  const options = ticket ? { body: { ticket }, anonymous: true, quiet: true } : { body: {} };
  const { body } = await request(path('mcp', 'windows', jobId, 'session'), { method: 'POST', ...options });
  if (typeof body?.session !== 'string' || !/^[\x21-\x7e]+$/.test(body.session)) throw new Error('The app gave no session.');
  return body;
}

/** The address of the tool's page: below the job's own folder, whatever the answer says. */
function pageAddress(jobId, given) {
  const base = `${path('mcp', 'windows', jobId, 'page')}/`;
  const url = new URL(typeof given === 'string' ? given : `${base}index.html`, location.origin);
  if (url.origin !== location.origin || !url.pathname.startsWith(base)) throw new Error('The app named a page that is not this window’s.');
  return url.href;
}

/** The view of one window. `ticket`: of the launch link, if that is how it was opened. */
export function windowView(app, { id, ticket = null }) {
  const title = heading('Window');
  const status = h('span', { class: 'hint' });
  const left = h('span', { class: 'hint' });
  const fault = h('div', { 'aria-live': 'assertive' });
  const place = h('div', { class: 'window-place' }, h('p', { class: 'foot' }, 'Opening…'));
  const close = button('Close without an answer', ask, { class: 'button', hidden: true });
  const sure = h('div', { class: 'confirm', role: 'group', 'aria-label': 'Close without an answer?', hidden: true },
    h('span', {}, 'The caller gets no answer.'), button('Close it', finish, { class: 'button danger' }),
    button('Go on', () => { shown(sure, false); shown(close, true); close.focus(); }));
  let bridge = null;
  let gone = false;
  let ticking = null;

  function ask() {
    shown(close, false);
    shown(sure, true);
    sure.querySelector('button').focus();
  }

  async function finish() {
    try {
      await bridge.close();
    } catch (error) {
      if (error.status === 409) ended('info', 'This call has ended already.');
      else clear(fault).append(note('error', 'It could not be closed.', error.message));
    }
  }

  function ended(kind, words, more = '') {
    clearInterval(ticking);
    bridge?.end();
    for (const part of [close, sure]) shown(part, false);
    clear(fault);
    text(left, '');
    text(status, '');
    clear(place).append(h('div', { class: 'empty' }, h('p', { class: 'empty-title' }, words), more && h('p', {}, more),
      app.hasToken() ? h('p', {}, h('a', { href: hashOf('invocations', id) }, 'The invocation')) : h('p', {}, 'You can close this page.')));
    say(words);
    app.poller.now();
  }

  const told = {
    returned: () => ended('good', 'Thank you. The answer has been sent.'),
    closed: () => ended('info', 'Closed without an answer.'),
    failed: (words) => ended('error', words),
    rejected: (words) => {
      clear(fault).append(note('error', 'The answer was not taken; it can be corrected.', h('pre', { class: 'text' }, cut(words, 4_000))));
    },
  };

  async function open() {
    let session;
    try {
      session = await openSession(id, ticket);
    } catch (error) {
      if (!gone) ended('error', ticket && error.status === 401 ? 'This link has expired or was used already.' : sentence(error), ticket ? 'Ask for a new link, or open the window from the list of invocations.' : '');
      return;
    }
    if (gone) return;
    bridge = new Bridge(id, session.session, told);
    text(title, session.tool?.title || session.toolName || 'Window');
    text(status, session.expectsResponse === false ? 'Nobody waits for an answer; one may be given.' : 'The caller waits for your answer.');
    const end = Date.parse(session.deadline ?? '');
    const tick = () => text(left, Number.isNaN(end) ? '' : end > now() ? `${duration(Math.ceil((end - now()) / 1000) * 1000)} left` : 'The time is over.');
    ticking = setInterval(tick, 1000);
    tick();
    let frame;
    try {
      frame = h('iframe', { class: 'tool-frame', sandbox: 'allow-scripts', referrerpolicy: 'no-referrer', allow: '', title: `Page of the tool ${session.toolName ?? ''}`, src: pageAddress(id, session.page) });
    } catch (error) {
      ended('error', error.message);
      return;
    }
    frame.addEventListener('load', () => {
      if (!bridge.hand(frame, session)) {
        ended('error', 'The tool’s page has gone elsewhere and was closed.', 'The call still waits: open its window again.');
      }
    });
    clear(place).append(frame);
    shown(close, true);
  }

  open();
  return {
    element: h('div', { class: 'view window-view' },
      h('div', { class: 'title-line' }, title, status, left, h('span', { class: 'spring' }), close, sure), fault, place),
    leave() {
      gone = true;
      clearInterval(ticking);
      bridge?.end();
    },
  };
}

const sentence = (error) => (error.status === 404 ? 'There is no such window.' : error.status === 409 ? 'This call has ended already.' : error.message);
