// Asks for the token, and says plainly when it is wrong.

import { ApiError, path, request, token, withQuery } from './api.js';
import { h, shown, text } from './dom.js';

const WRONG = 'The app does not accept this token.';

/** `done()` is called once a token has been accepted. `refused`: one that was in use is accepted no longer. */
export function signInView(done, { refused = false } = {}) {
  // No name: were the form ever sent by the browser itself, the token would not be in it.
  const field = h('input', { type: 'password', id: 'token', autocomplete: 'current-password', spellcheck: 'false', 'aria-required': 'true', 'aria-describedby': 'token-fault token-hint' });
  const fault = h('p', { class: 'fault', id: 'token-fault', role: 'alert' });
  const go = h('button', { type: 'submit', class: 'button primary' }, 'Open');
  const see = h('button', { type: 'button', class: 'button quiet', 'aria-pressed': 'false', on: { click: () => {
    const hidden = field.type === 'password';
    field.type = hidden ? 'text' : 'password';
    see.setAttribute('aria-pressed', String(hidden));
  } } }, 'Show');
  if (refused) text(fault, 'The token that was in use is no longer accepted.');

  async function submit(event) {
    event.preventDefault();
    const given = field.value.trim();
    text(fault, '');
    field.removeAttribute('aria-invalid');
    if (!given) return wrong('A token is needed.');
    if (!token.sendable(given)) return wrong(`${WRONG} It has characters that no token has.`);
    go.disabled = true;
    try {
      await request(withQuery(path('mcp', 'invocations'), { limit: 1 }), { headers: { 'X-MCP-Auth-Token': given }, anonymous: true, quiet: true });
      token.set(given);
      done();
    } catch (error) {
      wrong(reason(error));
    } finally {
      go.disabled = false;
    }
  }

  function wrong(words) {
    text(fault, words);
    field.setAttribute('aria-invalid', 'true');
    field.focus();
    field.select();
  }

  shown(fault, true);
  return {
    element: h('div', { class: 'view sign-in' }, h('div', { class: 'card' },
      h('h1', { tabindex: '-1' }, 'Access token'),
      h('p', {}, 'This page shows the calls of one owner. Enter the token that says who you are.'),
      h('form', { novalidate: true, on: { submit } },
        h('div', { class: 'field' }, h('label', { for: 'token' }, 'Token'), h('div', { class: 'joined' }, field, see), fault,
          h('p', { class: 'hint', id: 'token-hint' }, 'One of MCP_AUTH_TOKEN or MCP_AUTH_TOKENS in the app’s settings. It stays in this tab until you close it or forget it.')), go))),
    focus: () => field.focus(),
    leave() {},
  };
}

function reason(error) {
  if (!(error instanceof ApiError)) return String(error);
  if (error.status === 401) return WRONG;
  if (error.status === 503) return `The app cannot check tokens: ${error.message}`;
  return error.message;
}
