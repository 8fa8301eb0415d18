"""XML from clients, without document types: those are where expansion bombs and outside entities live."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

type Element = ElementTree.Element


class XmlError(ValueError):
    """Not well-formed, or with a document type."""


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, _name: str, _public: str | None, _system: str | None) -> None:
        # Told by the parser, before it reads what a document type declares, in whatever encoding.
        raise XmlError("document types are not accepted")


def parse_xml(text: str | bytes) -> Element:
    """The root element. Raises XmlError."""
    try:
        root: Element = ElementTree.fromstring(text, ElementTree.XMLParser(target=_Builder()))  # noqa: S314 - see _Builder
    except ElementTree.ParseError as error:
        raise XmlError(str(error)) from None
    return root
