"""XML bodies: OpenAPI 3.1 §4.8.26, 3.2 §4.8.26; what is well-formed is judged by the standard library's parser."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree  # its input is what was just written

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Body, Field, Operation, Xml
from mcpfactory_runtime.upstream.request import build_request
from tests.subtest_table import parametrize_subtests


def post(value: Any, xml: Xml, **shapes: Xml) -> str:
    body = Body("application/xml", (Field("b"),), xml=xml, shapes=tuple(shapes.items()))
    request = build_request(Operation("POST", "/x", body=body), {"b": value}, "https://api.example.com")
    text = (request.content or b"").decode()
    declaration, _, document = text.partition("\n")
    assert declaration == '<?xml version="1.0" encoding="UTF-8"?>'
    ElementTree.fromstring(document)
    return document


def member(xml: Xml, **shapes: Xml) -> Any:
    """What `{"m": value}` becomes inside the root."""
    return lambda value: post({"m": value}, Xml("root", members=(("m", xml),)), **shapes)


@parametrize_subtests(
    "xml, value, written",
    [
        (Xml(), "a", "<root><m>a</m></root>"),
        (Xml(), True, "<root><m>true</m></root>"),
        (Xml(), "", "<root><m/></root>"),
        (Xml(), [1, 2.5], "<root><m>1</m><m>2.5</m></root>"),
        (Xml(), [], "<root/>"),
        (Xml("n", wrapped=True), [1, 2], "<root><n><n>1</n><n>2</n></n></root>"),
        (Xml("n", wrapped=True), [], "<root><n/></root>"),
        (Xml("n", wrapped=True, items=Xml("i")), [1], "<root><n><i>1</i></n></root>"),
        (Xml(items=Xml("i")), [1], "<root><i>1</i></root>"),
        (Xml(kind="attribute"), 'a "b"\n<', '<root m="a &quot;b&quot;&#10;&lt;"/>'),
        (Xml(kind="attribute"), ["a", 1], '<root m="a 1"/>'),
        (Xml(kind="attribute"), None, "<root/>"),
        (Xml("n", prefix="p", namespace="u"), {"a": 1}, '<root><p:n xmlns:p="u"><a>1</a></p:n></root>'),
        (Xml(kind="attribute", prefix="p", namespace="u"), 1, '<root xmlns:p="u" p:m="1"/>'),
        (Xml(kind="text"), "a]]>&", "<root>a]]&gt;&amp;</root>"),
        (Xml(kind="cdata"), "<a>", "<root><![CDATA[<a>]]></root>"),
        (Xml(kind="none"), {"a": 1}, "<root><a>1</a></root>"),
    ],
)
def test_a_member_becomes_what_its_record_says(xml: Xml, value: Any, written: str) -> None:
    assert member(xml)(value) == written


def test_a_shape_can_hold_itself() -> None:
    node = Xml(members=(("key", Xml(kind="attribute")), ("in", Xml(items=Xml(shape="Node")))))
    value = {"key": "a", "in": [{"key": "b", "in": [{"key": "c"}]}]}
    assert post(value, Xml("n", shape="Node"), Node=node) == '<n key="a"><in key="b"><in key="c"/></in></n>'


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@parametrize_subtests(
    "value",
    [{"a b": 1}, {"": 1}, {"a><b": 1}, {"1a": 1}, {"a:b:c": 1}, {"a": "\x00"}, {"a": "\ud800"}, nested(100_000)],
)
def test_what_xml_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ToolError):
        post(value, Xml("root"))
