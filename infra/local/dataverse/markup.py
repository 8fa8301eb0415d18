"""XML from clients, without document types: those are where expansion bombs and outside entities live."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

type Element = ElementTree.Element


class XmlError(ValueError):
    """Not well-formed, or with a document type."""


def parse_xml(text: str | bytes) -> Element:
    """The root element. Raises XmlError."""
    probe = text.encode() if isinstance(text, str) else text
    if b"<!DOCTYPE" in probe.upper():
        raise XmlError("document types are not accepted")
    try:
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise XmlError(str(error)) from None
