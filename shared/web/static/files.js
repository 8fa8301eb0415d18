// Files that a call has left: found in what it has answered, fetched with the token when asked for, and saved.

import { path, request } from './api.js';
import { button, h, say } from './dom.js';
import { bytes } from './format.js';

// What is shown in place, and nothing else: kinds that a browser shows without running anything. An SVG in <img> runs
// no script and loads nothing.
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml', 'image/avif', 'image/bmp']);
const SOUNDS = /^audio\/(mpeg|mp3|ogg|wav|x-wav|webm|flac|aac|mp4|opus)$/;
export const MOST_MEDIA = 16 * 1024 * 1024;
// What a tool may store.
const MOST_FILE = 100 * 1024 * 1024;
const MOST_FILES = 50;
// Values of a result that are looked at for files.
const MOST_LOOKED_AT = 5_000;
const ID = '([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})';
// The names that the app takes: no dot at the beginning, nothing that an address could be climbed out of with.
const NAME = '([A-Za-z0-9_-][A-Za-z0-9_.-]{0,127})';
const LINK = new RegExp(`^artifact://${ID}/${NAME}$`);
const PATH = new RegExp(`^/mcp/jobs/${ID}/artifacts/${NAME}$`);

/** Blob addresses that a view has made: they hold memory until they are given back. */
export class Blobs {
  #made = new Set();

  address(blob) {
    const made = URL.createObjectURL(blob);
    this.#made.add(made);
    return made;
  }

  free() {
    for (const made of this.#made) URL.revokeObjectURL(made);
    this.#made.clear();
  }
}

/**
 * The file that a text is the address of, `{jobId, name}`, if it is one of the job's own: `owns(jobId)`. Null for
 * anything else: the token goes to no address that a tool has made up.
 */
export function fileOf(words, owns) {
  if (typeof words !== 'string' || words.length > 500) return null;
  const own = words.startsWith(`${location.origin}/`) ? words.slice(location.origin.length) : words;
  const found = LINK.exec(own) ?? PATH.exec(own);
  return found && owns(found[1]) ? { jobId: found[1], name: found[2] } : null;
}

/** The files whose addresses stand somewhere in data, each once: `{jobId, name, type, size}`. */
export function filesIn(data, owns) {
  const found = new Map();
  const waiting = [data];
  for (let looked = 0; waiting.length && looked < MOST_LOOKED_AT && found.size < MOST_FILES; looked += 1) {
    const value = waiting.shift();
    if (value === null || typeof value !== 'object') continue;
    for (const one of Object.values(value)) {
      const file = fileOf(one, owns);
      // What is said of a file stands beside its address.
      if (file) found.set(file.name, { type: value.mimeType, size: value.size, ...file });
      else if (one !== null && typeof one === 'object' && waiting.length < MOST_LOOKED_AT) waiting.push(one);
    }
  }
  return [...found.values()];
}

/** A file with what is known of it, and buttons that fetch it. `label`: what stands for its name. */
export function fileLine({ jobId, name, type, size, label = name }, blobs) {
  const said = h('span', { class: 'hint', role: 'status' });
  const place = h('div', {});
  const kind = typeof type === 'string' ? type.toLowerCase() : '';
  const about = [kind, typeof size === 'number' ? bytes(size) : ''].filter(Boolean).join(', ');
  const fetched = async (most) => {
    said.textContent = 'Loading…';
    try {
      const { body } = await request(path('mcp', 'jobs', jobId, 'artifacts', name), { blob: most });
      said.textContent = '';
      return body;
    } catch (error) {
      said.textContent = error.message;
      return null;
    }
  };
  const view = canBeShown(kind) && button('Show', async (event) => {
    const clicked = event.currentTarget;
    const got = await fetched(MOST_MEDIA);
    if (!got) return;
    place.append(player(new Blob([got], { type: kind }), kind, blobs, label));
    clicked.remove();
    say('Shown');
  }, { class: 'button small', 'aria-label': `Show ${label}` });
  return h('div', {}, h('p', { class: 'file' }, h('span', { class: 'file-name' }, label), about && h('span', { class: 'hint' }, about),
    button('Download', async () => {
      const got = await fetched(MOST_FILE);
      if (got) save(new Blob([got], { type: safeType('') }), name, blobs);
    }, { class: 'button small', 'aria-label': `Download ${label}` }), view, said), place);
}

const canBeShown = (type) => IMAGES.has(type) || SOUNDS.test(type);

/** A type that a saved or opened blob may carry: one that is shown here, else plain bytes. */
export const safeType = (type) => (canBeShown(type) ? type : 'application/octet-stream');

/** An image or a sound to look at or listen to; null for what is neither. */
export function player(blob, type, blobs, alt) {
  if (IMAGES.has(type)) return h('img', { class: 'media', src: blobs.address(blob), alt });
  if (SOUNDS.test(type)) return h('audio', { class: 'media', controls: true, src: blobs.address(blob) });
  return null;
}

export function saveButton(blob, name, blobs) {
  return button('Save', () => save(blob, name, blobs), { class: 'button small' });
}

function save(blob, name, blobs) {
  h('a', { href: blobs.address(blob), download: name }).click();
}
