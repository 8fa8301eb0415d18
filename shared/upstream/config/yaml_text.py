"""YAML without its traps: no objects, no duplicate keys, no bombs of aliases."""

from __future__ import annotations

from typing import Final

import yaml

from shared.upstream.config.faults import shown
from shared.upstream.config.parts import (
    GAP,
    REPEATED,
    TOOLS,
    BrokenEntry,
    Document,
    Gap,
    sections_of,
    unreadable,
)

#: Values that a text may stand for once its aliases are followed.
MAX_VALUES: Final = 20_000
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = _TAG + "merge"
_SCALARS: Final = frozenset(_TAG + kind for kind in ("str", "int", "float", "bool", "null"))


class _Loader(yaml.SafeLoader):
    """The safe loader without dates: what looks like one is text, as it is written."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the shape that PyYAML asks for
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _GapNode(yaml.ScalarNode):
    """Where a broken entry of a list was. No text makes such a node, whatever tags it has."""


def _gap(loader: yaml.SafeLoader, node: yaml.Node) -> Gap:
    return GAP


_GAP_TAG: Final = "!gap"
_Loader.add_constructor(_GAP_TAG, _gap)


def read_yaml(text: str) -> Document:
    """The one document in the text, its value made of JSON's kinds. Raises `ValueError`, safe to show."""
    try:
        # A subclass of the safe loader: it makes no objects.
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return Document(None)
            broken = _checked(node)
            return Document(loader.construct_document(node), tuple(broken))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1} column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{at}this is not YAML") from None
    except yaml.YAMLError:
        raise ValueError("this is not YAML") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _checked(root: yaml.Node) -> list[BrokenEntry]:
    """The broken entries, taken out of the tree. Raises `ValueError` when what is wrong stands around them."""
    try:
        _check(root, {}, set())
    except ValueError:
        broken = _taken_out(root)
        if not broken:
            raise
        _check(root, {}, set())
        return broken
    return []


def _taken_out(root: yaml.Node) -> list[BrokenEntry]:
    if isinstance(root, yaml.SequenceNode):
        root.value, broken = _of_list(root, "")
        return broken
    broken = []
    if not isinstance(root, yaml.MappingNode):
        return broken
    sections = sections_of([_as_text(key) for key, _ in root.value])
    for index, (key, value) in enumerate(root.value):
        section = _as_text(key)
        if section is None or section not in sections:
            continue
        # A new node: another place of the text may have this one as an alias.
        if isinstance(value, yaml.SequenceNode):
            entries, found = _of_list(value, section)
            root.value[index] = (key, yaml.SequenceNode(value.tag, entries, value.start_mark, value.end_mark))
        elif isinstance(value, yaml.MappingNode) and section != TOOLS:
            pairs, found = _of_mapping(value, section)
            root.value[index] = (key, yaml.MappingNode(value.tag, pairs, value.start_mark, value.end_mark))
        else:
            continue
        broken += found
    return broken


def _of_list(node: yaml.SequenceNode, section: str) -> tuple[list[yaml.Node], list[BrokenEntry]]:
    entries: list[yaml.Node] = []
    broken: list[BrokenEntry] = []
    for index, entry in enumerate(node.value):
        try:
            _check(entry, {}, set())
        except ValueError as error:
            name, kind = _text(entry, "name"), _text(entry, "type")
            broken.append(unreadable(name, f"{section}[{index}]", error, section, kind))
            entries.append(_GapNode(_GAP_TAG, "", entry.start_mark, entry.end_mark))
        else:
            entries.append(entry)
    return entries, broken


def _of_mapping(
    node: yaml.MappingNode, section: str
) -> tuple[list[tuple[yaml.Node, yaml.Node]], list[BrokenEntry]]:
    kept: list[tuple[yaml.Node, yaml.Node]] = []
    broken: list[BrokenEntry] = []
    names: set[str] = set()
    for key, entry in node.value:
        name = _as_text(key)
        place = section if name is None else f"{section}.{shown(name)}"
        try:
            _check_key(key, set())
            _check(entry, {}, set())
        except ValueError as error:
            broken.append(unreadable(name, place, error, section, _text(entry, "type")))
            continue
        if name is not None and name in names:
            broken.append(BrokenEntry(name, place, REPEATED, section))
            continue
        kept.append((key, entry))
        if name is not None:
            names.add(name)
    return kept, broken


def _as_text(node: yaml.Node) -> str | None:
    is_text = isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "str"
    return str(node.value) if is_text else None


def _text(entry: yaml.Node, key: str) -> str | None:
    """The text under a key of a broken entry, if it stands there once."""
    pairs = entry.value if isinstance(entry, yaml.MappingNode) else []
    found = [_as_text(value) for name, value in pairs if _as_text(name) == key]
    return found[0] if len(found) == 1 else None


def _check(node: yaml.Node, sizes: dict[int, int], above: set[int]) -> int:
    """How many values the node stands for with its aliases followed. Nothing is built before that is known.

    Merge keys copy what they name, so they count like any other alias.
    """
    if id(node) in above:
        raise ValueError(f"{_at(node)}: an alias that holds itself")
    if (known := sizes.get(id(node))) is not None:
        return known
    above.add(id(node))
    size = 1
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            _check_key(key, seen)
            size += 1 + _check(value, sizes, above)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_check(item, sizes, above) for item in node.value)
    elif node.tag not in _SCALARS and not isinstance(node, _GapNode):
        raise ValueError(f"{_at(node)}: a value must be text, a number, true, false or null")
    if size > MAX_VALUES:
        raise ValueError(f"it holds more than {MAX_VALUES} values once its aliases are followed")
    above.discard(id(node))
    sizes[id(node)] = size
    return size


def _check_key(key: yaml.Node, seen: set[str]) -> None:
    if not isinstance(key, yaml.ScalarNode) or key.tag not in (_TAG + "str", _MERGE):
        raise ValueError(f"{_at(key)}: a key must be text; write it in quotes")
    if key.tag != _MERGE and key.value in seen:
        raise ValueError(f"{_at(key)}: a key stands twice in one mapping")
    seen.add(key.value)


def _at(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1} column {node.start_mark.column + 1}"
