"""Configuration of upstream servers: text -> entries -> scopes -> `ServerConfig`, with every fault listed.

text.py            JSON, JSON5 and YAML, read without loss or refused
parts.py           what else can be read when one entry is broken; scan.py: the outline of a JSON text
entries.py         the forms (`mcpServers`, list, one server, YAML `tools`) -> one kind of entry
fields.py          the keys of an entry, their other spellings, and which transport it means
command.py         command lines and argument lists, split without loss
guard.py           which programs may be started, and what they may run
programs.py        the machine's own programs, which packages may be mistaken for
flags.py           the flags they may be given; mounts.py: what docker may mount
environment.py     which variables an entry may set
urls.py            URLs and headers
substitution.py    `${VAR}`;  env_file.py: the files of variables
model.py           `ServerConfig`, the one model behind both forms
building.py        an entry -> `ServerConfig`, or its faults
scopes.py          global and project entries, overlaid by key
loading.py         `load`, `effective`: what the rest of shared/upstream calls

The package imports pydantic, json5 and yaml: `shared.upstream` imports it inside functions, at the first
upstream call, and nothing of it at load of the app.
"""
