// A form made from a JSON Schema. Each field is `{element, read(), set(value)}`; `read` gives the value, or `NOTHING`
// when the field was left empty, and adds to `faults` what cannot be sent. Whatever has no field is edited as JSON.

import { attribute, button, clear, h, text, uid } from './dom.js';
import { fieldOf, limits } from './schema.js';

const NOTHING = Symbol('left out');
const LONG_TEXT = 200;
const MISSING = 'required';

/** The form of an object schema. `read()`: `{value, faults: [{field, message}]}`. */
export function argumentForm(schema) {
  const fields = objectFields(schema, schema, 0);
  return {
    element: h('div', { class: 'fields' }, fields.element),
    set: fields.set,
    read() {
      const faults = [];
      const value = fields.read(faults);
      return { value: value === NOTHING ? {} : value, faults };
    },
  };
}

/** An editor of a JSON value with a place for its fault. */
export function jsonEditor(id, { rows = 4, required = false, must = null } = {}) {
  const area = h('textarea', { id, class: 'code', rows, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off' });
  const fault = faultOf(area);
  return {
    area,
    element: h('div', {}, area, fault.element),
    set: (value) => { area.value = JSON.stringify(value, null, 2); },
    read(faults) {
      fault.say('');
      if (!area.value.trim()) return required ? fault.report(faults, MISSING) : NOTHING;
      let value;
      try {
        value = JSON.parse(area.value);
      } catch (error) {
        return fault.report(faults, `is not JSON: ${error.message}`);
      }
      const wrong = must?.(value);
      return wrong ? fault.report(faults, wrong) : value;
    },
  };
}

export const isNothing = (value) => value === NOTHING;

/** The fault of one input: said beside it, tied to it. */
function faultOf(input) {
  const element = h('p', { class: 'fault', id: uid('fault'), hidden: true });
  const described = input.getAttribute('aria-describedby') ?? '';
  const say = (words) => {
    text(element, words);
    element.hidden = !words;
    attribute(input, 'aria-invalid', words ? 'true' : null);
    attribute(input, 'aria-describedby', [described, words ? element.id : ''].filter(Boolean).join(' ') || null);
  };
  return {
    element,
    say,
    report(faults, message) {
      say(message.charAt(0).toUpperCase() + message.slice(1));
      faults.push({ field: input, message, clear: () => say('') });
      return NOTHING;
    },
  };
}

function objectFields(schema, root, depth) {
  const required = new Set(schema.required ?? []);
  const names = Object.keys(schema.properties ?? {});
  // What must be given comes first; else the order is the schema's.
  names.sort((one, other) => Number(required.has(other)) - Number(required.has(one)));
  const parts = names.map((name) => [name, field(name, schema.properties[name], root, required.has(name), depth)]);
  return {
    element: h('div', { class: 'fields' }, parts.map(([, part]) => part.element)),
    set(value) {
      for (const [name, part] of parts) if (value && Object.hasOwn(value, name)) part.set(value[name]);
    },
    read(faults) {
      const pairs = parts.map(([name, part]) => [name, part.read(faults)]).filter(([, value]) => value !== NOTHING);
      // Not by assignment: a property may be named __proto__.
      return pairs.length || depth === 0 ? Object.fromEntries(pairs) : NOTHING;
    },
  };
}

function field(name, given, root, required, depth) {
  const found = fieldOf(given, root, depth);
  const { kind, schema } = found;
  const id = uid('field');
  const about = [schema.description, limits(schema)].filter(Boolean).join(' · ');
  const hint = about && h('p', { class: 'hint', id: `${id}-hint` }, about);
  const described = about ? `${id}-hint` : null;
  const words = [schema.title && schema.title !== name ? `${schema.title} ` : '', h('code', {}, name)];
  const mark = required ? h('span', { class: 'needed' }, ' required') : null;
  const options = { id, required, described, root, depth, label: name };
  const made = MAKERS[kind](found, options);
  const start = schema.default ?? (kind === 'enum' && required && schema.enum.length === 1 ? schema.enum[0] : undefined);
  if (start !== undefined && start !== null) made.set(start);
  const grouped = kind === 'list' || kind === 'object' || kind === 'choice';
  const element = grouped
    ? h('fieldset', { class: 'group', 'aria-describedby': described }, h('legend', {}, words, mark), hint, made.element)
    : h('div', { class: 'field' }, h('label', { for: id }, words, mark), hint, made.element);
  return { ...made, element };
}

const MAKERS = {
  text({ schema }, { id, required, described }) {
    const types = { date: 'date', email: 'email', uri: 'url', time: 'text', 'date-time': 'text', password: 'password' };
    const isLong = (schema.maxLength ?? 0) > LONG_TEXT || /markdown|text\/|csv|json/i.test(schema.contentMediaType ?? '') || (schema.default?.includes?.('\n') ?? false);
    const props = { id, 'aria-describedby': described, autocomplete: 'off', placeholder: example(schema), 'aria-required': required ? 'true' : null };
    const input = isLong || (!schema.format && !schema.pattern && schema.maxLength === undefined)
      ? growing(h('textarea', { ...props, rows: isLong ? 5 : 1 }))
      : h('input', { ...props, type: types[schema.format] ?? 'text' });
    return simple(input, required, (given) => given);
  },
  number: numeric(false),
  integer: numeric(true),
  boolean({ nullable }, { id, required, described }) {
    const select = h('select', { id, 'aria-describedby': described, 'aria-required': required ? 'true' : null },
      h('option', { value: '' }, required && !nullable ? 'Choose…' : 'Not given'), h('option', { value: 'true' }, 'Yes'), h('option', { value: 'false' }, 'No'));
    return simple(select, required, (given) => given === 'true', String);
  },
  enum({ schema }, { id, required, described }) {
    const select = h('select', { id, 'aria-describedby': described, 'aria-required': required ? 'true' : null },
      h('option', { value: '' }, required ? 'Choose…' : 'Not given'),
      schema.enum.map((value, at) => h('option', { value: String(at) }, typeof value === 'string' ? value : JSON.stringify(value))));
    return simple(select, required, (given) => schema.enum[Number(given)],
      (value) => String(schema.enum.findIndex((one) => JSON.stringify(one) === JSON.stringify(value))));
  },
  json({ schema }, { id, required, described }) {
    const made = jsonEditor(id, { required, rows: 2 });
    attribute(made.area, 'aria-describedby', described);
    attribute(made.area, 'placeholder', schema.type === 'array' ? '[]' : schema.type === 'object' ? '{}' : 'JSON');
    return made;
  },
  object({ schema }, { root, required, depth }) {
    const inner = objectFields(schema, root, depth + 1);
    const read = (faults) => {
      // Faults inside an object that was left out altogether are none.
      const found = [];
      const value = inner.read(found);
      if (value === NOTHING && !required && found.every((fault) => fault.message === MISSING)) {
        for (const fault of found) fault.clear();
        return NOTHING;
      }
      faults.push(...found);
      return value === NOTHING ? {} : value;
    };
    return { ...inner, read };
  },
  list({ schema }, { root, depth, label }) {
    const items = h('div', { class: 'items' });
    const parts = new Map();
    const add = (value) => {
      const part = field(label, schema.items, root, true, depth + 1);
      const line = h('div', { class: 'item' }, part.element, button('Remove', () => {
        const next = line.nextElementSibling ?? line.previousElementSibling;
        parts.delete(line);
        line.remove();
        (next?.querySelector('input, textarea, select') ?? more).focus();
      }, { class: 'button small', 'aria-label': `Remove this entry of ${label}` }));
      parts.set(line, part);
      items.append(line);
      if (value !== undefined) part.set(value);
      return line;
    };
    const more = button('Add', () => add().querySelector('input, textarea, select, button')?.focus(), { class: 'button small', 'aria-label': `Add to ${label}` });
    return {
      element: h('div', {}, items, more),
      set(value) {
        if (!Array.isArray(value)) return;
        parts.clear();
        clear(items);
        value.forEach(add);
      },
      read(faults) {
        const values = [...parts.values()].map((part) => part.read(faults)).filter((value) => value !== NOTHING);
        return parts.size ? values : NOTHING;
      },
    };
  },
  choice({ options }, { id, root, required, described, depth, label }) {
    const select = h('select', { id, 'aria-label': `Kind of ${label}`, 'aria-describedby': described },
      h('option', { value: '' }, required ? 'Choose…' : 'Not given'),
      options.map((one, at) => h('option', { value: String(at) }, one.title ?? variantName(one, root))));
    const fault = faultOf(select);
    const place = h('div', {});
    let part = null;
    const show = () => {
      part = select.value === '' ? null : field(label, options[Number(select.value)], root, true, depth + 1);
      clear(place).append(...(part ? [part.element] : []));
    };
    select.addEventListener('change', show);
    return {
      element: h('div', {}, select, fault.element, place),
      set(value) {
        // The first variant that could hold it; the server has the last word.
        const fits = (one) => fieldOf(one, root).kind === kindOfValue(value);
        select.value = String(Math.max(options.findIndex(fits), 0));
        show();
        part.set(value);
      },
      read(faults) {
        fault.say('');
        if (part) return part.read(faults);
        return required ? fault.report(faults, MISSING) : NOTHING;
      },
    };
  },
};

function numeric(isWhole) {
  return ({ schema }, { id, required, described }) => {
    const input = h('input', { id, type: 'text', inputmode: isWhole ? 'numeric' : 'decimal', autocomplete: 'off', 'aria-describedby': described, 'aria-required': required ? 'true' : null, placeholder: example(schema) });
    return simple(input, required, (given) => {
      const value = Number(given);
      if (!Number.isFinite(value)) throw new TypeError('must be a number');
      if (isWhole && !Number.isInteger(value)) throw new TypeError('must be a whole number');
      // Beyond this a number would change on its way.
      if (isWhole && !Number.isSafeInteger(value)) throw new TypeError('is too large for the form; use JSON');
      return value;
    }, String);
  };
}

/** A field of one input. `parse` raises a TypeError with what is wrong. */
function simple(input, required, parse, write = (value) => String(value)) {
  const fault = faultOf(input);
  return {
    element: h('div', {}, input, fault.element),
    set(value) {
      input.value = write(value);
      input.dispatchEvent(new Event('input'));
    },
    read(faults) {
      fault.say('');
      const given = input.type === 'text' ? input.value.trim() : input.value;
      if (given === '') return required ? fault.report(faults, MISSING) : NOTHING;
      try {
        return parse(input.type === 'text' ? given : input.value);
      } catch (error) {
        return fault.report(faults, error.message);
      }
    },
  };
}

/** A text area that is as high as its text, within limits. */
function growing(area) {
  area.classList.add('growing');
  area.addEventListener('input', () => { area.rows = Math.min(Math.max(area.value.split('\n').length, area.dataset.rows ?? 1), 14); });
  area.dataset.rows = area.rows;
  return area;
}

const example = (schema) => {
  const found = Array.isArray(schema.examples) ? schema.examples[0] : undefined;
  return found === undefined || typeof found === 'object' ? null : `For example ${found}`;
};

function variantName(schema, root) {
  const { kind } = fieldOf(schema, root);
  const constant = Object.values(schema.properties ?? {}).find((one) => 'const' in one || one.enum?.length === 1);
  return constant ? String(constant.const ?? constant.enum[0]) : { text: 'text', list: 'list', json: 'JSON', boolean: 'yes or no', integer: 'whole number' }[kind] ?? kind;
}

const kindOfValue = (value) => {
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
};
