"""XML answers as values: what the model gets of them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_runtime.server.results import ToolResult
from mcpfactory_runtime.upstream import Operation, xml
from mcpfactory_runtime.upstream.response import to_tool_result
from mcpfactory_runtime.upstream.xml import XmlAnswerError, parse_xml
from tests.subtest_table import parametrize_subtests

LISTS = (("reservationSet", "item"), ("", "Contents"))


@parametrize_subtests(
    "document, value",
    [
        ("<r><a>1</a><b> x </b><c/></r>", {"a": "1", "b": " x ", "c": ""}),
        ("<r><a>1</a><a>2</a></r>", {"a": ["1", "2"]}),
        ("<r><Contents><Key>k</Key></Contents></r>", {"Contents": [{"Key": "k"}]}),
        ("<r><reservationSet><item><id>1</id></item></reservationSet></r>", {"reservationSet": [{"id": "1"}]}),
        ("<r>\n <reservationSet>\n </reservationSet></r>", {"reservationSet": []}),
        (
            "<r><reservationSet><item>1</item><more/></reservationSet></r>",
            {"reservationSet": {"item": "1", "more": ""}},
        ),
        ('<r id="7"><a>1</a></r>', {"id": "7", "a": "1"}),
        ('<r a="7"><a>1</a></r>', {"@a": "7", "a": "1"}),
        ('<r><p cur="EUR">3</p></r>', {"p": {"cur": "EUR", "#text": "3"}}),
        ('<x:r xmlns:x="urn:a" xmlns="urn:b"><x:a x:k="1"><b/></x:a></x:r>', {"a": {"k": "1", "b": ""}}),
        ('<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><a xsi:nil="true"/></r>', {"a": None}),
        ('<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a i:nil="false">x</a></r>', {"a": "x"}),
        ("<r>a&amp;&#98;<![CDATA[<c>]]></r>", "a&b<c>"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><r><a>\xe9</a></r>'.encode("latin-1"), {"a": "é"}),
    ],
)
def test_the_value_is_what_the_root_holds(document: str | bytes, value: Any) -> None:
    assert parse_xml(document.encode() if isinstance(document, str) else document, LISTS) == value


@parametrize_subtests(
    "document, why",
    [
        ("<r>", "not well-formed"),
        ("value", "not well-formed"),
        ("<r>&lol;</r>", "not well-formed"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "document type"),
        ('<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>', "document type"),
        ("<a>" * 101 + "</a>" * 101, "100 levels"),
        ('<?xml version="1.0" encoding="nothing"?><r/>', "not well-formed"),
    ],
)
def test_what_is_no_plain_xml_is_refused_with_the_reason(document: str, why: str) -> None:
    with pytest.raises(XmlAnswerError, match=why):
        parse_xml(document.encode())


def read(content: str, kind: str, **operation: Any) -> ToolResult:
    return to_tool_result(200, {"content-type": kind}, content.encode(), Operation("GET", "/", **operation))


@pytest.mark.parametrize("kind", ["text/xml", "application/xml; charset=utf-8", "application/atom+xml"])
def test_an_answer_that_the_document_calls_xml_is_structured_content(kind: str) -> None:
    done = read("<r><Contents>1</Contents></r>", kind, accept="text/xml", lists=LISTS)
    assert done.structured == {"Contents": ["1"]}
    assert [json.loads(str(block["text"])) for block in done.content] == [{"Contents": ["1"]}]
    assert read("<r>1</r>", kind, accept="application/xml").structured == {"result": "1"}


@parametrize_subtests(
    "kind, accept",
    [
        ("application/xml", "application/json"),
        ("application/xml", "text/plain, application/xml;q=0.9"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        ("text/plain", "application/xml"),
    ],
)
def test_xml_that_nobody_described_stays_text(kind: str, accept: str) -> None:
    done = read("<r><a>1</a></r>", kind, accept=accept)
    assert done.structured is None
    assert [block["text"] for block in done.content] == ["<r><a>1</a></r>"]


def test_xml_with_too_many_elements_is_text_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "_MOST", 2)
    assert read("<r><a/></r>", "text/xml", accept="text/xml").structured == {"a": ""}
    done = read("<r><a/><a/></r>", "text/xml", accept="text/xml")
    assert done.structured is None
    assert "more than 2 elements" in done.content[1]["text"]


def test_xml_that_cannot_be_read_is_text_with_the_reason() -> None:
    done = read("<!DOCTYPE r><r/>", "text/xml", accept="text/xml")
    reason = "[XML returned as text: the XML declares a document type, which is not supported.]"
    assert [block["text"] for block in done.content] == ["<!DOCTYPE r><r/>", reason]
    assert done.structured is None
