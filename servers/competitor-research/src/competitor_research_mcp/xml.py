"""XML of strangers: sitemaps and feeds. Documents with a DTD are refused, for neither needs one and entities are how XML is misused. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

__all__ = ["XmlError", "children", "name_of", "parse_xml", "text_at"]

_DTD: Final = re.compile(rb"<!\s*(?:DOCTYPE\s+\w+\s*(?:\[|SYSTEM|PUBLIC)|ENTITY)", re.IGNORECASE)


class XmlError(ValueError):
    """It is no XML, or none that is read."""


def parse_xml(data: bytes) -> ElementTree.Element:
    """Return the root of a document.

    Raises:
        XmlError: it is broken, or has a DTD.
    """
    if b"\x00" in data[:4]:  # UTF-16: the search below would not see a DTD
        data = data.decode("utf-16", "replace").encode()
        data = re.sub(rb"^\s*<\?xml[^>]*\?>", b"", data)
    if _DTD.search(data):
        raise XmlError("it has a DTD, which is not read")
    try:
        return ElementTree.fromstring(data.strip())
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise XmlError(f"it is no XML: {error}") from None


def name_of(element: ElementTree.Element) -> str:
    """Return the name of an element without its namespace, in lower case."""
    return str(element.tag).rpartition("}")[2].lower()


def children(element: ElementTree.Element, *names: str) -> Iterator[ElementTree.Element]:
    """Yield the children with one of the names, whatever their namespace."""
    return (child for child in element if name_of(child) in names)


def text_at(element: ElementTree.Element, *names: str) -> str:
    """Return the text of the first child with one of the names, with all that is below it; "" without one."""
    for name in names:
        for child in children(element, name):
            if text := " ".join("".join(child.itertext()).split()):
                return text
    return ""
