"""An XML answer → the value that JSON would have, as a pure function.

The rules:

1. The value is what the root holds: an object by the local names of its elements and attributes; namespaces are left out.
2. An element without attributes and elements is its text; `xsi:nil` is null. Beside others, its text is `#text`.
3. Siblings of one name are a list. One alone is a list only where the document says so: `lists`.
4. An attribute with the name of an element is `@name`.
5. A document type is refused, and with it every entity that is not XML's own; so is what is nested too deeply.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final
from xml.parsers import expat

__all__ = ["XmlAnswerError", "parse_xml"]

_DEEPEST: Final = 100
_NIL: Final = "nil"
_TEXT: Final = "#text"


class XmlAnswerError(ValueError):
    """An answer is no XML that can be read; the message says why, without a stop at its end."""


class _Element:
    """One element that is not closed yet: its members by local name, and its text."""

    __slots__ = ("attributes", "members", "nil", "text")

    def __init__(self, attributes: dict[str, str]) -> None:
        named = {key.rpartition(":")[2]: text for key, text in attributes.items() if not _is_declaration(key)}
        self.nil = any(key.endswith(f":{_NIL}") and text in ("true", "1") for key, text in attributes.items())
        self.attributes = {} if self.nil else named
        self.members: dict[str, list[Any]] = {}
        self.text: list[str] = []


def parse_xml(content: bytes, lists: Collection[tuple[str, str]] = ()) -> Any:
    """Return the value of an XML document.

    Args:
        content: the document, in the encoding that it declares, or UTF-8.
        lists: pairs of element names whose second is an item of a list; the first is the element around the items, or "".

    Raises:
        XmlAnswerError: it is malformed, has a document type, or is nested too deeply.
    """
    reader = _AnswerReader(lists)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, XmlAnswerError):
            raise
        raise XmlAnswerError(f"it is not well-formed ({error})") from None
    return reader.value


def _refuse_doctype(*_: object) -> None:
    raise XmlAnswerError("it declares a document type, which is not read")


def _is_declaration(attribute: str) -> bool:
    return attribute == "xmlns" or attribute.startswith(("xmlns:", "xsi:")) or attribute.endswith(f":{_NIL}")


class _AnswerReader:
    """What the parser tells, as a value."""

    def __init__(self, lists: Collection[tuple[str, str]]) -> None:
        self._items = {item for wrapper, item in lists if not wrapper}
        self._wrapped: dict[str, set[str]] = {}
        for wrapper, item in lists:
            self._wrapped.setdefault(wrapper, set()).add(item)
        self._open: list[_Element] = []
        self.value: Any = None

    def start(self, _: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        if len(self._open) >= _DEEPEST:
            raise XmlAnswerError(f"it is nested more than {_DEEPEST} levels deep")
        self._open.append(_Element(attributes))

    def data(self, text: str) -> None:
        """Take text of the element that is open."""
        self._open[-1].text.append(text)

    def end(self, tag: str) -> None:
        """Close an element: its value goes to the one around it."""
        name = tag.rpartition(":")[2]
        value = self._value(name, self._open.pop())
        if self._open:
            self._open[-1].members.setdefault(name, []).append(value)
        else:
            self.value = value

    def _value(self, name: str, one: _Element) -> Any:
        text = "".join(one.text)
        if one.nil and not one.members:
            return None
        items = self._wrapped.get(name, set())
        if items and not one.attributes and not text.strip() and one.members.keys() <= items:
            return [value for values in one.members.values() for value in values]
        if not one.members and not one.attributes:
            return text
        told = {
            member: values if len(values) > 1 or member in self._items else values[0]
            for member, values in one.members.items()
        }
        attributes = {f"@{key}" if key in told else key: value for key, value in one.attributes.items()}
        beside = {_TEXT: text.strip()} if text.strip() else {}
        return {**attributes, **told, **beside}
