"""`tools.lock.json`: what every tool, resource and prompt of the app declares, so that loading it imports none.

The first line is a JSON object with what a start needs:

    {"version": 2,
     "check": "content" | "names",       how staleness is looked for: see `reading`
     "sources": "sha256:…" | [name],     of the files that the rest was made from
     "assumes": {"maxTimeoutMs": 1800000, "settings": {name: value or null}},
     "faults": [{"folder", "reason"}],   what is left out; told at each start
     "warnings": [{"folder", "reason"}],
     "tools": [{"kind", "home", "name", "function", "asJob", "entry"?, "canonical"?}],
     "resources": [{"kind", "home", "name", "function"}],
     "prompts": [{"kind", "home", "name", "function", "canonical"?}]}

Then comes a line for each of the tools, resources and prompts, in that order: its trigger's binding, as
azure-functions writes it for the host. A start hands these on as they are, which spares it most of what a tool
would cost it. The last line holds what only calls need: `{tool: the fields of its ToolSpec}`.

`python3 dev.py package` writes the file into the package, and `python3 dev.py lock --tools` into the checkout.
Without a file, or with one that does not fit, the app reads the declarations themselves when it starts.

`reading` is all that a start with a packaged lock file needs; it imports the standard library only.
"""
