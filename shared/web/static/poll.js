// Asks again and again, and knows how it stands: every 2 s while the page is seen, seldom while it is hidden, ever more seldom while it fails.

export const EVERY = 2_000;
const HIDDEN = 30_000;
const MOST = 30_000;
/** Data older than this is called stale. */
export const STALE = 10_000;

/** `work(signal)` is one round. It may give the ms until the next one; false: there is no next one. */
export class Poller {
  #work; #every; #told; #timer = null; #abort = null; #failures = 0; #running = false;

  /** `told({ok, at, error, retryAt})` hears of every round. */
  constructor(work, { every = EVERY, told = () => {} } = {}) {
    this.#work = work;
    this.#every = every;
    this.#told = told;
  }

  start() {
    this.#running = true;
    document.addEventListener('visibilitychange', this.#seen);
    this.#round();
    return this;
  }

  stop() {
    this.#running = false;
    document.removeEventListener('visibilitychange', this.#seen);
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  /** A round now, whatever the clock says. A round under way is given up: it may have asked for something else. */
  now() {
    if (!this.#running) return;
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#round();
  }

  set every(ms) {
    this.#every = ms;
  }

  #seen = () => {
    if (document.visibilityState === 'visible') this.now();
  };

  async #round() {
    const abort = (this.#abort = new AbortController());
    let pause = this.#every;
    try {
      const next = await this.#work(abort.signal);
      if (abort.signal.aborted) return;
      this.#failures = 0;
      if (next === false) {
        this.#told({ ok: true, at: Date.now(), ended: true });
        this.stop();
        return;
      }
      if (typeof next === 'number') pause = next;
      this.#told({ ok: true, at: Date.now() });
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#failures += 1;
      pause = Math.min(this.#every * 2 ** this.#failures, MOST);
      if (error.retryAfter) pause = Math.max(pause, Math.min(error.retryAfter * 1000, MOST));
      this.#told({ ok: false, at: Date.now(), error, retryAt: Date.now() + pause });
    }
    if (!this.#running) return;
    if (document.visibilityState === 'hidden') pause = Math.max(pause, HIDDEN);
    this.#timer = setTimeout(() => this.#round(), pause);
  }
}

/** What pollers have told last, each under a source of its own: one that answers hides no other that fails. */
export class News {
  #last = new Map();

  tell(source, { ok, at, error, retryAt, ended = false }) {
    if (ended) this.drop(source);
    else if (ok) this.#last.set(source, { failure: '', fresh: at, retryAt: null });
    else this.#last.set(source, { failure: error.message, fresh: this.#last.get(source)?.fresh ?? null, retryAt });
  }

  /** Forgets a source that is asked no longer. */
  drop(source) {
    this.#last.delete(source);
  }

  clear() {
    this.#last.clear();
  }

  /** `{failure, fresh, retryAt}` of the source that fails longest, else of the one that answered longest ago. */
  get worst() {
    const all = [...this.#last.values()];
    const failing = all.filter((one) => one.failure);
    const [first, ...rest] = failing.length ? failing : all;
    return rest.reduce((worst, one) => ((one.fresh ?? 0) < (worst.fresh ?? 0) ? one : worst), first ?? { failure: '', fresh: null, retryAt: null });
  }
}
