// Numbers of calls, per tool.

import { isOver } from './calls.js';

/**
 * Per tool, most called first: `{name, calls, failures, rejected, running, p50, p95}`. Durations in ms, of calls that have ended;
 * null without one. A call that was rejected counts as a failure, and has no duration worth counting: no tool ran.
 */
export function perTool(rows) {
  const tools = new Map();
  for (const call of rows) {
    const name = call.toolName || '(unknown)';
    const found = tools.get(name) ?? { name, calls: 0, failures: 0, rejected: 0, running: 0, durations: [] };
    tools.set(name, found);
    found.calls += 1;
    if (!isOver(call)) found.running += 1;
    else if (call.status !== 'completed') found.failures += 1;
    if (call.status === 'rejected') found.rejected += 1;
    if (isOver(call) && call.status !== 'rejected' && typeof call.durationMs === 'number') found.durations.push(call.durationMs);
  }
  return [...tools.values()]
    .map(({ durations, ...found }) => {
      durations.sort((one, other) => one - other);
      return { ...found, p50: quantile(durations, 0.5), p95: quantile(durations, 0.95) };
    })
    .sort((one, other) => other.calls - one.calls || (one.name < other.name ? -1 : 1));
}

/** The nearest-rank quantile of sorted numbers; null of none. */
export function quantile(sorted, part) {
  return sorted.length ? sorted[Math.max(Math.ceil(part * sorted.length), 1) - 1] : null;
}
