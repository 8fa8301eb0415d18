"""`tools.lock.json`: what every tool, resource and prompt of the app declares, so that loading it imports none.

Two lines, each a JSON object. The first holds what a start needs:

    {"version": 1,
     "check": "content" | "size",        how staleness is looked for: see `sources`
     "sources": "sha256:…",              over the files that the rest was made from
     "assumes": {"maxTimeoutMs": 1800000, "settings": {name: value or null}},
     "faults": [{"folder", "reason"}],   what is left out; told at each start
     "warnings": [{"folder", "reason"}],
     "tools": [{"kind", "home", "name", "function", "fields", "asJob", "entry"?}],
     "resources": [{"kind", "home", "name", "function", "fields"}],
     "prompts": [{"kind", "home", "name", "function", "fields", "arguments": [[name, description, required]]}]}

The second line holds what only calls need: `{tool: the fields of its ToolSpec}`. `fields` are the keyword
arguments of the trigger's decorator, with schemas as the texts that go to the host.

`python3 dev.py package` writes the file into the package, and `python3 dev.py lock --tools` into the checkout.
Without a file, or with one that does not fit, the app reads the declarations themselves when it starts.

`reading` and `sources` are all that a start with a lock file needs; they import the standard library only.
"""
