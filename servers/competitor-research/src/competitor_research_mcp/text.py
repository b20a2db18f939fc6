"""Conversion of a page to Markdown sections by heading.

Navigation, scripts, forms, hidden elements and invisible characters are removed: a model must not read text that a person would
not see on the page.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin

from .html import Element
from .limits import go_on

__all__ = ["Section", "clean", "is_hidden", "readable", "to_markdown", "visible_text"]

_NEVER: Final = frozenset(
    {
        "title",
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "head",
        "iframe",
        "object",
        "canvas",
        "select",
        "dialog",
        "button",
        "input",
    }
)
_AROUND: Final = frozenset({"nav", "footer", "aside"})
_ROLES: Final = frozenset({"navigation", "contentinfo", "complementary", "banner", "search", "dialog", "alertdialog"})
_BREAKS: Final = frozenset(
    {
        "address",
        "article",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "form",
        "header",
        "hr",
    }
    | {"li", "main", "ol", "p", "pre", "section", "summary", "table", "tr", "ul", "details", "body", "label", "option"}
)
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_HIDDEN_STYLE: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])", re.IGNORECASE
)
_LONGEST: Final = 20_000  # characters of a style
_FEW: Final = 200  # characters; if the main element has fewer, the whole page is used


@dataclass(slots=True)
class Section:
    """A heading and the lines below it. Lines before the first heading have `heading` ""."""

    heading: str = ""
    level: int = 0
    lines: list[str] = field(default_factory=list)


def clean(text: str) -> str:
    """Remove invisible and control characters, and collapse white space."""
    kept = "".join(_seen(text[begin : begin + _LONGEST]) for begin in range(0, len(text), _LONGEST))
    return " ".join(kept.split())


def _seen(text: str) -> str:
    go_on()
    return "".join(
        char if unicodedata.category(char) not in _UNSEEN else (" " if char in "\t\n\r" else "") for char in text
    )


_UNSEEN: Final = frozenset({"Cf", "Cc", "Cs", "Co", "Cn"})


def readable(root: Element, url: str = "", *, links: bool = False) -> list[Section]:
    """Return the sections of a page's main part.

    Args:
        root: root of the document.
        url: URL of the page, to resolve links.
        links: include the URLs of links.
    """
    body = root.find("body") or root
    main = _main_part(body)
    found = _Writer(url, links).sections(main)
    if main is not body and sum(len(line) for section in found for line in section.lines) < _FEW:
        found = _Writer(url, links).sections(body)
    return found


def to_markdown(sections: list[Section]) -> str:
    """Join sections to one Markdown text."""
    blocks = []
    for section in sections:
        heading = [f"{'#' * max(section.level, 1)} {section.heading}"] if section.heading else []
        blocks.append("\n".join([*heading, *section.lines]))
    return "\n\n".join(block for block in blocks if block)


def _main_part(body: Element) -> Element:
    for element in body.walk():
        if element.tag == "main" or element.get("role") == "main":
            return element
    articles = list(body.find_all("article"))
    return articles[0] if len(articles) == 1 else body


def is_hidden(element: Element) -> bool:
    """Return True if the element's own markup hides it."""
    attributes = element.attributes
    return (
        "hidden" in attributes
        or element.get("aria-hidden").lower() == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")[:_LONGEST]))
    )


def _is_struck(element: Element) -> bool:
    return element.tag in ("del", "s", "strike") or "line-through" in element.attributes.get("style", "").lower()


def _strike(text: str) -> str:
    """Return a struck-out text in Markdown."""
    words = text.strip()
    return text.replace(words, f"~~{words}~~", 1) if words else text


def _joined(parts: list[str]) -> str:
    return clean("".join(parts).replace("~~~~", ""))


class _Writer:
    def __init__(self, url: str, links: bool) -> None:
        self._url = url
        self._links = links
        self._sections = [Section()]
        self._line: list[str] = []
        self._prefix = ""
        self._struck = 0

    def sections(self, root: Element) -> list[Section]:
        self._visit(root, top=True)
        self._end_line()
        return [section for section in self._sections if section.heading or section.lines]

    def _visit(self, node: Element | str, *, top: bool = False) -> None:
        if isinstance(node, str):
            go_on()
            self._line.append(_strike(node) if self._struck else node)
        elif node.tag in _NEVER or is_hidden(node) or (not top and _is_around(node)):
            return
        elif node.tag in _HEADINGS:
            self._end_line()
            if heading := clean(visible_text(node)):
                self._sections.append(Section(heading, _HEADINGS[node.tag]))
        elif node.tag == "table":
            self._end_line()
            self._sections[-1].lines += [row for row in map(_row, node.rows()) if row]
        elif node.tag == "pre":
            self._end_line()
            lines = [line.rstrip() for line in _raw(node).strip("\n").splitlines()]
            self._sections[-1].lines += ["```", *(_printable(line) for line in lines), "```"]
        else:
            self._visit_inside(node)

    def _visit_inside(self, node: Element) -> None:
        breaks = node.tag in _BREAKS
        if breaks:
            self._end_line()
        if node.tag == "li":
            self._prefix = "- "
        if node.tag == "img" and (words := clean(node.get("alt"))):
            self._line.append(f" {words} ")
        begun = len(self._line)
        self._struck += _is_struck(node)
        for child in node.children:
            self._visit(child)
        self._struck -= _is_struck(node)
        if node.tag == "a" and self._links and node.get("href") and not breaks:
            words = clean("".join(self._line[begun:]))
            del self._line[begun:]
            self._line.append(_link(words, node.get("href"), self._url))
        if breaks:
            self._end_line()

    def _end_line(self) -> None:
        if text := _joined(self._line):
            self._sections[-1].lines.append(self._prefix + text)
            self._prefix = ""
        self._line = []


def _is_around(element: Element) -> bool:
    return element.tag in _AROUND or element.get("role").lower() in _ROLES


def _link(words: str, target: str, url: str) -> str:
    try:
        full = urljoin(url, target)
    except ValueError:
        return words
    return f"[{words}]({full})" if words and full.startswith(("http://", "https://")) else words


def _row(row: list[Element]) -> str:
    cells = [clean(visible_text(cell)).replace("|", "/") for cell in row if not is_hidden(cell)]
    return f"| {' | '.join(cells)} |" if any(cells) else ""


def visible_text(element: Element) -> str:
    """Return the visible text of an element; images are replaced by their alternative text."""
    parts: list[str] = []
    waiting: list[tuple[Element | str, bool]] = [(element, False)]
    while waiting:
        node, struck = waiting.pop()
        if isinstance(node, str):
            parts.append(_strike(node) if struck else node)
        elif node.tag not in _NEVER and not is_hidden(node):
            go_on()
            parts.append(f" {node.get('alt')} " if node.tag == "img" else " " if node.tag in _BREAKS else "")
            waiting += [(child, struck or _is_struck(node)) for child in reversed(node.children)]
    return "".join(parts).replace("~~~~", "")


def _raw(element: Element) -> str:
    return "".join(
        child if isinstance(child, str) else "\n" if child.tag == "br" else _raw(child) for child in element.children
    )


def _printable(line: str) -> str:
    return "".join(char for char in line.expandtabs(4) if unicodedata.category(char) not in _UNSEEN)
