// Searches a Dataverse table by the name of its records and gives back what is picked.
'use strict';

const PAGE = 50;
// More than that is no choice any more: a longer part of the name is.
const MOST = 1000;
const element = (id) => document.getElementById(id);
const parts = Object.fromEntries(
  ['title', 'find', 'search', 'status', 'fault', 'table', 'caption', 'rows', 'more', 'count', 'cancel', 'use']
    .map((id) => [id, element(id)]),
);

let input = null;
let several = false;
let table = null; // {set, key, name, label}
let searches = 0;
let last = ''; // what the shown rows were searched by
const picked = new Map(); // id -> name, in the order of picking

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

function fault(error) {
  parts.fault.hidden = !error;
  parts.fault.textContent = error ? error.message : '';
}

function say(text) {
  parts.status.textContent = text;
}

async function describe(entity) {
  const columns = ['PrimaryIdAttribute', 'PrimaryNameAttribute', 'DisplayName'];
  const about = await dataverseAPI.getEntityMetadata(entity, true, columns);
  const label = about.DisplayName?.UserLocalizedLabel?.Label ?? about.DisplayName?.LocalizedLabels?.[0]?.Label;
  return {
    set: await dataverseAPI.getEntitySetName(entity),
    key: about.PrimaryIdAttribute,
    name: about.PrimaryNameAttribute,
    label: label || entity,
  };
}

/** The first records, by name. There is no paging without headers, so more of them are asked for anew. */
async function records(text, count) {
  const { set, key, name } = table;
  const query = [`$select=${key},${name}`, `$orderby=${name},${key}`, `$top=${count}`];
  if (text) query.push(`$filter=${encodeURIComponent(`contains(${name},${quoted(text)})`)}`);
  const { value } = await dataverseAPI.queryData(`${set}?${query.join('&')}`);
  return value.map((row) => ({ id: String(row[key]), name: row[name] ?? '' }));
}

/** `more`: so many rows are shown already, and the next ones are wanted. */
async function find(more = 0) {
  const turn = ++searches;
  const text = more ? last : parts.search.value.trim();
  const count = Math.min(more + PAGE, MOST);
  fault(null);
  say('Searching…');
  parts.more.hidden = true;
  let found;
  try {
    table ??= await describe(input.entityName); // tried again with every search until it has worked
    entitle();
    found = await records(text, count + 1); // one row more tells whether there are others
  } catch (error) {
    if (turn === searches) {
      say('');
      fault(error);
    }
    return;
  }
  if (turn !== searches) return; // a later search has begun
  const rest = found.length > count;
  found = found.slice(0, count);
  last = text;
  parts.rows.replaceChildren(...found.map(row));
  parts.table.hidden = !found.length;
  parts.more.hidden = !rest || count === MOST;
  say(counted(found.length, rest));
  if (more) parts.rows.rows[more]?.querySelector('input').focus();
}

function counted(shown, rest) {
  if (!shown) return 'No record has such a name.';
  const records = `${shown} record${shown === 1 ? '' : 's'}`;
  if (!rest) return `${records}.`;
  return shown < MOST ? `${records}, and there are more.` : `${records}, and there are more: search for more of the name.`;
}

function row({ id, name }) {
  const made = document.createElement('tr');
  const choice = document.createElement('input');
  choice.type = several ? 'checkbox' : 'radio';
  choice.name = 'record';
  choice.id = `record-${id}`;
  choice.value = id;
  choice.checked = picked.has(id);
  choice.dataset.name = name;
  const label = document.createElement('label');
  label.htmlFor = choice.id;
  label.textContent = name || '(no name)';
  for (const content of [choice, label, id]) made.insertCell().append(content);
  made.addEventListener('dblclick', () => {
    if (several) return;
    choice.checked = true;
    pick(choice);
    use();
  });
  return made;
}

function pick(choice) {
  if (!several) picked.clear();
  if (choice.checked) picked.set(choice.value, choice.dataset.name);
  else picked.delete(choice.value);
  parts.use.disabled = !picked.size;
  parts.count.textContent = several && picked.size ? `${picked.size} picked` : '';
}

function entitle() {
  parts.title.textContent = several ? `${table.label}: pick one or several` : `${table.label}: pick one`;
  parts.caption.textContent = `${table.label} records`;
}

async function use() {
  if (!picked.size) return;
  const ids = [...picked.keys()];
  const names = [...picked.values()];
  parts.use.disabled = true;
  fault(null);
  try {
    await toolboxAPI.invocation.returnData(
      several ? { selectedIds: ids, selectedNames: names } : { selectedId: ids[0], selectedName: names[0] },
    );
  } catch (error) {
    fault(error);
    parts.use.disabled = false;
  }
}

async function start() {
  input = await toolboxAPI.invocation.getLaunchContext();
  several = input.allowMultiSelect === true;
  parts.search.value = input.search ?? '';
  parts.use.textContent = several ? 'Use them' : 'Use it';
  parts.search.focus();
  await find();
}

// In a frame without allow-forms nothing is ever submitted, and no submit event comes: keys and clicks do it.
parts.search.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') {
    event.preventDefault();
    if (input) find();
  }
});
parts.find.querySelector('button').addEventListener('click', (event) => {
  event.preventDefault();
  if (input) find();
});
parts.rows.addEventListener('change', (event) => pick(event.target));
parts.rows.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') use();
});
parts.more.addEventListener('click', () => find(parts.rows.rows.length));
parts.use.addEventListener('click', use);
parts.cancel.addEventListener('click', () => toolboxAPI.invocation.returnData(null));
start();
