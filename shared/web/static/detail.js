// One invocation: what it was given, how it goes, what it says, and what came of it.

import { path, request, withQuery } from './api.js';
import { button, clear, copyButton, h, say, shown, text } from './dom.js';
import { duration, fullMoment, moment, now } from './format.js';
import { hashOf } from './router.js';
import { isOver, isWaiting, MOST_COUNTED, ofJob } from './calls.js';
import { badge, facts, heading, lasting, note, progress, setBadge, setProgress } from './parts.js';
import { logPanel } from './logs.js';
import { Poller } from './poll.js';
import { Blobs, resultParts } from './result.js';

const CODES = {
  tool_error: 'The tool raised an error.',
  invalid_result: 'The tool answered with something its contract does not allow.',
  timeout: 'It took longer than it was given.',
  cancelled: 'It was cancelled.',
  worker_lost: 'The worker that ran it was lost.',
  poisoned: 'It could not be started after several deliveries.',
};
// The worker's own line at the start of each attempt: a job's row tells of the newest attempt only.
const ATTEMPT = /^running \(attempt (\d+) of \d+\)$/;
const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function detailView(app, { id }) {
  const blobs = new Blobs();
  const title = heading('Invocation');
  const state = badge();
  const took = h('span', { class: 'took' });
  const bar = progress('Progress');
  const window_ = h('div', {});
  const problem = h('div', {});
  const input = h('section', { class: 'card', 'aria-labelledby': 'input-title', hidden: true });
  const result = h('section', { class: 'card', 'aria-labelledby': 'result-title', hidden: true });
  const side = h('aside', { class: 'side', 'aria-label': 'Facts' });
  const log = logPanel();
  shown(log.element, false);
  const cancel = button('Cancel', ask, { class: 'button danger', hidden: true });
  const confirm = h('div', { class: 'confirm', role: 'group', 'aria-label': 'Cancel this call?', hidden: true },
    h('span', {}, 'Stop this call?'), button('Yes, stop it', stop, { class: 'button danger' }),
    button('No', () => { shown(confirm, false); shown(cancel, true); cancel.focus(); }));
  const copyId = copyButton('Copy id', () => id);
  const copyCurl = copyButton('Copy as curl', () => curl(id));
  const actions = h('div', { class: 'actions' }, cancel, confirm, copyId, copyCurl);
  const missing = h('div', { class: 'empty', hidden: true });
  const body = h('div', { class: 'columns', hidden: true },
    h('div', { class: 'main-column' }, window_, problem, result, log.element, input), side);

  let call = app.calls.get(id) ?? null;
  let job = null;
  let tag = null;
  let attempt = null;
  const attempts = new Map();
  let drawn = '';
  let said = '';

  function ask() {
    shown(cancel, false);
    shown(confirm, true);
    confirm.querySelector('button').focus();
  }

  async function stop() {
    shown(confirm, false);
    try {
      const { body: told } = await request(path('mcp', 'jobs', id, 'cancel'), { method: 'POST' });
      if (told) take(told);
      say('The call is being stopped');
    } catch (error) {
      // 409: it has ended meanwhile, which the next round shows.
      if (error.status !== 409) clear(problem).append(note('error', 'It could not be stopped.', error.message));
    }
    title.focus();
    poller.now();
  }

  async function round(signal) {
    if (job === null && call && !call.jobId) return notAJob(signal);
    const address = withQuery(path('mcp', 'jobs', id), { logsAfter: log.last || '' });
    let answer;
    try {
      answer = await request(address, { signal, etag: tag });
    } catch (error) {
      if (error.status !== 404 && error.status !== 503) throw error;
      if (error.status === 503 && call === null) throw error;
      return notAJob(signal);
    }
    if (answer.status !== 304) {
      tag = answer.etag;
      take(answer.body);
    }
    return isOver(job) ? false : undefined;
  }

  // A call that was answered at once has no job: its record in the list is all there is.
  async function notAJob(signal) {
    if (!app.calls.loaded) await app.calls.refresh(signal);
    await app.calls.upTo(MOST_COUNTED, () => !signal.aborted && !app.calls.get(id));
    call = app.calls.get(id) ?? call;
    if (call) draw();
    else notFound();
    return false;
  }

  function notFound() {
    shown(body, false);
    shown(actions, false);
    text(title, 'Not found');
    shown(clear(missing), true).append(
      h('p', { class: 'empty-title' }, 'There is no such call.'),
      h('p', {}, 'It may be another owner’s, or older than the app keeps calls. Calls that were no jobs are looked for among the newest 1,000. ',
        h('a', { href: hashOf('invocations') }, 'All invocations')));
  }

  function take(told) {
    if (attempt !== null && told.attempt > attempt && told.logs?.length && told.logs[0].seq <= log.last) log.restart();
    attempt = told.attempt;
    job = { ...job, ...told };
    // What is absent now is no longer so.
    for (const name of ['cancelRequested', 'completedAt', 'window']) if (!(name in told)) delete job[name];
    call = ofJob(app.calls.get(id) ?? call, job);
    app.calls.learn(call);
    for (const line of told.logs ?? []) {
      const found = ATTEMPT.exec(line.message);
      if (found) attempts.set(Number(found[1]), line.timestamp);
    }
    log.take(told.logs ?? [], told.logsDropped ?? 0);
    draw();
  }

  function draw() {
    shown(missing, false);
    shown(body, true);
    text(title, call.toolName || 'Unknown tool');
    setBadge(state, call);
    shown(state, true);
    text(took, lasting(call));
    setProgress(bar, call);
    shown(cancel, Boolean(job) && !isOver(call) && !call.cancelRequested && confirm.hidden);
    if (isOver(call)) shown(confirm, false);
    shown(copyCurl, Boolean(job ?? call.jobId));
    shown(log.element, Boolean(job) && (!isOver(call) || log.last > 0));
    drawSide();
    const now_ = JSON.stringify([call.error, call.errorCode, call.status, call.inputSummary, isWaiting(call), isOver(call) && Boolean(job)]);
    if (now_ !== drawn) {
      drawn = now_;
      drawWindow();
      drawProblem();
      drawInput();
      drawResult();
    }
    const words = state.lastChild.textContent;
    // The first look is no news; a change is.
    if (said && said !== words) say(`${call.toolName}: ${words}`);
    said = words;
  }

  function drawWindow() {
    clear(window_);
    if (isWaiting(call)) {
      window_.append(note('info', 'This call waits for you.', 'It goes on when you answer in its window. ',
        h('a', { class: 'button primary', href: hashOf('windows', id) }, 'Open the window')));
    }
  }

  function drawProblem() {
    clear(problem);
    if (!call.error || !isOver(call)) return;
    const code = call.errorCode;
    const box = note('error', CODES[code] ?? (call.status === 'rejected' ? 'The call was refused; the tool did not run.' : 'The call failed.'),
      h('pre', { class: 'text', tabindex: '0' }, call.error));
    if (code) box.append(h('p', { class: 'hint' }, 'Code: ', h('code', {}, code)));
    problem.append(box);
  }

  function drawInput() {
    const given = call.inputSummary && call.inputSummary !== '{}';
    shown(input, given);
    if (given) {
      clear(input).append(h('div', { class: 'card-head' }, h('h2', { id: 'input-title' }, 'Input'), h('span', { class: 'hint' }, 'a summary, without secrets')),
        h('pre', { class: 'text', tabindex: '0' }, pretty(call.inputSummary)));
    }
  }

  function drawResult() {
    const over = isOver(call);
    shown(result, over && call.status !== 'rejected');
    if (result.hidden) return;
    blobs.free();
    const parts = job ? resultParts({ structured: job.result, content: job.content }, blobs) : [];
    clear(result).append(h('div', { class: 'card-head' }, h('h2', { id: 'result-title' }, 'Result')), ...parts);
    if (!parts.length) {
      shown(result, call.status === 'completed');
      result.append(h('p', { class: 'hint' }, job ? 'It answered with nothing.' : 'It went to the caller; results of calls that were no jobs are not kept.'));
    }
  }

  function drawSide() {
    const started = Date.parse(call.startedAt ?? '');
    const ended = Date.parse(call.completedAt ?? '');
    const queued = started - Date.parse(call.createdAt);
    const runs = (Number.isNaN(ended) ? now() : ended) - started;
    const rows = [
      ['Mode', [call.executionMode, call.mode].filter(Boolean).join(', ')],
      ['Outcome', call.outcome && isOver(call) && call.outcome !== call.status ? call.outcome : ''],
      ['Owner', call.owner],
      ['Called', moment(call.createdAt)],
      ['Queued for', Number.isFinite(queued) && call.attempt === 1 ? duration(queued) : ''],
      ...[...attempts].filter(([number]) => number < call.attempt).map(([number, at]) => [`Attempt ${number} started`, `${moment(at)}, then lost`]),
      [call.attempt > 1 ? `Attempt ${call.attempt} started` : 'Started', call.startedAt ? moment(call.startedAt) : ''],
      [call.attempt > 1 ? `Attempt ${call.attempt} ran for` : 'Ran for', Number.isFinite(runs) ? duration(runs) : ''],
      ['Ended', call.completedAt ? moment(call.completedAt) : ''],
      ['Time limit', call.timeoutMs ? duration(call.timeoutMs) : ''],
      ['Tool', call.toolName && h('a', { href: hashOf('tools', call.toolName) }, call.toolName)],
      ['Id', h('code', { class: 'id' }, id)],
      ['Correlation id', call.correlationId && h('code', { class: 'id' }, call.correlationId)],
    ];
    const shape = JSON.stringify(rows.map(([term, value]) => [term, value?.textContent ?? value]));
    if (side.dataset.shape === shape) return;
    side.dataset.shape = shape;
    clear(side).append(facts(rows));
    for (const [name, value] of [['Called', call.createdAt], ['Ended', call.completedAt]]) {
      const found = [...side.querySelectorAll('dt')].find((term) => term.textContent === name);
      if (found && value) found.nextSibling.title = fullMoment(value);
    }
  }

  const ticking = setInterval(() => {
    if (call && !isOver(call)) {
      text(took, lasting(call));
      drawSide();
    }
  }, 1000);
  // The list knows of a job what its own status body does not say: the owner, and a summary of the input.
  const learned = () => {
    const listed = app.calls.get(id);
    if (!listed || !job || (call.inputSummary === listed.inputSummary && call.owner === listed.owner)) return;
    call = ofJob(listed, job);
    draw();
  };
  app.calls.addEventListener('change', learned);
  shown(state, false);
  if (call) draw();
  const poller = new Poller(JOB_ID.test(id) ? round : notAJob, { told: (news) => { if (!news.ended) app.tell(news); } }).start();

  return {
    element: h('div', { class: 'view' },
      h('p', { class: 'back' }, h('a', { href: app.listHash() }, '← Invocations')),
      h('div', { class: 'title-line' }, title, state, took), bar, actions, missing, body),
    leave() {
      poller.stop();
      clearInterval(ticking);
      app.calls.removeEventListener('change', learned);
      blobs.free();
    },
  };
}

function pretty(summary) {
  try {
    return JSON.stringify(JSON.parse(summary), null, 2);
  } catch {
    return summary; // cut, so that it is JSON no more
  }
}

/** A command that reads the job. The token is left to be filled in: what is copied may be pasted anywhere. */
function curl(id) {
  return `curl -s '${location.origin}${path('mcp', 'jobs', id)}' -H "X-MCP-Auth-Token: $MCP_AUTH_TOKEN"`;
}
