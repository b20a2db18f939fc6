from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    McpError,
)
from tests.runtime.requirements import requirement

WRONG: list[tuple[Any, int]] = [
    (1, INVALID_REQUEST),
    ("text", INVALID_REQUEST),
    (None, INVALID_REQUEST),
    ([], INVALID_REQUEST),
    ({}, INVALID_REQUEST),
    ({"method": "ping", "id": 1}, INVALID_REQUEST),
    ({"jsonrpc": "1.0", "method": "ping", "id": 1}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": True, "method": "ping"}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1, "method": 5}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1, "method": None}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, INVALID_PARAMS),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}, INVALID_PARAMS),
]


@requirement("message.not-json-rpc", "message.id-null", "message.id-other", "message.params-object")
@pytest.mark.parametrize(("message", "code"), WRONG, ids=json.dumps)
def test_what_is_no_message_is_refused_with_its_code(message: Any, code: int) -> None:
    with pytest.raises(McpError) as refused:
        jsonrpc.check_message(message)
    assert refused.value.code == code


@requirement("message.not-json", "message.utf-8")
@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"{", b"}", b"nul", b"{'a': 1}", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1,}', b'{"a": 01}', b"0x10", b"// x\n{}",
        b'{"a": "\\ud800', b'"\x01"', b"\xff\xfe", b"\x00", b'\xef\xbb\xbf{"a": 1}', b"{} {}", b"[" * 100_000, b'{"a":' * 100_000,
    ],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_bytes_that_are_no_json_text_are_parse_errors(data: bytes) -> None:
    with pytest.raises(McpError) as refused:
        jsonrpc.decode(data)
    assert refused.value.code == PARSE_ERROR


def test_a_circle_and_what_is_too_deep_have_no_json_form_and_end() -> None:
    circle: list[Any] = ["\ud800"]
    circle.append(circle)
    for value, words in ((circle, "serializ"), (object(), "serializ")):
        with pytest.raises(ValueError, match=words):
            jsonrpc.encode(value)


@given(st.binary(max_size=200))
def test_decoding_never_raises_anything_else(data: bytes) -> None:
    with suppress(McpError):
        jsonrpc.decode(data)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@requirement("stdio.one-line")
@given(JSON)
def test_values_survive_encoding_and_take_one_line(value: Any) -> None:
    data = jsonrpc.encode(value)
    assert b"\n" not in data
    assert jsonrpc.decode(data) == value
