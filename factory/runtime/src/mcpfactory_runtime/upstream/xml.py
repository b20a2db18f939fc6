"""XML bodies and responses of APIs.

Rules for bodies:

1. A member is an element under its own name, unless its `Xml` specifies otherwise.
2. The items of an array are sibling elements. An element encloses the items only if `wrapped` is True.
3. Null is an element with `xsi:nil`. Null attributes and texts are omitted.
4. A namespace is declared at the outermost element that uses it.
5. Values that XML cannot represent are refused, such as a name with a space, or a control character. Text is escaped.

Rules for responses:

1. The value is the content of the root, an object. The keys are names of elements and attributes without namespaces.
2. An element without attributes and elements is its text, or null with `xsi:nil`. In any other element, the member
   `#text` has the text.
3. Siblings with the same name are a list. A single element is a list only if the API document declares a list
   (`lists`).
4. An attribute with the name of a sibling element gets the key `@name`.
5. Document type declarations, which could define custom entities, and excessive nesting are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple
from xml.parsers import expat

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.encoding import text_of, utf8
from mcpfactory_runtime.upstream.operation import Xml, is_xml_name

_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # XML 1.0 §2.2
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_IN_ATTRIBUTES: Final = {**_ESCAPES, '"': "&quot;", "\t": "&#9;", "\n": "&#10;"}
_NIL: Final = ("xsi", "http://www.w3.org/2001/XMLSchema-instance")
_PLAIN: Final = Xml()

Scope = Mapping[str, str]  # prefix → namespace; the prefix "" is the default namespace


class _Written(NamedTuple):
    attributes: dict[str, str]
    content: str


def build_xml(value: Any, root: Xml, shapes: Mapping[str, Xml]) -> bytes:
    """Return the XML document of a value, in UTF-8 with an XML declaration.

    A value that cannot be written as XML raises ToolError.
    """
    try:
        written = _DocumentBuilder(shapes).element(root.name, value, root, {})
    except RecursionError:
        raise ToolError("An argument is nested too deeply to be written as XML.") from None
    return utf8(f'<?xml version="1.0" encoding="UTF-8"?>\n{written}')


class _DocumentBuilder:
    def __init__(self, shapes: Mapping[str, Xml]) -> None:
        self._shapes = shapes

    def element(self, name: str, value: Any, xml: Xml, scope: Scope) -> str:
        tag, declared = _qualified(name, xml, scope)
        inner = {**scope, **declared}
        attributes = {_declaration(prefix): namespace for prefix, namespace in declared.items()}
        if value is None:
            attributes |= {_declaration(_NIL[0]): _NIL[1], f"{_NIL[0]}:nil": "true"}
            written = _Written({}, "")
        elif isinstance(value, list):
            written = self._items(tag.rpartition(":")[2], value, xml, inner)
        else:
            written = self._inside(value, xml, inner)
        head = "".join(
            f' {key}="{_escaped(text, _IN_ATTRIBUTES)}"' for key, text in (attributes | written.attributes).items()
        )
        return f"<{tag}{head}>{written.content}</{tag}>" if written.content else f"<{tag}{head}/>"

    def _inside(self, value: Any, xml: Xml, scope: Scope) -> _Written:
        if not isinstance(value, Mapping):
            return _Written({}, _escaped(text_of(value), _ESCAPES))
        known = dict(self._shaped(xml).members)
        return _joined(
            [self._child(str(key), member, known.get(str(key), _PLAIN), scope) for key, member in value.items()]
        )

    def _items(self, name: str, value: list[Any], xml: Xml, scope: Scope) -> _Written:
        item = self._shaped(xml).items or _PLAIN
        return _joined([self._child(name, one, item, scope) for one in value])

    def _child(self, name: str, value: Any, xml: Xml, scope: Scope) -> _Written:
        if xml.kind == "attribute":
            return _attribute(xml.name or name, value, xml, scope)
        if xml.kind in ("text", "cdata"):
            text = "" if value is None else _text(value)
            return _Written({}, _cdata(text) if xml.kind == "cdata" else _escaped(text, _ESCAPES))
        if isinstance(value, list) and not xml.wrapped:
            return self._items(name, value, xml, scope)
        if xml.kind == "none" and isinstance(value, Mapping):
            return self._inside(value, xml, scope)
        return _Written({}, self.element(xml.name or name, value, xml, scope))

    def _shaped(self, xml: Xml) -> Xml:
        return self._shapes[xml.shape] if xml.shape else xml


def _joined(parts: list[_Written]) -> _Written:
    attributes = {name: text for part in parts for name, text in part.attributes.items()}
    return _Written(attributes, "".join(part.content for part in parts))


def _attribute(name: str, value: Any, xml: Xml, scope: Scope) -> _Written:
    """Return an attribute, which has no namespace without a prefix (Namespaces in XML §6.2)."""
    if value is None:
        return _Written({}, "")
    tag, declared = _qualified(name, xml, scope) if xml.prefix else (_named(name), {})
    declarations = {_declaration(prefix): namespace for prefix, namespace in declared.items()}
    return _Written({**declarations, tag: _text(value)}, "")


def _qualified(name: str, xml: Xml, scope: Scope) -> tuple[str, dict[str, str]]:
    """Return the name with its prefix, and the namespace that must be declared."""
    tag = _named(f"{xml.prefix}:{name}" if xml.prefix else name)
    return tag, {xml.prefix: xml.namespace} if xml.namespace and scope.get(xml.prefix) != xml.namespace else {}


def _named(name: str) -> str:
    if not is_xml_name(name):
        raise ToolError(f"{name[:80]!r} cannot be the name of an XML element or attribute.")
    return name


def _declaration(prefix: str) -> str:
    return f"xmlns:{prefix}" if prefix else "xmlns"


def _text(value: Any) -> str:
    """Return a scalar as text, and an array as items separated by spaces, like lists of XML Schema."""
    return " ".join(text_of(one) for one in value) if isinstance(value, list) else text_of(value)


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in _permitted(text))


def _cdata(text: str) -> str:
    return f"<![CDATA[{_permitted(text).replace(']]>', ']]]]><![CDATA[>')}]]>" if text else ""


def _permitted(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise ToolError("An argument contains a control character, which XML cannot represent.")
    return text


_DEEPEST: Final = 100  # maximum nesting of elements
_MOST: Final = 500_000  # maximum number of elements, which take about 100 MB of memory
_NIL_ATTRIBUTE: Final = "nil"
_TEXT: Final = "#text"


class XmlAnswerError(ValueError):
    """Error for invalid XML in a response."""


class _Element:
    __slots__ = ("attributes", "members", "nil", "text")

    def __init__(self, attributes: dict[str, str]) -> None:
        named = {key.rpartition(":")[2]: text for key, text in attributes.items() if not _is_declaration(key)}
        self.nil = any(key.endswith(f":{_NIL_ATTRIBUTE}") and text in ("true", "1") for key, text in attributes.items())
        self.attributes = {} if self.nil else named
        self.members: dict[str, list[Any]] = {}
        self.text: list[str] = []


def parse_xml(content: bytes, lists: Collection[tuple[str, str]] = ()) -> Any:
    """Return the value of an XML document, in the encoding that the document declares, or in UTF-8.

    `lists` has pairs of element names, the wrapper of a list (which may be "") and the item. A malformed document, a
    document type declaration, too many elements, or excessive nesting raises XmlAnswerError.
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
        raise XmlAnswerError(f"the XML is not well-formed ({error})") from None
    return reader.value


def _refuse_doctype(*_: object) -> None:
    raise XmlAnswerError("the XML declares a document type, which is not supported")


def _is_declaration(attribute: str) -> bool:
    return attribute == "xmlns" or attribute.startswith(("xmlns:", "xsi:")) or attribute.endswith(f":{_NIL_ATTRIBUTE}")


class _AnswerReader:
    """Handler of the parser's events, which builds the value."""

    def __init__(self, lists: Collection[tuple[str, str]]) -> None:
        self._items = {item for wrapper, item in lists if not wrapper}
        self._wrapped: dict[str, set[str]] = {}
        for wrapper, item in lists:
            self._wrapped.setdefault(wrapper, set()).add(item)
        self._open: list[_Element] = []
        self._count = 0
        self.value: Any = None

    def start(self, _: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise XmlAnswerError(f"the XML is nested more than {_DEEPEST} levels deep")
        self._count += 1
        if self._count > _MOST:
            raise XmlAnswerError(f"the XML has more than {_MOST:,} elements")
        self._open.append(_Element(attributes))

    def data(self, text: str) -> None:
        self._open[-1].text.append(text)

    def end(self, tag: str) -> None:
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
        members = {
            member: values if len(values) > 1 or member in self._items else values[0]
            for member, values in one.members.items()
        }
        attributes = {f"@{key}" if key in members else key: value for key, value in one.attributes.items()}
        beside = {_TEXT: text.strip()} if text.strip() else {}
        return {**attributes, **members, **beside}
