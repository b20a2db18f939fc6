"""Parser that builds a tree of elements from HTML, close enough to browsers for text and metadata.

The standard library parser yields tokens. This module builds the tree: it adds omitted end tags, flattens elements that are
nested too deeply, and never fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from .limits import go_on

__all__ = ["Element", "parse_html"]

_VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
_BLOCKS: Final = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "details",
        "div",
        "dl",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
    }
    | {"h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul"}
)
_ROWS: Final = frozenset({"tr", "thead", "tbody", "tfoot"})
# Start tag → (open elements that it closes, ancestors where the search stops); HTML §13.1.2.4, optional tags.
_ENDS: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "option": (frozenset({"option"}), frozenset({"select", "datalist"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    **dict.fromkeys(("tbody", "thead", "tfoot"), (_ROWS - {"tr"}, frozenset({"table"}))),
    "body": (frozenset({"head"}), frozenset({"html"})),
}
_DEEPEST: Final = 200  # levels; deeper elements become siblings
_PIECE: Final = 50_000  # characters per call of the parser


class Element:
    """An element with lowercase name, attributes, and children (elements and texts)."""

    __slots__ = ("attributes", "children", "tag")

    def __init__(self, tag: str, attributes: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.attributes = attributes or {}
        self.children: list[Element | str] = []

    def get(self, name: str) -> str:
        """Return a stripped attribute, or ""."""
        return self.attributes.get(name, "").strip()

    def walk(self) -> Iterator[Element]:
        """Yield this element and its descendants in document order."""
        waiting = [self]
        while waiting:
            go_on()
            element = waiting.pop()
            yield element
            waiting += [child for child in reversed(element.children) if isinstance(child, Element)]

    def find_all(self, *tags: str) -> Iterator[Element]:
        """Yield this element and its descendants with one of the names."""
        return (element for element in self.walk() if element.tag in tags)

    def find(self, *tags: str) -> Element | None:
        """Return the first element with one of the names."""
        return next(self.find_all(*tags), None)

    def rows(self) -> list[list[Element]]:
        """Return the cells of each row of this table, without nested tables."""
        found: list[list[Element]] = []
        waiting = [child for child in reversed(self.children) if isinstance(child, Element)]
        while waiting:
            element = waiting.pop()
            if element.tag == "tr":
                found.append(
                    [cell for cell in element.children if isinstance(cell, Element) and cell.tag in ("td", "th")]
                )
            elif element.tag in _ROWS:
                waiting += [child for child in reversed(element.children) if isinstance(child, Element)]
        return found

    def text(self) -> str:
        """Return the text of all descendants, with white space collapsed."""
        parts: list[str] = []
        waiting: list[Element | str] = [self]
        while waiting:
            go_on()
            node = waiting.pop()
            if isinstance(node, str):
                parts.append(node)
            else:
                if node.tag == "br" or node.tag in _BLOCKS:
                    parts.append(" ")
                waiting += reversed(node.children)
        return " ".join("".join(parts).split())


def parse_html(source: str) -> Element:
    """Parse a document and return its root. Broken markup never fails."""
    builder = _TreeBuilder()
    end = source.rfind(">") + 1
    # After the last ">" no tag can end. Some Python versions would search for the end at each "<", in quadratic time.
    text = source[:end] + source[end:].replace("<", "&lt;")
    for begin in range(0, len(text), _PIECE):  # small pieces, because a call blocks other threads
        builder.feed(text[begin : begin + _PIECE])
    builder.close()
    return builder.root


class _TreeBuilder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#document")
        self._open = [self.root]

    def parse_starttag(self, i: int) -> int:
        go_on()
        return super().parse_starttag(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_implied(tag)
        attributes = {name: value or "" for name, value in reversed(attrs)}  # the first of duplicate attributes wins
        element = Element(tag, attributes)
        self._open[-1].children.append(element)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # HTML ignores the slash; an SVG element is closed with its parent

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return
            if self._open[at].tag == "table" and tag in {"div", "span", "p"}:
                return  # an end tag in a table does not close elements around the table

    def handle_data(self, data: str) -> None:
        go_on()
        self._open[-1].children.append(data)

    def _end_implied(self, tag: str) -> None:
        if tag in _BLOCKS and self._open[-1].tag == "p":
            self._open.pop()
        ends, stop = _ENDS.get(tag, (frozenset(), frozenset()))
        for at in range(len(self._open) - 1, 0, -1) if ends else ():
            if self._open[at].tag in stop:
                return
            if self._open[at].tag in ends:
                del self._open[at:]
                return
