// Numbers and times as people read them.

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const whole = new Intl.NumberFormat();

// How far the server's clock is ahead of this one, in ms.
let ahead = 0;

/** Learns the server's time from an answer's Date header, which counts whole seconds. */
export function learnClock(header) {
  const theirs = Date.parse(header ?? '');
  if (Number.isNaN(theirs)) return;
  const difference = theirs + 500 - Date.now();
  ahead = Math.abs(difference) > 1500 ? difference : 0;
}

/** Now by the server's clock: what its times are compared with. */
export const now = () => Date.now() + ahead;

export const count = (number) => whole.format(number);

/** "1 call", "2 calls" */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** The time of day; with the day where it is not today. */
export function moment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const today = new Date().toDateString() === date.toDateString();
  return today ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`;
}

export function fullMoment(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? '' : full.format(date);
}

/** 38 ms, 1.4 s, 2 min 5 s, 3 h 12 min */
export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '';
  const given = Math.max(ms, 0);
  if (given < 1000) return `${Math.round(given)} ms`;
  if (given < 9950) return `${(given / 1000).toFixed(1)} s`;
  const seconds = Math.round(given / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** When an id (UUIDv7) was made, by the server's clock, in ms. */
export const madeAt = (id) => parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

/** How long ago, roughly. */
export function ago(ms) {
  if (ms < 5_000) return 'just now';
  if (ms < 60_000) return `${Math.round(ms / 1000)} s ago`;
  return `${duration(Math.round(ms / 60_000) * 60_000)} ago`;
}

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KiB`;
  return `${(size / 1024 / 1024).toFixed(1)} MiB`;
}

/** A long text, cut with a mark. */
export const cut = (words, most) => (words.length > most ? `${words.slice(0, most)}…` : words);

/** A text whose lines were broken by hand, as a docstring's are: a paragraph is one line. Lists and indented lines stay. */
export const unwrapped = (words) => words.replace(/([^\n])\n(?![\s\-*•>#|`]|\d+[.)]\s)/g, '$1 ');
