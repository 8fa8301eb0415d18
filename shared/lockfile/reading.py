"""Reads `tools.lock.json` when the app starts, and says whether it may be used.

A file that does not fit what is here is not used, and the log says why; the app is then read from its sources.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from shared.lockfile.sources import Check, digest

_LOG = logging.getLogger(__name__)

LOCK_FILE: Final = "tools.lock.json"
VERSION: Final = 1
_AGAIN: Final = "make it again with `python3 dev.py lock --tools`, or the package with `python3 dev.py package`"


class Kind(StrEnum):
    """Where something that is registered comes from, and so how its code is loaded."""

    BUILT_IN = "built-in"
    DECORATED = "decorated"
    CONTRACT = "contract"
    UPSTREAM = "upstream"


class Registration(NamedTuple):
    """What a trigger is declared from."""

    function_name: str
    #: Of the tool, resource or prompt.
    name: str
    #: Keyword arguments of `FunctionApp.mcp_tool_trigger`, `…_resource_trigger` or `…_prompt_trigger`.
    fields: dict[str, Any]


class ToolsLock(NamedTuple):
    """A lock file that may be used."""

    body: dict[str, Any]
    #: The second line of the file, which a start leaves as it is.
    rest: bytes

    def specs(self) -> dict[str, dict[str, Any]]:
        """Name of a tool -> the form of its spec, see `forms`."""
        specs: dict[str, dict[str, Any]] = json.loads(self.rest)
        return specs

    def tools(self, denied: Callable[[str], bool] | None = None) -> list[Registration]:
        """`denied`: whether nobody may use an upstream tool or prompt, by its canonical id."""
        found = []
        for one in _open(self.body["tools"], denied):
            fields = one["fields"]
            if "output_schema" in fields:
                fields.setdefault("result_schema", fields["output_schema"])  # kept once where they are the same
            found.append(_registration(one, fields))
        return found

    def resources(self) -> list[Registration]:
        return [_registration(one, one["fields"]) for one in self.body["resources"]]

    def prompts(self, denied: Callable[[str], bool] | None = None) -> list[Registration]:
        from azure.functions import PromptArgument

        found = []
        for one in _open(self.body["prompts"], denied):
            arguments = [PromptArgument(*argument) for argument in one["arguments"]]
            found.append(_registration(one, {**one["fields"], "prompt_arguments": arguments}))
        return found

    @property
    def run_as_jobs(self) -> list[str]:
        """Names of the tools that may run as jobs."""
        return [one["name"] for one in self.body["tools"] if one["asJob"]]

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
        with open(os.path.join(root, LOCK_FILE), "rb") as file:  # noqa: PTH118, PTH123 - see `sources`
            head, rest = file.readline(), file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _LOG.warning("%s is not used: it cannot be read (%s)", LOCK_FILE, type(error).__name__)
        return None
    try:
        body = json.loads(head)
        reason = _misfit(body, root, tools, max_timeout_ms, environ)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        reason = "it is not of the form that is written there"
    if reason is None:
        return ToolsLock(body, rest)
    _LOG.warning("%s is not used, which makes the start slow: %s; %s", LOCK_FILE, reason, _AGAIN)
    return None


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
    if body["sources"] != digest(root, tools, Check(body["check"])):
        return "files of the app were added, removed or changed after it was made"
    return None


def _registration(one: Mapping[str, Any], fields: dict[str, Any]) -> Registration:
    return Registration(one["function"], one["name"], fields)


def _open(ones: Iterable[dict[str, Any]], denied: Callable[[str], bool] | None) -> Iterable[dict[str, Any]]:
    if denied is None:
        return ones
    return [one for one in ones if one["kind"] != Kind.UPSTREAM or not denied(one["canonical"])]
