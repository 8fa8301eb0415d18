// One invocation: what it was given, how it goes, what it says, and what came of it.

import { path, request, withQuery } from './api.js';
import { attribute, button, clear, copyButton, h, keyed, say, shown, text } from './dom.js';
import { duration, fullMoment, madeAt, moment, now } from './format.js';
import { hashOf } from './router.js';
import { attemptPanel, attemptsOf, waitsSince } from './attempts.js';
import { isOver, isWaiting, ofJob } from './calls.js';
import { Blobs } from './files.js';
import { badge, heading, lasting, note, progress, setBadge, setProgress } from './parts.js';
import { logPanel } from './logs.js';
import { Poller } from './poll.js';
import { resultParts } from './result.js';

const CODES = {
  tool_error: 'The tool raised an error.',
  invalid_result: 'The tool answered with something its contract does not allow.',
  timeout: 'It took longer than it was given.',
  cancelled: 'It was cancelled.',
  worker_lost: 'The worker that ran it was lost.',
  poisoned: 'It could not be started after several deliveries.',
};
// The record of a call that was no job is stored a second after its end: until then there is none, which is no news.
const SETTLED = 10_000;
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

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
  const attempts = attemptPanel();
  const list = h('dl', { class: 'facts' });
  const side = h('aside', { class: 'side', 'aria-label': 'Facts' }, list);
  const log = logPanel();
  shown(log.element, false);
  const cancel = button('Cancel', ask, { class: 'button danger', hidden: true });
  const confirm = h('div', { class: 'confirm', role: 'group', 'aria-label': 'Cancel this call?', hidden: true },
    h('span', {}, 'Stop this call?'), button('Yes, stop it', stop, { class: 'button danger' }),
    button('No', () => { shown(confirm, false); shown(cancel, true); cancel.focus(); }));
  const copyId = copyButton('Copy id', () => id);
  const copyCurl = copyButton('Copy as curl', () => curl(isJob() ? 'jobs' : 'invocations', id), { hidden: true });
  const actions = h('div', { class: 'actions' }, cancel, confirm, copyId, copyCurl);
  const missing = h('div', { class: 'empty', hidden: true });
  const loading = h('p', { class: 'foot', role: 'status' }, 'Loading…');
  const body = h('div', { class: 'columns', hidden: true },
    h('div', { class: 'main-column' }, window_, problem, result, attempts.element, log.element, input), side);

  let call = app.calls.get(id) ?? null;
  let job = null;
  let tag = null;
  let attempt = null;
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
    if (call === null && !(await find(signal))) return undefined;
    if (call === null) return false;
    if (isJob()) return follow(signal);
    // Its own record, which says how it went, comes later than that of its files: the call may run until then.
    return call.jobId && mayRun() ? void await find(signal) : false;
  }

  /** Asks for a call as the list has it. False: there is none yet. */
  async function find(signal) {
    try {
      call = (await request(path('mcp', 'invocations', id), { signal })).body;
      draw();
    } catch (error) {
      if (error.status !== 404) throw error;
      if (isYoung()) return false;
      notFound();
    }
    return true;
  }

  // An inline call that has left files has their record's id, which is no job's. One-way ones are jobs.
  const isJob = () => Boolean(call.jobId) && !(call.executionMode === 'inline' && call.mode === 'two-way');

  const isYoung = () => now() - madeAt(id) < SETTLED;

  // Only the record of files has a time limit.
  const mayRun = () => now() - madeAt(id) < (call.timeoutMs ?? 0) + SETTLED;

  async function follow(signal) {
    const address = withQuery(path('mcp', 'jobs', id), { logsAfter: log.last || '' });
    let answer;
    try {
      answer = await request(address, { signal, etag: tag });
    } catch (error) {
      // The job is gone; what the list has said of it stays.
      if (error.status === 404) return false;
      throw error;
    }
    if (answer.status !== 304) {
      tag = answer.etag;
      take(answer.body);
    }
    return isOver(job) ? false : undefined;
  }

  function notFound() {
    shown(loading, false);
    shown(body, false);
    shown(actions, false);
    text(title, 'Not found');
    shown(clear(missing), true).append(
      h('p', { class: 'empty-title' }, 'There is no such call.'),
      h('p', {}, 'It may be another owner’s, or older than the app keeps calls. ', h('a', { href: hashOf('invocations') }, 'All invocations')));
  }

  function take(told) {
    if (attempt !== null && told.attempt > attempt && told.logs?.length && told.logs[0].seq <= log.last) log.restart();
    attempt = told.attempt;
    job = { ...job, ...told };
    // What is absent now is no longer so.
    for (const name of ['cancelRequested', 'completedAt', 'window']) if (!(name in told)) delete job[name];
    call = ofJob(app.calls.get(id) ?? call, job);
    app.calls.learn(call);
    log.take(told.logs ?? [], told.logsDropped ?? 0);
    draw();
  }

  function draw() {
    shown(loading, false);
    shown(missing, false);
    shown(body, true);
    text(title, call.toolName || 'Unknown tool');
    setBadge(state, call);
    shown(state, true);
    text(took, lasting(call));
    setProgress(bar, call);
    shown(cancel, Boolean(job) && !isOver(call) && !call.cancelRequested && confirm.hidden);
    if (isOver(call)) shown(confirm, false);
    shown(copyCurl, true);
    shown(log.element, Boolean(job) && (!isOver(call) || log.last > 0));
    drawTimes();
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
    const parts = job ? resultParts({ structured: job.result, content: job.content }, blobs, (owner) => owner === job.jobId) : [];
    clear(result).append(h('div', { class: 'card-head' }, h('h2', { id: 'result-title' }, 'Result')), ...parts);
    if (!parts.length) {
      shown(result, call.status === 'completed');
      result.append(h('p', { class: 'hint' }, job ? 'It answered with nothing.' : 'It went to the caller; results of calls that were no jobs are not kept.'));
    }
  }

  function drawTimes() {
    const known = { ...call, attempts: job?.attempts };
    const times = attemptsOf(known, now());
    const since = waitsSince(known);
    const waiting = since === null ? null : now() - since;
    const several = attempts.show(times, waiting);
    drawSide(several ? null : times[0], several ? null : waiting);
  }

  /** `only`: the attempt of a job that took one. */
  function drawSide(only, waiting) {
    const queued = only ? only.queued : waiting;
    const at = (iso) => [iso ? moment(iso) : '', fullMoment(iso ?? '')];
    const rows = [
      ['Mode', [call.executionMode, call.mode].filter(Boolean).join(', ')],
      ['Outcome', call.outcome && isOver(call) && call.outcome !== call.status ? call.outcome : ''],
      ['Owner', call.owner],
      ['Called', ...at(call.createdAt)],
      ['Queued for', duration(queued)],
      [call.window ? 'Opened' : 'Started', ...at(only || call.window ? call.startedAt : null)],
      ['Ran for', duration(only?.ran)],
      ['Ended', ...at(call.completedAt)],
      ['Time limit', call.timeoutMs ? duration(call.timeoutMs) : ''],
      ['Tool', call.toolName, '', () => h('a', { href: hashOf('tools', call.toolName) })],
      ['Id', id, '', () => h('code', { class: 'id' })],
      ['Correlation id', call.correlationId, '', () => h('code', { class: 'id' })],
    ];
    // Each fact is one element that stays: what has the focus keeps it while times go on.
    keyed(list, rows.filter(([, value]) => value), {
      key: ([term]) => term,
      create: ([term, , , make]) => h('div', {}, h('dt', {}, term), h('dd', {}, make?.() ?? h('span', {}))),
      update(node, [, value, title]) {
        text(node.lastChild.firstChild, value);
        attribute(node.lastChild.firstChild, 'title', title || null);
      },
    });
  }

  const ticking = setInterval(() => {
    if (call && !isOver(call)) {
      text(took, lasting(call));
      drawTimes();
    }
  }, 1000);
  shown(state, false);
  if (call) draw();
  const poller = new Poller(round, { told: (news) => app.tell(poller, news) });
  if (ID.test(id)) poller.start();
  else notFound();

  return {
    element: h('div', { class: 'view' },
      h('p', { class: 'back' }, h('a', { href: app.listHash() }, '← Invocations')),
      h('div', { class: 'title-line' }, title, state, took), bar, actions, loading, missing, body),
    leave() {
      poller.stop();
      app.drop(poller);
      clearInterval(ticking);
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

/** A command that reads the call. The token is left to be filled in: what is copied may be pasted anywhere. */
function curl(kind, id) {
  return `curl -s '${location.origin}${path('mcp', kind, id)}' -H "X-MCP-Auth-Token: $MCP_AUTH_TOKEN"`;
}
