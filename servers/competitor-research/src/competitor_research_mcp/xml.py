"""Parsing of untrusted XML. A DTD is refused: sitemaps and feeds need none, and entities enable attacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

__all__ = ["XmlError", "children", "name_of", "parse_xml", "text_at"]

_DTD: Final = re.compile(rb"<!\s*(?:DOCTYPE\s+\w+\s*(?:\[|SYSTEM|PUBLIC)|ENTITY)", re.IGNORECASE)


class XmlError(ValueError):
    """Raised for data that is not XML, or is refused."""


def parse_xml(data: bytes) -> ElementTree.Element:
    """Parse a document and return its root.

    Raises:
        XmlError: the document is invalid, or has a DTD.
    """
    if b"\x00" in data[:4]:  # UTF-16, in which the search below would miss a DTD
        data = data.decode("utf-16", "replace").encode()
        data = re.sub(rb"^\s*<\?xml[^>]*\?>", b"", data)
    if _DTD.search(data):
        raise XmlError("it has a DTD, which is not permitted")
    try:
        return ElementTree.fromstring(data.strip())
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise XmlError(f"it is not valid XML: {error}") from None


def name_of(element: ElementTree.Element) -> str:
    """Return the lowercase name of an element without namespace."""
    return str(element.tag).rpartition("}")[2].lower()


def children(element: ElementTree.Element, *names: str) -> Iterator[ElementTree.Element]:
    """Yield the children with one of the names, in any namespace."""
    return (child for child in element if name_of(child) in names)


def text_at(element: ElementTree.Element, *names: str) -> str:
    """Return the text of the first non-empty child with one of the names, or ""."""
    for name in names:
        for child in children(element, name):
            if text := " ".join("".join(child.itertext()).split()):
                return text
    return ""
