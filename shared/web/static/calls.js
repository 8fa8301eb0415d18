// The invocations that the page knows, newest first. Views read them from here; one poller keeps them fresh.

import { path, request, withQuery } from './api.js';

const PAGE = 100;
const FIRST_PAGE = 50;
/** Searches and numbers look at so many calls at most. */
export const MOST_COUNTED = 1_000;
// Pages that are read to close the gap between the newest page and the known rows: after a pause there may be one.
const MOST_GAP = 4;
// Jobs that go on, and are not on the newest page, that one round looks after.
const MOST_LOOKED_AFTER = 8;

const ENDED = new Set(['completed', 'failed', 'rejected']);
export const isOver = (call) => ENDED.has(call.status);

/** Whether somebody has to do something in a window before the call goes on. */
export const isWaiting = (call) => !isOver(call) && ['waiting', 'open'].includes(call.window?.state);

/** What a call's badge shows: its status, or "waiting" for a person, or "no-result". */
export function standing(call) {
  if (isWaiting(call)) return 'waiting';
  if (call.outcome === 'no-result') return 'no-result';
  if (call.cancelRequested && !isOver(call)) return 'cancelling';
  if (call.errorCode === 'cancelled') return 'cancelled';
  return call.status;
}

export class Calls extends EventTarget {
  /** Newest first. Replaced, never changed in place, so that views can tell what is new. */
  rows = [];
  /** Whether there is nothing older. */
  complete = false;
  /** Why older ones cannot be had; "" if they can. */
  incomplete = '';
  /** Whether the first page has come. */
  loaded = false;
  /** `{tool, status, executionMode, mode}`: what the server filters by. */
  filter = {};
  #byId = new Map();
  #cursor = null;
  #tag = null;
  /** Ids on the newest page, which keeps their rows up to date. */
  #newest = new Set();
  #more = null;
  #round = 0;
  #generation = 0;

  get(id) {
    return this.#byId.get(id);
  }

  /** Takes other filters: the rows begin anew. */
  select(filter) {
    if (JSON.stringify(filter) === JSON.stringify(this.filter)) return false;
    this.filter = filter;
    this.reset();
    return true;
  }

  reset() {
    this.#generation += 1;
    this.rows = [];
    this.#byId.clear();
    this.#newest = new Set();
    this.#cursor = this.#tag = this.#more = null;
    this.complete = this.loaded = false;
    this.#changed();
  }

  /** The newest page, and what goes on without being on it. One round of the poller. */
  async refresh(signal) {
    const generation = this.#generation;
    const answer = await this.#ask({ limit: FIRST_PAGE }, signal, this.#tag);
    if (generation !== this.#generation) return;
    if (answer.status !== 304) {
      const pages = [answer.body];
      if (this.loaded) await this.#closeGap(pages, signal);
      if (generation !== this.#generation) return;
      this.#takeNewest(pages);
      this.#newest = new Set(answer.body.invocations.map((call) => call.id));
      this.#tag = answer.etag;
    }
    await this.#lookAfter(signal, generation);
  }

  /** One older page. Calls at once share it. */
  more() {
    this.#more ??= this.#older().finally(() => { this.#more = null; });
    return this.#more;
  }

  /** Older pages, until there are `wanted` rows or no more. The newest page is waited for: a view may open before it is here. */
  async upTo(wanted, still = () => true) {
    while (!this.loaded && still()) {
      await new Promise((go) => { this.addEventListener('change', go, { once: true }); });
    }
    while (this.loaded && !this.complete && this.rows.length < wanted && still()) {
      const before = this.#cursor;
      await this.more();
      if (before === this.#cursor) break;
    }
  }

  async #older() {
    if (this.complete || !this.#cursor) return;
    const generation = this.#generation;
    const { body } = await this.#ask({ limit: PAGE, cursor: this.#cursor });
    if (generation !== this.#generation) return;
    this.#cursor = body.cursor ?? null;
    this.complete = !this.#cursor;
    this.#merge(body.invocations);
  }

  #ask(params, signal, etag) {
    return request(withQuery(path('mcp', 'invocations'), { ...this.filter, ...params }), { signal, etag });
  }

  async #closeGap(pages, signal) {
    const known = (page) => page.invocations.some((call) => this.#byId.has(call.id));
    while (this.rows.length && !pages.some(known) && pages.at(-1).cursor && pages.length <= MOST_GAP) {
      pages.push((await this.#ask({ limit: PAGE, cursor: pages.at(-1).cursor }, signal)).body);
    }
    if (this.rows.length && !pages.some(known) && pages.at(-1).cursor) {
      // Too much has happened meanwhile: begin anew rather than show a list with a hole.
      this.rows = [];
      this.#byId.clear();
      this.loaded = false;
    }
  }

  #takeNewest(pages) {
    if (!this.loaded) {
      this.#cursor = pages.at(-1).cursor ?? null;
      this.complete = !this.#cursor;
      this.incomplete = pages.at(-1).incomplete ?? '';
      this.loaded = true;
    }
    this.#merge(pages.flatMap((page) => page.invocations));
  }

  /**
   * Jobs that go on, as far as is known, and are not on the newest page: they are too old for it, or have another status by
   * now than the filter's. A few of them each round, in turn.
   */
  async #lookAfter(signal, generation) {
    const running = this.rows.filter((call) => !isOver(call) && call.jobId && !this.#newest.has(call.id));
    if (!running.length) return;
    const from = (this.#round * MOST_LOOKED_AFTER) % running.length;
    this.#round += 1;
    const gone = [];
    const found = await Promise.all(
      running.slice(from, from + MOST_LOOKED_AFTER).map(async (call) => {
        try {
          return ofJob(call, (await request(path('mcp', 'jobs', call.jobId), { signal })).body);
        } catch (error) {
          if (error.name === 'AbortError' || error.status !== 404) throw error;
          gone.push(call.id);
          return null;
        }
      }),
    );
    if (generation === this.#generation) this.#merge(found.filter(Boolean), gone);
  }

  /** Takes in what a view has learned of a call. */
  learn(call) {
    if (this.#byId.has(call.id)) this.#merge([call]);
  }

  // A row goes when its call no longer has the status that is asked for, or is `gone` from the app.
  #merge(calls, gone = []) {
    let changed = !this.rows.length; // an empty first page is news as well
    let added = false;
    for (const id of gone) changed = this.#byId.delete(id) || changed;
    for (const call of calls) {
      const known = this.#byId.get(call.id);
      if (this.filter.status && call.status !== this.filter.status) {
        changed = this.#byId.delete(call.id) || changed;
        continue;
      }
      if (known !== undefined && JSON.stringify(known) === JSON.stringify(call)) continue;
      added ||= known === undefined;
      changed = true;
      this.#byId.set(call.id, call);
    }
    if (!changed) return;
    this.rows = added
      ? [...this.#byId.values()].sort((one, other) => (one.id < other.id ? 1 : -1))
      : this.rows.map((call) => this.#byId.get(call.id)).filter(Boolean);
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

/** A list entry with what a job's status body says now. */
export function ofJob(call, job) {
  const { logs, logsDropped, result, content, attempts, ...told } = job;
  const ended = Date.parse(job.completedAt ?? '') - Date.parse(call?.createdAt ?? job.createdAt);
  const merged = { ...call, ...told, id: call?.id ?? job.jobId };
  if (Number.isFinite(ended)) merged.durationMs = Math.max(ended, 0);
  if (isOver(merged)) {
    merged.outcome = result?.status === 'no_result' && job.status === 'completed' ? 'no-result' : job.status;
  }
  return merged;
}
