"""HTML as a tree of elements, read as browsers read it as far as texts and metadata need it. Pure.

The parser of the standard library gives tokens; here they become a tree: end tags that HTML lets people leave out are added, what is nested too deeply is
kept flat, and nothing is ever refused.
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
# A start tag → what it ends when that is still open, and where the search for it stops (HTML §13.1.2.4, optional tags).
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
_DEEPEST: Final = 200
_PIECE: Final = 50_000  # characters


class Element:
    """An element: its name in lower case, its attributes, and its children (elements and texts) in order."""

    __slots__ = ("attributes", "children", "tag")

    def __init__(self, tag: str, attributes: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.attributes = attributes or {}
        self.children: list[Element | str] = []

    def get(self, name: str) -> str:
        """Return an attribute without the spaces around it; "" when it is missing."""
        return self.attributes.get(name, "").strip()

    def walk(self) -> Iterator[Element]:
        """Yield this element and all below it, in the order of the document."""
        waiting = [self]
        while waiting:
            go_on()
            element = waiting.pop()
            yield element
            waiting += [child for child in reversed(element.children) if isinstance(child, Element)]

    def find_all(self, *tags: str) -> Iterator[Element]:
        """Yield the elements below (or this one) with one of the names."""
        return (element for element in self.walk() if element.tag in tags)

    def find(self, *tags: str) -> Element | None:
        """Return the first element with one of the names."""
        return next(self.find_all(*tags), None)

    def rows(self) -> list[list[Element]]:
        """Return the cells of each row of this table; those of tables within it are not its own."""
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
        """Return all text below, white space joined to single spaces."""
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
    """Return the root of a document, which holds whatever the source has; broken markup gives a tree as well."""
    builder = _TreeBuilder()
    end = source.rfind(">") + 1
    # Behind the last ">" there are no tags; the parser of some Pythons looks for their ends anew at each "<".
    text = source[:end] + source[end:].replace("<", "&lt;")
    for begin in range(0, len(text), _PIECE):  # a call of the parser lets nothing else go on, so each gets little
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
        attributes = {name: value or "" for name, value in reversed(attrs)}  # of two with one name the first counts
        element = Element(tag, attributes)
        self._open[-1].children.append(element)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(
            tag, attrs
        )  # HTML has no self-closing tags but void ones; within SVG the end follows from its parent's

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, 0, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return
            if self._open[at].tag == "table" and tag in {"div", "span", "p"}:
                return  # an end tag within a table does not close what is around it

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
