"""What strangers' servers answer: XML, and the headers that ask for credentials."""

from __future__ import annotations

import json

from mcpfactory_runtime.oauth.challenge import read_challenges
from mcpfactory_runtime.upstream.xml_answers import XmlAnswerError, parse_xml

__all__ = ["SEEDS", "WORDS", "one"]

SEEDS = (
    b"<?xml version='1.0'?><a xmlns:n='u'><n:b c='1'>2</n:b><b/>t</a>",
    b"<ListResult><Item><Key>k</Key></Item><Item>&amp;</Item></ListResult>",
    b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
    b'Bearer realm="a, \\"b\\"", scope="x y", error=invalid_token, Basic QWxhZGRpbg==, Digest',
    b"\xff\xfe<\x00a\x00/\x00>\x00",
)
WORDS = (
    "<a>",
    "</a>",
    "<![CDATA[",
    "]]>",
    "&#",
    ";",
    "xmlns",
    "nil='true'",
    "Bearer ",
    'scope="',
    ", ",
    "\\",
    "=",
    "encoding='",
)
_PAIRS = (("ListResult", "Item"), ("", "b"))


def one(data: bytes) -> None:
    """Read the bytes as each; what is read can be written as JSON."""
    try:
        value = parse_xml(data, _PAIRS)
    except XmlAnswerError as error:
        assert str(error), "refused without a reason"
    else:
        json.dumps(value, allow_nan=False)
    header = data.decode("latin-1")
    for challenge in read_challenges(header):
        assert challenge.scheme == challenge.scheme.lower()
        assert len(challenge.scheme) + sum(map(len, challenge.parameters)) <= len(header), "more than was sent"
