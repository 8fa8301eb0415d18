// Where in the page one is: `#/tools/csv_profile`, `#/invocations?status=failed`.

/** The place that the fragment names: `{view, id, query}`. */
export function place(hash = location.hash) {
  const [way, query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [view, ...rest] = way.split('/');
  return { view: view || 'invocations', id: decoded(rest.join('/')), query: new URLSearchParams(query) };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The fragment of a place. */
export function hashOf(view, id = '', query = {}) {
  const params = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ''}${params.size ? `?${params}` : ''}`;
}

/** Changes the query of the place one is at, without a step in the history and without leaving the view. */
export function requery(query) {
  const { view, id } = place();
  history.replaceState(history.state, '', hashOf(view, id, query));
}
