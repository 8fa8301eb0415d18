// Attacks that take the page, or its window, away. One at a time.
'use strict';

const leaving = (to) => ({
  'elsewhere': () => { location.href = `${to}/elsewhere`; },
  'replaced': () => { location.replace(`${to}/replaced`); },
  'refreshed': () => { put('meta', { httpEquiv: 'refresh', content: `0;url=${to}/refreshed` }); },
  'linked': () => { clicks({ href: `${to}/linked` }); },
  'loaded again': () => { location.reload(); },
  'its own file': () => { location.href = 'index.html?again'; },
  'nothing': () => { location.href = 'about:blank'; },
  'a document of data': () => { location.href = `data:text/html,<img src="${to}/data">`; },
  'a document of a blob': () => { location.href = URL.createObjectURL(new Blob([`<img src="${to}/blob">`], { type: 'text/html' })); },
  'the page of the app': () => { location.href = '/'; },
  'the jobs of the app': () => { location.href = '/mcp/jobs'; },
});

const FLOOD = 2_000;
const ending = {
  'flood': () => { for (let at = 0; at < FLOOD; at += 1) port.postMessage({ type: 'nonsense', at }); },
  'twice': () => { for (const answer of ['one', 'two', 'three']) port.postMessage({ type: 'return', data: { answer } }); },
};
