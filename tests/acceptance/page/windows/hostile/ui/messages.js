// Taps the port that the bridge is handed: what comes over it is kept, and anything can be sent.
'use strict';

const heard = [];
let port = null;

addEventListener('message', (event) => {
  heard.push(event.data);
  if (event.ports.length && !port) {
    [port] = event.ports;
    port.addEventListener('message', ({ data }) => heard.push(data));
  }
});

/** Sends messages as no bridge would; true if any of them was answered with a value. */
async function forged(...messages) {
  const before = heard.length;
  for (const message of messages) port.postMessage(message);
  // One that is in order: when it is answered, so are those before it.
  await dataverseAPI.queryData('accounts?$top=1').catch(() => {});
  return heard.slice(before).filter(({ type }) => type === 'result').length > 1;
}
