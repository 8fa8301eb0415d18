"""Where the original drops or changes a value in silence, and what is said here: one table.

Made to be printed in the documentation; a test holds every row against a contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shared.contract.findings import Severity

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True, slots=True)
class Difference:
    #: The field, as a JSON path below the file.
    field: str
    value: str
    original: str
    severity: Severity
    here: str


_row = Difference

DIFFERENCES: Final = (
    _row("(file)", "no JSON, no object, BOM", "the tool is skipped", _ERROR, "says what it is"),
    _row("(file)", "a key twice", "the last one counts", _WARNING, "the last one counts"),
    _row("(any key)", "unknown", "ignored", _WARNING, "ignored; the nearest known key is named"),
    _row("agents", "no object", "the tool is skipped", _ERROR, "must be an object"),
    _row("agents.version", "absent, no version", "not read", _ERROR, "required"),
    _row("agents.invokable", "no boolean", "not exposed", _ERROR, "must be a boolean"),
    _row("agents.modes", "illegal members", "dropped", _ERROR, "must be legal"),
    _row("agents.modes", "[]", "two-way", _ERROR, "must not be empty"),
    _row("agents.modes", "a mode twice", "kept twice", _WARNING, "counts once"),
    _row("agents.defaultMode", "illegal, or not in modes", "ignored", _ERROR, "must be in modes"),
    _row("agents.defaultMode", "one-way without modes", "two-way", _ERROR, "must be in modes"),
    _row("agents.timeoutMS", "no number, 0, below 0 or 1", "ignored", _ERROR, "at least 1"),
    _row("agents.timeoutMS", "above the app's limit", "no limit", _ERROR, "the limit is named"),
    _row("agents.timeoutMS", "a fraction", "cut off", _WARNING, "cut off"),
    _row("agents.executionModes", "illegal members", "dropped", _ERROR, "must be legal"),
    _row("agents.executionModes", "[]", "as if absent", _ERROR, "must not be empty"),
    _row("agents.executionModes", "headless without an entry", "fails when called", _ERROR, "needs an entry"),
    _row("agents.executionModes", "windowed without a page", "an empty window", _ERROR, "needs ui/index.html"),
    _row("agents.defaultExecutionMode", "not in executionModes", "ignored", _ERROR, "must be one of them"),
    _row("agents.headless", "no boolean", "as if false", _ERROR, "must be a boolean"),
    _row("agents.headless", "against executionModes", "ignored", _WARNING, "executionModes count"),
    _row("agents.headlessEntry", "no text, blank", "skipped", _ERROR, "must name a .py file"),
    _row("agents.headlessEntry", "no such file, a folder", "skipped", _ERROR, "must exist"),
    _row("agents.headlessEntry", "outside the folder", "runs", _ERROR, "must be inside"),
    _row("invocation.capabilities", "unknown tag", "published", _WARNING, "published; known ones are named"),
    _row("invocation.prefill", "a bare map of properties", "describes nothing", _ERROR, "needs 'properties'"),
    _row("invocation.prefill", "a root of another type", "breaks the tool list", _ERROR, "must be object"),
    _row("invocation.prefill", "unknown type", "takes anything", _ERROR, "must be a JSON Schema type"),
    _row("invocation.prefill", "illegal keyword values", "dropped", _ERROR, "must be legal JSON Schema"),
    _row("invocation.prefill", "unknown keyword", "dropped", _WARNING, "has no effect"),
    _row("invocation.prefill", "enum: []", "ignored", _ERROR, "at least one value"),
    _row("invocation.prefill", "an enum member of another type", "kept", _WARNING, "can never be given"),
    _row("invocation.prefill", "items as a list", "dropped", _ERROR, "prefixItems does that"),
    _row("invocation.prefill", "required: \"true\"", "dropped", _ERROR, "true, false or a list"),
    _row("invocation.prefill", "required: true beside a list", "dropped", _WARNING, "the list counts"),
    _row("invocation.prefill", "a required name that is not declared", "published", _ERROR, "declare it"),
    _row("invocation.prefill", "required without properties", "dropped", _WARNING, "is checked"),
    _row("invocation.prefill", "a name required twice", "published twice", _WARNING, "counts once"),
    _row("invocation.prefill", "a property that is no object", "takes anything", _ERROR, "must be an object"),
    _row("invocation.prefill", "a property __pptb", "replaced", _ERROR, "rename it"),
    _row("invocation.prefill", "$ref out of the schema", "dropped", _ERROR, "must point into $defs"),
    _row("displayName", "no letter a-z, no digit", "the name '-'", _ERROR, "change the display name"),
    _row("displayName", "a name above 64 characters", "published", _ERROR, "shorten the display name"),
    _row("displayName", "a name that another tool has", "the last one is called", _ERROR, "both are named"),
)  # fmt: skip
