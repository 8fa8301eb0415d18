// The page: who looks at it, where they are in it, and what is kept up to date for every view.

import { onRefused, path, request, signedIn, token, withQuery } from './api.js';
import { Calls, isWaiting } from './calls.js';
import { attribute, clear, h, say, shown, text } from './dom.js';
import { ago } from './format.js';
import { EVERY, News, Poller, STALE } from './poll.js';
import { hashOf, place } from './router.js';
import { connectView } from './connect.js';
import { detailView } from './detail.js';
import { invocationsView } from './invocations.js';
import { numbersView } from './numbers.js';
import { serversView, serverView } from './servers.js';
import { signInView } from './signin.js';
import { toolsView, toolView } from './tools.js';
import { takeTicket, windowView } from './windows.js';

const ELSEWHERE = 5_000;
// ms from one look for windows that the rows do not show to the next.
const WINDOWS_EVERY = 2_000;
const VIEWS = {
  invocations: { name: 'Invocations', list: invocationsView, one: detailView, every: EVERY },
  tools: { name: 'Tools', list: toolsView, one: toolView },
  servers: { name: 'Servers', list: serversView, one: serverView },
  numbers: { name: 'Numbers', list: numbersView, every: EVERY },
  connect: { name: 'Connect', list: connectView },
  windows: { name: 'Window', one: windowView },
};

class App extends EventTarget {
  calls = new Calls();
  poller = new Poller((signal) => this.#round(signal), { told: (news) => this.tell(this.poller, news) });
  tools = [];
  faults = [];
  toolsLoaded = false;
  toolsError = '';

  #main = document.getElementById('view');
  #live = document.getElementById('live');
  #banner = document.getElementById('waiting');
  #view = null;
  #started = false;
  #platformAsked = false;
  #toolsTag = null;
  #news = new News();
  #stale = false;
  #lastList = '';
  #scrolls = new Map();
  #looked = 0;
  /** Calls that wait for a person, and are not among the loaded rows: filtered out, or too old. */
  #elsewhere = [];
  #elsewhereTag = null;
  #at = '';

  start() {
    onRefused(() => this.#askForToken(true));
    document.getElementById('forget').addEventListener('click', () => this.forget());
    // By script, since following it would leave the place that the fragment names.
    document.querySelector('.skip').addEventListener('click', (event) => {
      event.preventDefault();
      this.#main.focus();
    });
    addEventListener('hashchange', () => this.#arrive());
    this.calls.addEventListener('change', () => this.#showWaiting());
    setInterval(() => this.#showLive(), 1000);
    document.addEventListener('visibilitychange', () => this.#showLive());
    this.#arrive(true);
  }

  hasToken = () => token.get() !== null || signedIn.get();

  /** The address of the list as it was last seen. */
  listHash = () => this.#lastList || hashOf('invocations');

  forget() {
    token.forget();
    this.calls.reset();
    this.#elsewhere = [];
    this.#elsewhereTag = null;
    this.tools = [];
    this.faults = [];
    this.toolsLoaded = false;
    this.#toolsTag = null;
    this.#askForToken(false);
    say('The token has been forgotten');
  }

  async loadTools() {
    try {
      const answer = await request(path('mcp', 'tools'), { etag: this.#toolsTag });
      if (answer.status === 304) return;
      this.#toolsTag = answer.etag;
      this.tools = answer.body.tools ?? [];
      this.faults = answer.body.faults ?? [];
      this.toolsLoaded = true;
      this.toolsError = '';
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.toolsError = `The tools could not be loaded: ${error.message}`;
    }
    this.#showFaults();
    this.dispatchEvent(new Event('tools'));
  }

  async #round(signal) {
    await this.calls.refresh(signal);
    const windowed = this.tools.some((tool) => tool.executionModes?.includes('windowed'));
    if (!windowed || Date.now() - this.#looked < WINDOWS_EVERY) return;
    this.#looked = Date.now();
    const asked = withQuery(path('mcp', 'invocations'), { executionMode: 'windowed', status: 'pending', limit: 20 });
    const answer = await request(asked, { signal, etag: this.#elsewhereTag });
    if (answer.status === 304) return;
    this.#elsewhereTag = answer.etag;
    this.#elsewhere = answer.body.invocations;
    this.#showWaiting();
  }

  /** Why what is shown is not up to date; "" when it is. */
  get failure() {
    return this.#news.worst.failure;
  }

  /** News of a round of the poller `source`. A view that leaves drops its own. */
  tell(source, news) {
    this.#news.tell(source, news);
    this.#showLive();
  }

  drop(source) {
    this.#news.drop(source);
    this.#showLive();
  }

  // --- where one is

  #arrive(first = false) {
    const launched = takeTicket();
    // Without a ticket it is a link for the owner, whose token is asked for as for any view.
    if (launched?.ticket) return this.#open(VIEWS.windows.one(this, { id: launched.jobId, ticket: launched.ticket }), VIEWS.windows, first, launched.jobId);
    if (!this.hasToken()) return this.#admit(first);
    this.#begin();
    const to = place();
    const kind = Object.hasOwn(VIEWS, to.view) ? VIEWS[to.view] : null;
    const make = to.id ? kind?.one : kind?.list;
    if (!make) {
      location.replace(hashOf('invocations'));
      return undefined;
    }
    const at = location.hash;
    this.#remember();
    // Made after the one before has left, so that they do not both draw.
    this.#leave();
    this.poller.every = kind.every && !to.id ? kind.every : ELSEWHERE;
    if (to.view === 'invocations' && !to.id) this.#lastList = at;
    return this.#open(make(this, to), kind, first, to.id);
  }

  #open(view, kind, first, id) {
    this.#leave();
    this.#view = view;
    clear(this.#main).append(view.element);
    document.body.classList.toggle('guest', !this.hasToken());
    shown(document.getElementById('forget'), token.get() !== null);
    for (const link of document.querySelectorAll('#nav a')) {
      attribute(link, 'aria-current', link.textContent.startsWith(kind.name) ? (id ? 'true' : 'page') : null);
    }
    document.title = [id && id.length < 80 ? id : '', kind.name, 'Toolbox'].filter(Boolean).join(' · ');
    this.#at = location.hash;
    scrollTo({ top: this.#scrolls.get(this.#at) ?? 0, behavior: 'instant' });
    if (!first) view.element.querySelector('h1')?.focus({ preventScroll: true });
  }

  /** Without a token: the platform may have signed the visitor in; else a token is asked for. */
  async #admit(first) {
    const ask = !this.#platformAsked;
    this.#platformAsked = true;
    if (ask && await signedIn.find()) this.#arrive(first);
    else if (!this.hasToken()) this.#askForToken(false);
  }

  #leave() {
    this.#view?.leave();
    this.#view = null;
  }

  #remember() {
    if (this.#at) this.#scrolls.set(this.#at, scrollY);
    if (this.#scrolls.size > 50) this.#scrolls.delete(this.#scrolls.keys().next().value);
  }

  #askForToken(refused) {
    this.poller.stop();
    this.#started = false;
    if (refused) {
      token.forget();
      signedIn.forget();
    }
    this.#leave();
    const view = signInView(() => this.#arrive(), { refused });
    this.#view = view;
    clear(this.#main).append(view.element);
    document.body.classList.add('guest');
    document.title = 'Access token · Toolbox';
    this.#news.clear();
    this.#showWaiting();
    this.#showLive();
    view.focus();
  }

  #begin() {
    if (this.#started) return;
    this.#started = true;
    this.poller.start();
    this.loadTools();
  }

  // --- what every view shows

  #showLive() {
    const { failure, fresh, retryAt } = this.#news.worst;
    const state = !this.#started ? '' : failure ? 'failing' : document.hidden ? 'paused' : fresh ? 'live' : 'starting';
    attribute(this.#live, 'data-state', state || 'none');
    const [, words, rest] = this.#live.children;
    text(words, { live: 'Live', paused: 'Paused', starting: 'Connecting', failing: 'Not up to date' }[state] ?? '');
    let more = '';
    if (state === 'failing') {
      const again = retryAt ? `again in ${Math.max(Math.ceil((retryAt - Date.now()) / 1000), 0)} s` : '';
      more = [fresh ? `last seen ${ago(Date.now() - fresh)}` : '', again].filter(Boolean).join(', ');
    }
    text(rest, more);
    attribute(this.#live, 'title', failure || null);
    const stale = state === 'failing' && (!fresh || Date.now() - fresh > STALE);
    const bar = document.getElementById('stale');
    shown(bar, stale);
    if (stale) text(bar, `What is shown may be out of date: ${failure} ${more ? `(${more})` : ''}`);
    if (stale !== this.#stale && this.#started) say(stale ? `What is shown may be out of date. ${failure}` : 'Up to date again');
    this.#stale = stale;
  }

  #showFaults() {
    const count = document.getElementById('fault-count');
    shown(count, this.faults.length > 0);
    text(count.firstChild, this.faults.length);
  }

  #showWaiting() {
    const every = new Map([...this.#elsewhere, ...this.calls.rows].map((call) => [call.id, call]));
    const waiting = this.hasToken() ? [...every.values()].filter(isWaiting) : [];
    const { view, id } = place();
    const others = waiting.filter((call) => !(view === 'windows' && id === call.id));
    const shape = others.map((call) => call.id).join();
    if (this.#banner.dataset.shape === shape) return;
    const known = new Set((this.#banner.dataset.shape ?? '').split(','));
    this.#banner.dataset.shape = shape;
    clear(this.#banner).append(...others.map((call) => h('div', { class: 'waiting-line' },
      h('span', {}, h('strong', {}, call.toolName), ' is waiting for you.'),
      h('a', { class: 'button primary', href: hashOf('windows', call.id) }, 'Open'))));
    shown(this.#banner, others.length > 0);
    for (const call of others) if (!known.has(call.id)) say(`${call.toolName} is waiting for you`);
  }
}

new App().start();
