"""Which upstream tools who may use: allow and deny patterns on the canonical id `mcp:server:tool`.

    {"deny": ["mcp:*:delete_*"],
     "owners": {"ana": {"allow": ["mcp:github:*"]}, "*": {"deny": ["mcp:github:*"]}},
     "projects": {"sales": {"deny": ["mcp:files:write_?ile"]}}}

There are up to three gates: the one for everyone, the owner's and the project's. A tool is allowed when every
gate lets it through, so a narrower gate can take away but never give. A gate lets an id through that fits none
of its `deny` patterns and, if it has `allow`, fits one of those; `"allow": []` lets nothing through. `"*"`
among owners stands for every owner that is not named, among projects for every project that is not named and
for calls without one. Without a policy everything is allowed.

In a pattern `*` is any run of characters (also none, also with colons), `?` any single one, `[ab]` one of those
and `[!ab]` none of those. Case matters: tool names that differ by case only are two tools.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.contract.envelope import LEGAL_PROJECT, is_project
from shared.errors import SettingsError

SETTING: Final = "TOOLBOX_UPSTREAM_POLICY"
#: Every owner or project that has no gate of its own.
OTHERS: Final = "*"
_GATE_KEYS: Final = ("allow", "deny")


@dataclass(frozen=True, slots=True)
class Gate:
    """`allow`: None lets everything through that is not denied."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def passes(self, canonical_id: str) -> bool:
        if _fits(canonical_id, self.deny):
            return False
        return self.allow is None or _fits(canonical_id, self.allow)


_OPEN: Final = Gate()


@dataclass(frozen=True, slots=True)
class Policy:
    everyone: Gate = _OPEN
    owners: Mapping[str, Gate] = field(default_factory=dict)
    projects: Mapping[str, Gate] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Policy:
        """The policy of the setting's JSON; of an empty text the one that allows everything.

        Raises `SettingsError` with every fault: a policy that is read in part would allow what it should not.
        """
        if not text.strip():
            return cls()
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            raise SettingsError(f"{SETTING} is not JSON.") from None
        faults: list[str] = []
        if not isinstance(raw, dict):
            raise SettingsError(f"{SETTING} must be a JSON object with allow, deny, owners or projects.")
        unknown = raw.keys() - {*_GATE_KEYS, "owners", "projects"}
        faults += [f"unknown key '{key}'; legal are allow, deny, owners and projects" for key in unknown]
        everyone = _gate({key: raw[key] for key in _GATE_KEYS if key in raw}, "", faults)
        owners = _gates(raw.get("owners", {}), "owners", faults)
        projects = _gates(raw.get("projects", {}), "projects", faults)
        faults += [
            f"projects: a project's name must be {LEGAL_PROJECT}"
            for name in projects
            if name != OTHERS and not is_project(name)
        ]
        if faults:
            raise SettingsError(f"{SETTING}: {'; '.join(sorted(faults))}.")
        return cls(everyone, owners, projects)

    def allows(self, owner: str, project: str | None, canonical_id: str) -> bool:
        """Whether this owner, with this project's servers (None: the global ones), may use the tool."""
        return all(
            gate.passes(canonical_id)
            for gate in (self.everyone, _of(self.owners, owner), _of(self.projects, project))
        )

    def denied_to_all(self, canonical_id: str) -> bool:
        """Whether nobody can use the tool, whoever they are: such a tool is not registered at all."""
        return not (
            self.everyone.passes(canonical_id)
            and _anyone_passes(self.owners, canonical_id)
            and _anyone_passes(self.projects, canonical_id)
        )


def _of(gates: Mapping[str, Gate], name: str | None) -> Gate:
    # Somebody who calls himself `*` is an owner without a gate of his own, too.
    return gates.get(OTHERS if name is None else name, gates.get(OTHERS, _OPEN))


def _anyone_passes(gates: Mapping[str, Gate], canonical_id: str) -> bool:
    return any(gate.passes(canonical_id) for gate in (_of(gates, None), *gates.values()))


def _fits(canonical_id: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(canonical_id, pattern) for pattern in patterns)


def _gates(raw: Any, place: str, faults: list[str]) -> dict[str, Gate]:
    if not isinstance(raw, dict):
        faults.append(f"{place} must be an object of name -> allow and deny")
        return {}
    return {name: _gate(value, f"{place}.{name}", faults) for name, value in raw.items()}


def _gate(raw: Any, place: str, faults: list[str]) -> Gate:
    if not isinstance(raw, dict):
        faults.append(f"{place} must be an object with allow or deny")
        return _OPEN
    unknown = raw.keys() - set(_GATE_KEYS)
    faults += [f"{place}: unknown key '{key}'; legal are allow and deny" for key in unknown]
    allow = _patterns(raw["allow"], _path(place, "allow"), faults) if "allow" in raw else None
    return Gate(allow, _patterns(raw.get("deny", []), _path(place, "deny"), faults))


def _path(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _patterns(raw: Any, place: str, faults: list[str]) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(item, str) for item in raw):
        faults.append(f"{place} must be a list of patterns")
        return ()
    # One that can fit no id is a slip, and a `deny` that denies nothing would go unnoticed.
    if not all(item.startswith(("mcp:", "*", "?", "[")) for item in raw):
        faults.append(f"{place}: a pattern must begin with 'mcp:' or '*', like mcp:github:* or mcp:*:delete_*")
    return tuple(raw)
