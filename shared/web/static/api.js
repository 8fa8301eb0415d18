// The app's HTTP functions. The token lives in sessionStorage of this tab, goes out in one header and nowhere else.

import { learnClock } from './format.js';

const STORED = 'toolbox.token';
const HEADER = 'X-MCP-Auth-Token';
// What a header may hold; anything else cannot be a token, and fetch would throw.
const SENDABLE = /^[\x21-\x7e]{1,4096}$/;

/** An answer that is not the one hoped for. `status`: 0 when there was none at all. */
export class ApiError extends Error {
  constructor(status, message, { body = null, retryAfter = null } = {}) {
    super(message);
    this.status = status;
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

export const token = {
  get: () => sessionStorage.getItem(STORED),
  set: (value) => sessionStorage.setItem(STORED, value),
  forget: () => sessionStorage.removeItem(STORED),
  sendable: (value) => SENDABLE.test(value),
};

let platform = false;
/**
 * Whether the platform has signed the visitor in (TOOLBOX_TRUST_EASYAUTH), so that no token is needed. It is found out
 * by asking without one.
 */
export const signedIn = {
  get: () => platform,
  forget: () => { platform = false; },
  async find() {
    try {
      await request(withQuery(path('mcp', 'invocations'), { limit: 1 }), { quiet: true, signal: AbortSignal.timeout(2_000) });
      platform = true;
    } catch {
      platform = false;
    }
    return platform;
  },
};

let refused = () => {};
/** What is done when the token is not, or no longer, accepted. */
export function onRefused(action) {
  refused = action;
}

/**
 * One request. Gives `{status, body, etag}`; `body` is null for 304. Raises `ApiError`, and an AbortError when `signal` says so.
 * `headers`: more of them; `anonymous`: without the owner's token; `quiet`: a 401 is the caller's to handle;
 * `blob`: at most so many bytes of it, as a Blob.
 */
export async function request(path, { method = 'GET', etag, body, signal, headers, anonymous, quiet, blob } = {}) {
  const sent = new Headers(headers);
  const given = token.get();
  if (!anonymous && given) sent.set(HEADER, given);
  if (etag) sent.set('If-None-Match', etag);
  if (body !== undefined) sent.set('Content-Type', 'application/json');
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: 'no-store',
      credentials: 'same-origin',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The app does not answer.');
  }
  learnClock(answer.headers.get('Date'));
  if (answer.status === 304) return { status: 304, body: null, etag };
  if (answer.ok && blob) return { status: answer.status, body: await capped(answer, blob) };
  const told = await json(answer);
  if (answer.ok) return { status: answer.status, body: told, etag: answer.headers.get('ETag') };
  if (answer.status === 401 && !quiet) refused();
  throw new ApiError(answer.status, errorText(answer, told), {
    body: told,
    retryAfter: Number(answer.headers.get('Retry-After')) || null,
  });
}

async function json(answer) {
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    if (answer.ok) throw new ApiError(answer.status, 'The app gave an answer that is not JSON.');
    return null;
  }
}

function errorText(answer, told) {
  if (told && typeof told.error === 'string') return told.error;
  if (answer.status === 404) return 'The app has no such page.';
  return `The app answered with status ${answer.status}.`;
}

async function capped(answer, most) {
  const size = Number(answer.headers.get('Content-Length'));
  if (size > most) {
    await answer.body?.cancel();
    throw new ApiError(answer.status, 'The file is too large to be shown here.');
  }
  const whole = await answer.blob();
  if (whole.size > most) throw new ApiError(answer.status, 'The file is too large to be shown here.');
  return whole;
}

/** A path of encoded parts: `path('mcp', 'jobs', id)`. */
export const path = (...parts) => '/' + parts.map(encodeURIComponent).join('/');

/** The same with parameters; empty ones are left out. */
export function withQuery(address, params) {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== '' && value != null));
  return query.size ? `${address}?${query}` : address;
}
