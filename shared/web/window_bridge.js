// Put into every tool's page before its own scripts: what the page knows of its host.
//
//   toolboxAPI.invocation.getLaunchContext()   the call's input, with how it was made under __pptb
//   toolboxAPI.invocation.returnData(data)     gives the result; rejected with a text when it does not fit
//   dataverseAPI.METHOD(…)                     as headless; rejected with a text when it fails or is not allowed
//   powerplatformAPI.CATEGORY.Get(…)
//
// All it has is one port of a MessageChannel, which the framing page hands over when this page has loaded; the
// first one from the parent counts, and no other message is listened to.
(() => {
  'use strict';
  const MOST_AT_ONCE = 8;
  const answers = new Map();
  const queue = [];
  let port = null;
  let next = 0;
  let running = 0;
  // What is being returned: {answer, resolve, reject}, of which `answer` is the promise.
  let returning = null;
  let over = false;

  let launched;
  const launch = new Promise((resolve) => { launched = resolve; });
  const copy = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

  function accept(event) {
    const handed = event.source === window.parent && event.data !== null && typeof event.data === 'object'
      && event.data.type === 'toolbox:port' && event.ports.length === 1;
    if (!handed) return;
    window.removeEventListener('message', accept);
    port = event.ports[0];
    port.onmessage = (message) => heard(message.data);
    pump();
  }
  window.addEventListener('message', accept);

  function heard(message) {
    switch (message.type) {
      case 'launch':
        launched(message);
        break;
      case 'result':
      case 'error':
        settle(message);
        break;
      case 'rejected':
        settleReturn((waiting) => waiting.reject(new Error(message.message)));
        break;
      case 'done':
        finish();
        break;
    }
  }

  function settle(message) {
    const waiting = answers.get(message.id);
    if (waiting === undefined) {
      // What was said about a message that bears no number: the one that is being returned.
      if (message.type === 'error') settleReturn((one) => one.reject(new Error(message.message)));
      return;
    }
    answers.delete(message.id);
    running -= 1;
    if (message.type === 'result') waiting.resolve(message.value);
    else waiting.reject(new Error(message.message));
    pump();
  }

  function settleReturn(action) {
    const waiting = returning;
    returning = null;
    if (waiting) action(waiting);
  }

  function finish() {
    over = true;
    settleReturn((waiting) => waiting.resolve());
    const ended = new Error('This window has ended.');
    for (const waiting of [...answers.values(), ...queue.splice(0)]) waiting.reject(ended);
    answers.clear();
  }

  function pump() {
    while (port && queue.length && running < MOST_AT_ONCE) {
      const call = queue.shift();
      running += 1;
      answers.set(call.id, call);
      port.postMessage({ type: 'call', id: call.id, api: call.api, method: call.method, args: call.args });
    }
  }

  function call(api, method, args) {
    return new Promise((resolve, reject) => {
      if (over) {
        reject(new Error('This window has ended.'));
        return;
      }
      queue.push({ id: ++next, api, method, args: copy(args), resolve, reject });
      pump();
    });
  }

  function returnData(data) {
    if (over) return Promise.resolve(); // the first one counts
    if (returning) return returning.answer; // one at a time: whoever calls meanwhile hears what comes of it
    const sent = {};
    sent.answer = new Promise((resolve, reject) => Object.assign(sent, { resolve, reject }));
    returning = sent;
    try {
      const message = { type: 'return', data: copy(data ?? null) };
      launch.then(() => port.postMessage(message));
    } catch (error) {
      settleReturn((one) => one.reject(error)); // it is no JSON
    }
    return sent.answer;
  }

  // Every name is a method, but those by which the language itself asks what an object is.
  const NO_METHODS = new Set(['then', 'toJSON', 'constructor', 'prototype', 'valueOf', 'toString']);
  const named = (make, own = {}) => new Proxy(Object.freeze(own), {
    get: (target, name) => {
      if (typeof name !== 'string' || Object.hasOwn(target, name)) return target[name];
      return NO_METHODS.has(name) ? undefined : make(name);
    },
    set: () => false,
  });

  const dataverseAPI = named((method) => (...args) => call('dataverseAPI', method, args), {
    buildLabel: (text, languageCode = 1033) => ({
      '@odata.type': 'Microsoft.Dynamics.CRM.Label',
      LocalizedLabels: [{
        '@odata.type': 'Microsoft.Dynamics.CRM.LocalizedLabel', Label: String(text), LanguageCode: languageCode,
      }],
    }),
    getAttributeODataType: (type) => `Microsoft.Dynamics.CRM.${type}AttributeMetadata`,
  });
  const powerplatformAPI = named((category) => named(
    (verb) => (...args) => call('powerplatformAPI', `${category}.${verb}`, args),
  ));

  const absent = (where) => named((name) => () => {
    throw new Error(`toolboxAPI.${where}${name} is not available in a window.`);
  });
  const connection = (at) => launch.then(({ connections }) => copy(connections[at] ?? null));
  const slot = (target) => ({ primary: 0, secondary: 1 })[target ?? 'primary'] ?? target;
  const toolboxAPI = named((name) => absent(`${name}.`), {
    invocation: named((name) => () => Promise.reject(new Error(`toolboxAPI.invocation.${name} is not available in a window.`)), {
      getLaunchContext: () => launch.then(({ context }) => copy(context)),
      returnData,
      close: () => launch.then(() => { if (!over) port.postMessage({ type: 'close' }); }),
    }),
    connections: named((name) => () => Promise.reject(new Error(`toolboxAPI.connections.${name} is not available in a window.`)), {
      getActiveConnection: () => connection(0),
      getSecondaryConnection: () => connection(1),
      getConnection: (target) => connection(slot(target)),
      getConnections: () => launch.then(({ connections }) => copy(connections)),
    }),
    utils: named((name) => () => Promise.reject(new Error(`toolboxAPI.utils.${name} is not available in a window.`)), {
      getCurrentTheme: () => Promise.resolve(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'),
      executeParallel: (...work) => Promise.all(work.map((one) => (typeof one === 'function' ? one() : one))),
    }),
    getToolContext: () => launch.then(({ context, tool, connections }) => {
      const { source, mode, expectsResponse } = context.__pptb;
      const first = connections[0] ?? {};
      return {
        toolId: tool.toolId,
        toolName: tool.toolName,
        connectionId: first.id ?? null,
        connectionName: first.name ?? null,
        connectionUrl: first.url ?? null,
        connectionIds: connections.map(({ id }) => id),
        connectionNames: connections.map(({ name }) => name),
        connectionUrls: connections.map(({ url }) => url),
        invocationContext: { source, mode, expectsResponse },
      };
    }),
  });

  for (const [name, value] of Object.entries({ toolboxAPI, dataverseAPI, powerplatformAPI })) {
    Object.defineProperty(window, name, { value, enumerable: true });
  }
})();
