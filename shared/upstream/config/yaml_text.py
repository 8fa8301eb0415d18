"""YAML without its traps: no objects, no duplicate keys, no bombs of aliases."""

from __future__ import annotations

from typing import Any, Final

import yaml

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


def read_yaml(text: str) -> Any:
    """The value of the one document in the text, made of JSON's kinds. Raises `ValueError`, safe to show."""
    try:
        # A subclass of the safe loader: it makes no objects.
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check(node, {}, set())
            return loader.construct_document(node)
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
    elif node.tag not in _SCALARS:
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
