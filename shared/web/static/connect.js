// How a client connects to the app.

import { clear, copyButton, h, uid } from './dom.js';
import { clientConfigs, endpointOf } from './clients.js';
import { heading } from './parts.js';

export function connectView() {
  const local = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
  const key = h('input', { type: 'checkbox', id: uid('key'), checked: !local });
  const token = h('input', { type: 'checkbox', id: uid('token'), checked: true });
  const place = h('div', { class: 'configs' });
  const url = endpointOf(location.origin);

  function draw() {
    clear(place).append(...clientConfigs(location.origin, { key: key.checked, token: token.checked }).map((one) => {
      const id = uid('config');
      return h('section', { class: 'card', 'aria-labelledby': id },
        h('div', { class: 'card-head' }, h('h2', { id }, one.name), h('span', { class: 'spring' }), copyButton('Copy', () => one.text, { 'aria-label': `Copy the configuration for ${one.name}` })),
        h('p', { class: 'hint' }, 'Goes into ', one.file),
        h('pre', { class: 'text code', tabindex: '0', 'aria-label': `Configuration for ${one.name}` }, one.text),
        h('p', { class: 'hint' }, one.notes));
    }));
  }

  for (const box of [key, token]) box.addEventListener('change', draw);
  draw();
  return {
    element: h('div', { class: 'view' }, heading('Connect'),
      h('p', { class: 'prose' }, 'Any MCP client that speaks streamable HTTP can call the tools of this app.'),
      h('section', { class: 'card', 'aria-labelledby': 'endpoint-title' },
        h('div', { class: 'card-head' }, h('h2', { id: 'endpoint-title' }, 'Endpoint'), h('span', { class: 'spring' }), copyButton('Copy', () => url, { 'aria-label': 'Copy the endpoint' })),
        h('pre', { class: 'text code', tabindex: '0' }, url),
        h('dl', { class: 'headers' },
          h('div', {}, h('dt', {}, h('code', {}, 'x-functions-key')), h('dd', {}, 'The system key ', h('code', {}, 'mcp_extension'), ' of the function app. On Azure every MCP request needs it; a local app asks for it only when it was started with ', h('code', {}, '--auth'), '.')),
          h('div', {}, h('dt', {}, h('code', {}, 'X-MCP-Auth-Token')), h('dd', {}, 'Says whose calls these are. It is the token this page was opened with; without it calls belong to the owner ', h('code', {}, 'default'), '.')))),
      h('fieldset', { class: 'choices inline' }, h('legend', {}, 'Headers in the configurations below'),
        h('label', { for: key.id }, key, h('span', {}, 'x-functions-key')), h('label', { for: token.id }, token, h('span', {}, 'X-MCP-Auth-Token'))),
      place),
    leave() {},
  };
}
