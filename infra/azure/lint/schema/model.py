"""How resource types are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infra.azure.lint.types import STR, Arr, Obj, Prop, Str, Type, Unknown

TAGS = Obj(rest=STR)


def one_of(*values: str) -> Str:
    return Str(frozenset(values))


def need(what: Type) -> Prop:
    return Prop(what, required=True)


def read(what: Type = STR) -> Prop:
    return Prop(what, read_only=True)


def obj(**props: Type | Prop) -> Obj:
    """An object with these properties and no others."""
    return Obj({name: prop if isinstance(prop, Prop) else Prop(prop) for name, prop in props.items()})


def array(item: Type) -> Arr:
    return Arr(item)


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One resource type at one API version."""

    name: str
    version: str
    #: What the resource has beside `parent`, `scope` and `dependsOn`.
    body: Obj
    #: Where it is deployed to.
    target: str = "resourceGroup"
    #: Whether it stands on another resource, which `scope` names.
    extension: bool = False
    #: What it is instead of `body`, by its name: some types are several things.
    variants: Mapping[str, Obj] = field(default_factory=dict)

    @property
    def parent(self) -> str | None:
        """The type that `parent` must name; None for a type that stands alone."""
        head, _, last = self.name.rpartition("/")
        return head if "/" in head and last else None

    def readable(self) -> Obj:
        """What expressions read of it."""
        shown = dict(self.body.props)
        for name in ("id", "type", "apiVersion"):
            shown[name] = Prop(STR, read_only=True)
        return Obj(shown, Unknown() if self.variants else None)
