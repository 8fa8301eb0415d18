// What a call has answered: text, structured data, images, audio, links and files.

import { button, copyButton, h, webAddress } from './dom.js';
import { fileLine, fileOf, filesIn, MOST_MEDIA, player, safeType, saveButton } from './files.js';
import { bytes, count, cut } from './format.js';
import { tree } from './tree.js';

const MOST_TEXT = 20_000;
const MOST_BLOCKS = 100;

/**
 * Nodes for a result. `structured` and `content` may both be absent. `owns(jobId)`: whether files of that job are the
 * call's own, which alone are offered; `blobs`: see files.js.
 */
export function resultParts({ structured, content }, blobs, owns) {
  const blocks = Array.isArray(content) ? content : [];
  const parts = [];
  if (structured !== undefined && structured !== null) {
    const written = () => JSON.stringify(structured, null, 2);
    parts.push(h('div', { class: 'part' },
      h('div', { class: 'part-head' }, h('h3', {}, 'Data'), copyButton('Copy JSON', written)), tree(structured)));
    const linked = new Set(blocks.map((block) => fileOf(block?.uri, owns)?.name));
    const files = filesIn({ structured }, owns).filter((file) => !linked.has(file.name));
    if (files.length) {
      parts.push(h('div', { class: 'part' }, h('h3', {}, files.length > 1 ? 'Files' : 'File'), files.map((file) => fileLine(file, blobs))));
    }
  }
  for (const block of blocks.slice(0, MOST_BLOCKS)) {
    // Tools that answer with data repeat it as text, for clients that know no data.
    if (block?.type === 'text' && structured != null && sameAs(block.text, structured)) continue;
    parts.push(part(block ?? {}, blobs, owns));
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

function part(block, blobs, owns) {
  switch (block.type) {
    case 'text': return textPart(String(block.text ?? ''));
    case 'image': return mediaPart(block, blobs, 'image');
    case 'audio': return mediaPart(block, blobs, 'audio');
    case 'resource_link': return linkPart(block, blobs, owns);
    case 'resource': return resourcePart(block.resource ?? {}, blobs, owns);
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

function linkPart(block, blobs, owns) {
  const uri = String(block.uri ?? '');
  const name = String(block.title || block.name || uri);
  const told = block.description && h('p', {}, String(block.description));
  const file = fileOf(uri, owns);
  if (file) {
    return h('div', { class: 'part' }, h('h3', {}, 'File'), told, fileLine({ ...file, label: name, type: block.mimeType, size: block.size }, blobs));
  }
  const about = [block.mimeType, typeof block.size === 'number' ? bytes(block.size) : ''].filter(Boolean).join(', ');
  return h('div', { class: 'part' },
    h('div', { class: 'part-head' }, h('h3', {}, 'Link'), h('span', { class: 'hint' }, about)), told, target(uri, name));
}

/** A web address to follow, or, for anything else, only its text. */
function target(uri, name) {
  const web = /^https?:/i.test(uri) ? webAddress(uri) : null;
  if (web) {
    return h('p', {}, h('a', { href: web.href, target: '_blank', rel: 'noopener noreferrer' }, name),
      h('span', { class: 'hint' }, ` ${web.host}`));
  }
  return h('p', {}, name, name !== uri && h('span', { class: 'hint' }, ` ${cut(uri, 200)}`));
}

function resourcePart(resource, blobs, owns) {
  const uri = String(resource.uri ?? '');
  if (typeof resource.text === 'string') return textPart(resource.text, `Resource ${cut(uri, 120)}`);
  const type = String(resource.mimeType ?? '').toLowerCase();
  const data = decoded(resource.blob);
  const title = h('h3', {}, `Resource ${cut(uri, 120)}`);
  if (data === null) {
    const file = fileOf(uri, owns);
    return h('div', { class: 'part' }, title, file ? fileLine({ ...file, type }, blobs) : target(uri, uri));
  }
  const blob = new Blob([data], { type: safeType(type) });
  return h('div', { class: 'part' }, title, player(blob, type, blobs, uri), saveButton(blob, uri.split('/').pop() || 'resource', blobs));
}
