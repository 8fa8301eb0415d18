// What a JSON Schema says, as far as a form needs it. The server checks arguments; this only offers fields.

const DEEPEST = 5;

/** The schema with what its `$ref` and a single-entry `allOf` stand for. Only references into the schema itself are followed. */
export function resolved(schema, root) {
  let found = isObject(schema) ? schema : {};
  for (let step = 0; step < 10; step++) {
    const next = typeof found.$ref === 'string' ? at(root, found.$ref) : found.allOf?.length === 1 ? found.allOf[0] : null;
    if (!isObject(next)) return found;
    const { $ref, allOf, ...own } = found;
    found = { ...next, ...own };
  }
  return {};
}

function at(root, reference) {
  if (!reference.startsWith('#/')) return null;
  return reference.slice(2).split('/').reduce((part, name) => {
    const key = decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~');
    return isObject(part) && Object.hasOwn(part, key) ? part[key] : null;
  }, root);
}

export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/**
 * Which field a schema gets: `{kind, schema, nullable, options?}`. Kinds: text, number, integer, boolean, enum, list,
 * object, choice (one of several schemas), json (no form: too deep, too free, or not understood).
 */
export function fieldOf(given, root, depth = 0) {
  let schema = resolved(given, root);
  let nullable = false;
  if (Array.isArray(schema.type)) {
    nullable = schema.type.includes('null');
    const others = schema.type.filter((type) => type !== 'null');
    if (others.length !== 1) return { kind: 'json', schema, nullable };
    schema = { ...schema, type: others[0] };
  }
  const variants = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(variants)) {
    const { anyOf, oneOf, ...own } = schema;
    const solid = variants.map((one) => resolved(one, root)).filter((one) => one.type !== 'null');
    nullable ||= solid.length < variants.length;
    if (solid.length === 1) {
      const found = fieldOf({ ...solid[0], ...own }, root, depth);
      return { ...found, nullable: nullable || found.nullable };
    }
    // Keywords beside the variants hold for each of them, which separate fields cannot say.
    if (own.properties || depth >= DEEPEST) return { kind: 'json', schema, nullable };
    return { kind: 'choice', schema: own, nullable, options: solid };
  }
  if ('const' in schema) return { kind: 'enum', schema: { ...schema, enum: [schema.const] }, nullable };
  if (Array.isArray(schema.enum)) {
    nullable ||= schema.enum.includes(null);
    const values = schema.enum.filter((value) => value !== null);
    return { kind: 'enum', schema: { ...schema, enum: values }, nullable };
  }
  if (schema.type === 'string') return { kind: 'text', schema, nullable };
  if (schema.type === 'boolean' || schema.type === 'number' || schema.type === 'integer') return { kind: schema.type, schema, nullable };
  if (depth >= DEEPEST) return { kind: 'json', schema, nullable };
  if (schema.type === 'array' && isObject(schema.items) && !schema.prefixItems) return { kind: 'list', schema, nullable };
  if (isObject(schema.properties) && Object.keys(schema.properties).length && (schema.type === 'object' || !schema.type)) {
    return { kind: 'object', schema, nullable };
  }
  return { kind: 'json', schema, nullable };
}

/** A type in words: "list of integer", "text or number". */
export function typeWords(given, root, depth = 0) {
  const { kind, schema, options } = fieldOf(given, root, depth);
  const words = {
    text: () => (schema.format ? `text (${schema.format})` : 'text'),
    number: () => 'number',
    integer: () => 'whole number',
    boolean: () => 'yes or no',
    enum: () => `one of ${schema.enum.map((value) => JSON.stringify(value)).join(', ')}`,
    list: () => `list of ${depth > 2 ? 'values' : typeWords(schema.items, root, depth + 1)}`,
    object: () => 'object',
    choice: () => (depth > 2 ? 'several kinds' : options.map((one) => typeWords(one, root, depth + 1)).join(' or ')),
    json: () => [schema.type ?? 'any value'].flat().join(' or '),
  };
  return words[kind]();
}

/** The limits that a person should know of: "1 to 9, at most 20 letters". */
export function limits(schema) {
  const said = [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, minItems, maxItems, pattern } = schema;
  if (minimum !== undefined && maximum !== undefined) said.push(`${minimum} to ${maximum}`);
  else if (minimum !== undefined) said.push(`at least ${minimum}`);
  else if (maximum !== undefined) said.push(`at most ${maximum}`);
  if (exclusiveMinimum !== undefined) said.push(`more than ${exclusiveMinimum}`);
  if (exclusiveMaximum !== undefined) said.push(`less than ${exclusiveMaximum}`);
  if (minLength > 1) said.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) said.push(`at most ${maxLength} characters`);
  if (minItems) said.push(`at least ${minItems}`);
  if (maxItems !== undefined) said.push(`at most ${maxItems}`);
  if (pattern) said.push(`pattern ${pattern}`);
  return said.join(', ');
}

/** The arguments' schema without the envelope, which the page offers on its own. */
export function argumentsOf(schema) {
  const { __pptb, ...properties } = isObject(schema?.properties) ? schema.properties : {};
  const required = (Array.isArray(schema?.required) ? schema.required : []).filter((name) => name !== '__pptb');
  return { ...(isObject(schema) ? schema : {}), type: 'object', properties, required };
}
