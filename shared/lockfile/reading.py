"""Reads `tools.lock.json` when the app starts, and says whether it may be used.

A file that does not fit what is here is not used, and the log says why; the app is then read from its sources.
How that is looked for is up to who made the file:

    content   over all files that decide what tools declare, see `sources`: for a checkout, where files change
    names     over what stands in tools/: for a package, which is made as a whole and replaced as a whole. Its
              files are not looked at, as Python does not look at the sources beside its bytecode.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

_LOG = logging.getLogger(__name__)

LOCK_FILE: Final = "tools.lock.json"
VERSION: Final = 2
_AGAIN: Final = "make it again with `python3 dev.py lock --tools`, or the package with `python3 dev.py package`"

_KINDS: Final = ("tools", "resources", "prompts")
_UPSTREAM_LOCK: Final = "upstream.lock.json"
_OTHER_FORM: Final = "it is not of the form that is written there"

type Check = Literal["content", "names"]


class Registration(NamedTuple):
    """What a trigger is declared from: its binding, or what the binding is made of."""

    function_name: str
    #: Of the tool, resource or prompt.
    name: str
    #: The binding, as azure-functions writes it for the host; "": it is made of the fields.
    binding: str
    #: Keyword arguments of `FunctionApp.mcp_tool_trigger`, `…_resource_trigger` or `…_prompt_trigger`.
    fields: Mapping[str, Any] = {}


class ToolsLock:
    """A lock file that may be used."""

    def __init__(self, body: dict[str, Any], bindings: list[bytes], rest: bytes) -> None:
        """`bindings`: a line for each of the body's tools, resources and prompts; `rest`: the last line."""
        self.body = body
        self._bindings = bindings
        # A start leaves it as it is.
        self._rest = rest

    def specs(self) -> dict[str, dict[str, Any]]:
        """Name of a tool -> the form of its spec, see `forms`."""
        specs: dict[str, dict[str, Any]] = json.loads(self._rest)
        return specs

    def registrations(
        self, denied: Callable[[str], bool] | None = None
    ) -> tuple[list[Registration], list[Registration], list[Registration]]:
        """(tools, resources, prompts). `denied`: whether nobody may use one of a server's, by canonical id."""
        lines = iter(self._bindings)
        body = self.body
        return (
            _registered(body["tools"], lines, denied),
            _registered(body["resources"], lines, denied),
            _registered(body["prompts"], lines, denied),
        )

    def run_as_jobs(self, denied: Callable[[str], bool] | None = None) -> list[str]:
        """Names of the tools that are registered and may run as jobs. `denied`: see `registrations`."""
        return [
            one["name"]
            for one in self.body["tools"]
            if one["asJob"] and (denied is None or not _is_denied(one, denied))
        ]

    def tell(self) -> None:
        """What is left out goes to the log at each start, as it does without a lock file."""
        for one in self.body["warnings"]:
            _LOG.warning("tools/%s: %s", one["folder"], one["reason"])
        for one in self.body["faults"]:
            _LOG.error("tools/%s: left out: %s", one["folder"], one["reason"])


def usable(
    root: str, tools: str, max_timeout_ms: int, environ: Mapping[str, str] = os.environ
) -> ToolsLock | None:
    """The lock of the app in the folder `root`; None without one, or when it does not fit, which is logged."""
    try:
        # Without pathlib, here and below: it costs more than all that is done with it.
        with open(os.path.join(root, LOCK_FILE), "rb") as file:  # noqa: PTH118, PTH123
            head, *bindings, rest, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        _LOG.warning("%s is not used: it cannot be read (%s)", LOCK_FILE, type(error).__name__)
        return None
    except ValueError:
        head, bindings, rest = b"", [], b""
    try:
        body = json.loads(head)
        reason = _misfit(body, root, tools, max_timeout_ms, environ)
        if reason is None and len(bindings) != sum(len(body[kind]) for kind in _KINDS):
            reason = _OTHER_FORM
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        reason = _OTHER_FORM
    if reason is None:
        return ToolsLock(body, bindings, rest)
    _LOG.warning("%s is not used, which makes the start slow: %s; %s", LOCK_FILE, reason, _AGAIN)
    return None


def names_in(root: str, tools: str) -> list[str]:
    """What stands in the folder of tools, and whether other servers' tools are locked."""
    try:
        found = os.listdir(os.path.join(root, tools))  # noqa: PTH118, PTH208
    except OSError:
        found = []
    kept = [name for name in found if not name.startswith(".") and name != "__pycache__"]
    if os.path.exists(os.path.join(root, _UPSTREAM_LOCK)):  # noqa: PTH110, PTH118
        kept.append(f"../{_UPSTREAM_LOCK}")
    return sorted(kept)


def _misfit(
    body: Mapping[str, Any], root: str, tools: str, max_timeout_ms: int, environ: Mapping[str, str]
) -> str | None:
    """Why the lock does not hold here; None: it does."""
    if body["version"] != VERSION:
        return f"it has version {body['version']!r}, and this app reads {VERSION}"
    assumed = body["assumes"]
    if assumed["maxTimeoutMs"] != max_timeout_ms:
        return (
            f"it was made for a longest timeout of {assumed['maxTimeoutMs']} ms, which is {max_timeout_ms} here"
        )
    for name, value in assumed["settings"].items():
        if (environ.get(name) or None) != value:
            return f"a tool's name is made of the app setting {name}, which has another value here"
    if body["sources"] != _sources(body["check"], root, tools):
        return "files of the app were added, removed or changed after it was made"
    return None


def _sources(check: Check, root: str, tools: str) -> str | list[str]:
    if check == "names":
        return names_in(root, tools)
    from shared.lockfile.sources import digest

    return digest(root, tools)


def _registered(
    ones: Iterable[Mapping[str, Any]], bindings: Iterator[bytes], denied: Callable[[str], bool] | None
) -> list[Registration]:
    return [
        Registration(one["function"], one["name"], binding.decode("ascii"))
        # The bindings of what is left out have to be passed over, too.
        for one, binding in [(one, next(bindings)) for one in ones]
        if denied is None or not _is_denied(one, denied)
    ]


def _is_denied(one: Mapping[str, Any], denied: Callable[[str], bool]) -> bool:
    """Only what comes from another server has a canonical id."""
    return "canonical" in one and denied(one["canonical"])
