from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.errors import (
    CODES,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    McpError,
    http_status,
)
from tests.rows import rows
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


@requirement("message.not-rpc", "message.id-null", "message.id-other", "message.params-object")
@pytest.mark.parametrize(("message", "code"), WRONG, ids=json.dumps)
def test_what_is_no_message_is_refused_with_its_code(message: Any, code: int) -> None:
    with pytest.raises(McpError) as refused:
        jsonrpc.check(message)
    assert refused.value.code == code


@rows(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "", "method": "ping", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None},
    ],
)
def test_messages_pass(message: Any) -> None:
    jsonrpc.check(message)


@requirement("message.not-json", "message.utf-8")
@pytest.mark.parametrize(
    "data", [b"", b"{", b"nonsense", b'{"a": NaN}', b'{"a": "\\ud800', b"\xff\xfe", b"{} {}", b"[" * 500]
)
def test_bytes_that_are_no_json_text_are_parse_errors(data: bytes) -> None:
    with pytest.raises(McpError) as refused:
        jsonrpc.decode(data)
    assert refused.value.code == PARSE_ERROR


@pytest.mark.parametrize("data", ['"\\ud800"', b'"\\uDFff"', bytearray(b'"\\ud800"'), memoryview(b'"\\udc00"')])
def test_half_a_surrogate_pair_which_the_grammar_of_json_permits_becomes_the_replacement_character(data: Any) -> None:
    assert jsonrpc.decode(data) == "\ufffd"


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


def test_numbers_without_json_form_become_null() -> None:
    assert jsonrpc.encode([float("nan"), float("inf")]) == b"[null,null]"


def test_a_result_that_is_encoded_already_is_put_in_as_it_is() -> None:
    plain = jsonrpc.result_message("a\nb", {"tools": []})
    assert jsonrpc.result_message("a\nb", b'{"tools":[]}') == plain
    assert json.loads(plain) == {"jsonrpc": "2.0", "id": "a\nb", "result": {"tools": []}}


@requirement("message.error-without-id")
def test_an_error_without_id_says_null_or_leaves_it_out() -> None:
    error = McpError(PARSE_ERROR, "no", {"at": 1})
    assert jsonrpc.error_message(jsonrpc.MISSING, error)["id"] is None
    assert "id" not in jsonrpc.error_message(jsonrpc.MISSING, error, null_id=False)
    assert jsonrpc.error_message(0, error) == {
        "jsonrpc": "2.0",
        "id": 0,
        "error": {"code": PARSE_ERROR, "message": "no", "data": {"at": 1}},
    }


def test_a_malformed_error_of_the_peer_is_still_an_error() -> None:
    assert jsonrpc.error_of({"error": {"code": -5, "message": "m", "data": 1}}).data == 1
    assert jsonrpc.error_of({"error": "broken"}).code == INVALID_REQUEST


def test_every_code_has_a_status_and_own_codes_leave_it_at_200() -> None:
    assert {http_status(code) for code in CODES} == {200, 400, 404}
    assert http_status(7) == 200
