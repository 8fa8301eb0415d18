// Elements, made so that nothing a tool or a caller has said can become markup, a script or a style:
// text goes in as text, attribute names that run code are refused, addresses are looked at.

const CODE = /^(on|style$|srcdoc$)/i;
const ADDRESSES = new Set(['href', 'src', 'action', 'formaction', 'xlink:href']);
const SVG = 'http://www.w3.org/2000/svg';

/**
 * An element. `props`: attributes; `on`: listeners by event name; `data`: dataset entries; a value that is
 * null, undefined or false leaves its attribute out, true sets it empty. Children: nodes, or text.
 * @param {string} tag @param {object} [props] @param {...(Node|string|number|null|undefined|false|Array)} children
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === 'data') {
      Object.assign(element.dataset, value);
    } else {
      attribute(element, name, value);
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Sets an attribute, or removes it. Touches nothing that is as it should be. */
export function attribute(element, name, value) {
  if (CODE.test(name)) throw new TypeError(`attribute ${name} is not allowed`);
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (ADDRESSES.has(name) && !isOurs(text)) throw new TypeError(`address not allowed in ${name}`);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Whether an address may stand in the page: its own, a blob it made, or a link outside by http(s). */
function isOurs(address) {
  if (address.startsWith('blob:') || address.startsWith('#')) return true;
  return webAddress(address) !== null;
}

/** The address as a URL if it is http or https, else null. Relative ones are the page's own. */
export function webAddress(address) {
  try {
    const url = new URL(address, document.baseURI);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url : null;
  } catch {
    return null;
  }
}

/** Puts text in, only where it differs: an unchanged node keeps its selection and is not read out again. */
export function text(element, value) {
  const wanted = String(value ?? '');
  if (element.textContent !== wanted) element.textContent = wanted;
  return element;
}

/** Shows or hides. */
export function shown(element, yes) {
  if (element.hidden === Boolean(yes)) element.hidden = !yes;
  return element;
}

const KEPT = new WeakMap();

/**
 * Makes the children of `parent` those of `items`, in order: one node for each key, made once, moved where it has
 * to go, updated when its item is another object than before.
 */
export function keyed(parent, items, { key, create, update }) {
  const known = KEPT.get(parent) ?? new Map();
  KEPT.set(parent, known);
  const wanted = new Set();
  let place = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    if (wanted.has(name)) continue;
    wanted.add(name);
    let entry = known.get(name);
    if (entry === undefined) {
      entry = { node: create(item), item };
      known.set(name, entry);
      update?.(entry.node, item);
    } else if (entry.item !== item) {
      entry.item = item;
      update?.(entry.node, item);
    }
    if (entry.node === place) place = place.nextSibling;
    else parent.insertBefore(entry.node, place);
  }
  for (const [name, entry] of known) {
    if (!wanted.has(name)) {
      entry.node.remove();
      known.delete(name);
    }
  }
}

/** Empties an element and what `keyed` remembers of it. */
export function clear(element) {
  KEPT.delete(element);
  element.replaceChildren();
  return element;
}

/** A button that is no submit button. */
export function button(label, click, props) {
  return h('button', { type: 'button', class: 'button', on: { click }, ...props }, label);
}

/** A button that copies what `value()` gives, and says so on itself. */
export function copyButton(label, value, props) {
  const made = button(label, async () => {
    let said = 'Copied';
    try {
      await navigator.clipboard.writeText(value());
    } catch {
      said = 'Could not copy';
    }
    made.textContent = said;
    say(said);
    setTimeout(() => { made.textContent = label; }, 1600);
  }, { class: 'button small', ...props });
  return made;
}

/** Says something to screen readers, once, politely. For changes that matter; not for progress. */
export function say(words) {
  const region = document.getElementById('said');
  region.textContent = '';
  // A region that is filled in the same frame as it was emptied is not read out.
  requestAnimationFrame(() => { region.textContent = words; });
}

let ids = 0;
/** An id of this page, for labels. */
export const uid = (prefix) => `${prefix}-${++ids}`;
