"""A second opinion on the syntax: the grammar that editors use. Our own parser could share a fault with us."""

from __future__ import annotations

import pytest
import tree_sitter
import tree_sitter_bicep

from tests.unit.infra.support import AZURE, BICEP


@pytest.mark.parametrize("name", BICEP)
def test_the_file_is_bicep_for_others_too(name: str) -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))
    tree = parser.parse((AZURE / name).read_bytes())
    assert not tree.root_node.has_error
    assert parser.parse((AZURE / name).read_bytes().replace(b"{", b"", 1)).root_node.has_error
