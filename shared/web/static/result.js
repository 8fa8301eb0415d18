// What a call has answered: text, structured data, images, audio, links and files.

import { request, path } from './api.js';
import { button, copyButton, h, say, webAddress } from './dom.js';
import { bytes, count, cut } from './format.js';
import { tree } from './tree.js';

// What is shown in place, and nothing else: kinds that a browser shows without running anything. An SVG in <img> runs
// no script and loads nothing.
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml', 'image/avif', 'image/bmp']);
const SOUNDS = /^audio\/(mpeg|mp3|ogg|wav|x-wav|webm|flac|aac|mp4|opus)$/;
const MOST_MEDIA = 16 * 1024 * 1024;
const MOST_FILE = 64 * 1024 * 1024;
const MOST_TEXT = 20_000;
const MOST_BLOCKS = 100;
const ARTIFACT = /^artifact:\/\/([0-9a-f-]{36})\/([^/?#]{1,200})$/;

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

/** Nodes for a result. `structured` and `content` may both be absent. */
export function resultParts({ structured, content }, blobs) {
  const blocks = Array.isArray(content) ? content : [];
  const parts = [];
  if (structured !== undefined && structured !== null) {
    const written = () => JSON.stringify(structured, null, 2);
    parts.push(h('div', { class: 'part' },
      h('div', { class: 'part-head' }, h('h3', {}, 'Data'), copyButton('Copy JSON', written)), tree(structured)));
  }
  for (const block of blocks.slice(0, MOST_BLOCKS)) {
    // Tools that answer with data repeat it as text, for clients that know no data.
    if (block?.type === 'text' && structured != null && sameAs(block.text, structured)) continue;
    parts.push(part(block ?? {}, blobs));
  }
  if (blocks.length > MOST_BLOCKS) parts.push(h('p', { class: 'hint' }, `${count(blocks.length - MOST_BLOCKS)} more parts are not shown.`));
  return parts;
}

function sameAs(words, value) {
  if (typeof words !== 'string' || !/^\s*[[{]/.test(words)) return false;
  try {
    return JSON.stringify(JSON.parse(words)) === JSON.stringify(value);
  } catch {
    return false;
  }
}

function part(block, blobs) {
  switch (block.type) {
    case 'text': return textPart(String(block.text ?? ''));
    case 'image': return mediaPart(block, blobs, 'image');
    case 'audio': return mediaPart(block, blobs, 'audio');
    case 'resource_link': return linkPart(block, blobs);
    case 'resource': return resourcePart(block.resource ?? {}, blobs);
    default: return h('div', { class: 'part' }, h('h3', {}, String(block.type ?? 'Part')), tree(block));
  }
}

function textPart(words, title = 'Text') {
  const shown = h('pre', { class: 'text', tabindex: '0' }, cut(words, MOST_TEXT));
  const rest = words.length > MOST_TEXT && button(`Show all ${count(words.length)} characters`, (event) => {
    shown.textContent = words;
    event.currentTarget.remove();
  }, { class: 'button small' });
  return h('div', { class: 'part' }, h('div', { class: 'part-head' }, h('h3', {}, title), copyButton('Copy text', () => words)), shown, rest);
}

/** Bytes of base64, or null if it is none, or too much. */
function decoded(data) {
  if (typeof data !== 'string' || data.length > MOST_MEDIA * 1.4) return null;
  try {
    return Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

function mediaPart(block, blobs, kind) {
  const type = String(block.mimeType ?? '').toLowerCase();
  const data = decoded(block.data);
  const title = kind === 'image' ? 'Image' : 'Audio';
  if (data === null) return h('div', { class: 'part' }, h('h3', {}, title), h('p', { class: 'hint' }, 'It is too large, or not readable, and is not shown.'));
  const blob = new Blob([data], { type: safeType(type) });
  const about = `${type || 'no type given'}, ${bytes(blob.size)}`;
  return h('div', { class: 'part' },
    h('div', { class: 'part-head' }, h('h3', {}, title), h('span', { class: 'hint' }, about)),
    player(blob, type, blobs, `Image that the tool has made (${about})`) ?? saveButton(blob, `${kind}.bin`, blobs));
}

/** A type that a saved or opened blob may carry: one that is shown here, else plain bytes. */
const safeType = (type) => (IMAGES.has(type) || SOUNDS.test(type) ? type : 'application/octet-stream');

function player(blob, type, blobs, alt) {
  if (IMAGES.has(type)) return h('img', { class: 'media', src: blobs.address(blob), alt });
  if (SOUNDS.test(type)) return h('audio', { class: 'media', controls: true, src: blobs.address(blob) });
  return null;
}

function saveButton(blob, name, blobs, label = 'Save') {
  return button(label, () => save(blob, name, blobs), { class: 'button small' });
}

function save(blob, name, blobs) {
  h('a', { href: blobs.address(blob), download: name }).click();
}

function linkPart(block, blobs) {
  const name = String(block.title || block.name || block.uri || '');
  const about = [block.mimeType, typeof block.size === 'number' ? bytes(block.size) : ''].filter(Boolean).join(', ');
  return h('div', { class: 'part' },
    h('div', { class: 'part-head' }, h('h3', {}, 'Link'), h('span', { class: 'hint' }, about)),
    block.description && h('p', {}, String(block.description)), target(String(block.uri ?? ''), name, block.mimeType, blobs));
}

/** A file of a job to fetch, a web address to follow, or, for anything else, only its text. */
function target(uri, name, type, blobs) {
  const artifact = ARTIFACT.exec(uri);
  if (artifact) return artifactPart(artifact[1], safeDecoded(artifact[2]), name, type, blobs);
  const web = /^https?:/i.test(uri) ? webAddress(uri) : null;
  if (web) {
    return h('p', {}, h('a', { href: web.href, target: '_blank', rel: 'noopener noreferrer' }, name),
      h('span', { class: 'hint' }, ` ${web.host}`));
  }
  return h('p', {}, name, name !== uri && h('span', { class: 'hint' }, ` ${cut(uri, 200)}`));
}

function safeDecoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function artifactPart(jobId, file, name, type, blobs) {
  const said = h('span', { class: 'hint', role: 'status' });
  const place = h('div', {});
  const kind = String(type ?? '').toLowerCase();
  const isShown = IMAGES.has(kind) || SOUNDS.test(kind);
  const fetched = async (most) => {
    said.textContent = 'Loading…';
    try {
      const { body } = await request(path('mcp', 'jobs', jobId, 'artifacts', file), { blob: most });
      said.textContent = '';
      return body;
    } catch (error) {
      said.textContent = error.message;
      return null;
    }
  };
  const view = isShown && button('Show', async (event) => {
    const clicked = event.currentTarget;
    const got = await fetched(MOST_MEDIA);
    if (!got) return;
    place.append(player(new Blob([got], { type: kind }), kind, blobs, name));
    clicked.remove();
    say('Shown');
  }, { class: 'button small' });
  return h('div', {}, h('p', { class: 'file' }, h('span', {}, name),
    button('Download', async () => {
      const got = await fetched(MOST_FILE);
      if (got) save(new Blob([got], { type: 'application/octet-stream' }), file, blobs);
    }, { class: 'button small', 'aria-label': `Download ${name}` }), view, said), place);
}

function resourcePart(resource, blobs) {
  const uri = String(resource.uri ?? '');
  if (typeof resource.text === 'string') return textPart(resource.text, `Resource ${cut(uri, 120)}`);
  const type = String(resource.mimeType ?? '').toLowerCase();
  const data = decoded(resource.blob);
  const title = h('h3', {}, `Resource ${cut(uri, 120)}`);
  if (data === null) return h('div', { class: 'part' }, title, target(uri, uri, type, blobs));
  const blob = new Blob([data], { type: safeType(type) });
  return h('div', { class: 'part' }, title, player(blob, type, blobs, uri), saveButton(blob, uri.split('/').pop() || 'resource', blobs));
}
