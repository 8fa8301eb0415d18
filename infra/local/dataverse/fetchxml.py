"""FetchXML: text -> tree. Names are checked against tables when it runs (fetch.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from infra.local.dataverse.errors import ApiError, unsupported
from infra.local.dataverse.markup import XmlError, parse_xml

if TYPE_CHECKING:
    from infra.local.dataverse.markup import Element

AGGREGATES: Final = frozenset({"count", "countcolumn", "sum", "avg", "min", "max"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison; `entity` is the alias of the link it looks at, when that is not where it stands."""

    attribute: str
    operator: str
    values: tuple[str, ...]
    entity: str | None = None
    other: str | None = None  # `valueof`: another attribute of the same record


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions and filters, all or any of which must hold."""

    items: tuple[Condition | Filter, ...]
    either: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute to answer; `alias` is given or, in an aggregate, required."""

    name: str
    alias: str | None = None
    aggregate: str | None = None
    group: bool = False
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """An order: by attribute, or by alias in an aggregate."""

    attribute: str
    descending: bool
    alias: str | None = None
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The entity or a link-entity. The entity's alias is empty."""

    table: str
    alias: str = ""
    attributes: tuple[Attribute, ...] = ()
    everything: bool = False
    filters: tuple[Filter, ...] = ()
    sorts: tuple[Sort, ...] = ()
    links: tuple[Part, ...] = ()
    from_column: str = ""
    to_column: str = ""
    outer: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """A whole query."""

    entity: Part
    top: int | None = None
    count: int | None = None
    page: int = 1
    cookie: str | None = None
    distinct: bool = False
    aggregate: bool = False
    total: bool = False


@dataclass(slots=True)
class _Aliases:
    used: set[str] = field(default_factory=set)

    def take(self, given: str | None, table: str) -> str:
        alias, number = given, 1
        while alias is None or alias in self.used:
            alias, number = f"{table}{number}", number + 1
        self.used.add(alias)
        return alias


def invalid(message: str) -> ApiError:
    """400: FetchXML that says what cannot be."""
    return ApiError(400, "0x80040201", f"Invalid FetchXml: {message}")


def read_fetch(text: str) -> Fetch:
    """The tree of a FetchXML text. Raises ApiError."""
    try:
        root = parse_xml(text)
    except XmlError as error:
        raise ApiError(400, "0x80040201", f"Invalid XML. {error}") from None
    entities = root.findall("entity")
    if root.tag != "fetch" or len(entities) != 1:
        raise invalid("one fetch with one entity is wanted.")
    top, count, page = _number(root, "top"), _number(root, "count"), _number(root, "page")
    if top is not None and page is not None:
        raise invalid("The top attribute can't be specified with paging attribute page.")
    return Fetch(
        _part(entities[0], _Aliases(), ""),
        top=top,
        count=count or None,
        page=page or 1,
        cookie=root.get("paging-cookie"),
        distinct=_yes(root, "distinct"),
        aggregate=_yes(root, "aggregate"),
        total=_yes(root, "returntotalrecordcount"),
    )


def _part(node: Element, aliases: _Aliases, alias: str) -> Part:
    for child in node:
        if child.tag not in {"attribute", "all-attributes", "filter", "order", "link-entity"}:
            raise unsupported(f"the FetchXML element {child.tag}")
    return Part(
        table=_required(node, "name"),
        alias=alias,
        attributes=tuple(_attribute(child) for child in node.findall("attribute")),
        everything=node.find("all-attributes") is not None,
        filters=tuple(_filter(child) for child in node.findall("filter")),
        sorts=tuple(_sort(child) for child in node.findall("order")),
        links=tuple(_link(child, aliases) for child in node.findall("link-entity")),
    )


def _link(node: Element, aliases: _Aliases) -> Part:
    kind = node.get("link-type", "inner")
    if kind not in {"inner", "outer"}:
        raise unsupported(f"the FetchXML link type {kind}")
    table = _required(node, "name")
    part = _part(node, aliases, aliases.take(node.get("alias"), table))
    return Part(
        part.table, part.alias, part.attributes, part.everything, part.filters, part.sorts, part.links,
        _required(node, "from"), _required(node, "to"), kind == "outer",
    )  # fmt: skip


def _attribute(node: Element) -> Attribute:
    aggregate = node.get("aggregate")
    if aggregate is not None and aggregate not in AGGREGATES:
        raise unsupported(f"the FetchXML aggregate {aggregate}")
    if node.get("dategrouping") is not None:
        raise unsupported("the FetchXML dategrouping")
    return Attribute(
        _required(node, "name"), node.get("alias"), aggregate, _yes(node, "groupby"), _yes(node, "distinct")
    )


def _sort(node: Element) -> Sort:
    alias = node.get("alias")
    attribute = node.get("attribute") or (_required(node, "attribute") if alias is None else "")
    return Sort(attribute, _yes(node, "descending"), alias, node.get("entityname"))


def _filter(node: Element) -> Filter:
    items: list[Condition | Filter] = []
    for child in node:
        if child.tag == "filter":
            items.append(_filter(child))
        elif child.tag == "condition":
            items.append(_condition(child))
        else:
            raise unsupported(f"the FetchXML element {child.tag} in a filter")
    kind = node.get("type", "and")
    if kind not in {"and", "or"}:
        raise invalid(f"'{kind}' is no type of filter.")
    return Filter(tuple(items), kind == "or")


def _condition(node: Element) -> Condition:
    value = node.get("value")
    values = [(child.text or "").strip() for child in node.findall("value")]
    return Condition(
        _required(node, "attribute"),
        _required(node, "operator"),
        tuple(values if value is None else [value]),
        node.get("entityname"),
        node.get("valueof"),
    )


def _required(node: Element, name: str) -> str:
    value = node.get(name)
    if not value:
        raise invalid(f"the element {node.tag} lacks its attribute {name}.")
    return value


def _number(node: Element, name: str) -> int | None:
    text = node.get(name)
    if text is None:
        return None
    if not text.isdigit():
        raise invalid(f"'{text}' is no value for {name}.")
    return int(text)


def _yes(node: Element, name: str) -> bool:
    return node.get(name, "false").lower() in {"true", "1"}
