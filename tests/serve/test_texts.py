"""What a model is shown of servers behind a gateway: nothing that a person does not see, and the health page says so."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpfactory_pipeline.serve.gateway.listing import ServerListing
from mcpfactory_pipeline.serve.gateway.texts import is_plain_json, plain_answer, plain_listing
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.jsonrpc import decode, encode
from tests.rows import rows

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_HIDDEN = "\x1b[8mpay\u202eeno\u200b\U000e0041\x9b"


def _tool(name: str, description: str, **schema: object) -> dict[str, object]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", **schema}}


def test_texts_are_cleaned_and_what_cannot_be_is_not_offered() -> None:
    listing = ServerListing(
        (
            _tool("good", "Add two numbers:\n\u0628\u200d\u0628."),
            _tool("hidden", f"Add{_HIDDEN}", properties={"a": {"description": _HIDDEN, "type": "string"}}),
            _tool("named", "Add.", properties={"example": {"description": "A."}, "default": {"description": _HIDDEN}}),
            _tool("value", "Add.", properties={"a": {"enum": ["x\u202ey"]}}),
            _tool("na\u200bme", "Add."),
        ),
        prompts=({"name": "p", "title": _HIDDEN},),
        instructions=_HIDDEN,
    )
    shown, notes = plain_listing(listing)
    assert shown.tools[0] == listing.tools[0]
    assert [tool["name"] for tool in shown.tools] == ["good", "hidden", "named"]
    assert shown.tools[1] == _tool(
        "hidden", "Add[8mpayeno", properties={"a": {"description": "[8mpayeno", "type": "string"}}
    )
    assert "\u202e" not in str(shown.tools)
    assert (shown.prompts[0]["title"], shown.instructions) == ("[8mpayeno", "[8mpayeno")
    assert sorted(note.split(":")[0] for note in notes) == [
        "hidden",
        "instructions",
        "name",
        "named",
        "p",
        "value",
    ]


def test_an_answer_keeps_everything_but_hidden_text_and_is_itself_where_it_has_none() -> None:
    whole = {
        "content": [{"type": "image", "data": "AA=="}],
        "n": [1, None, True, "a\n\tb \u0646\u200c\u0645 \U0001f469\u200d\U0001f52c"],
    }
    assert plain_answer(whole) is whole
    assert plain_answer({f"a{_HIDDEN}": [{"b": _HIDDEN}, 1]}) == {"a[8mpayeno": [{"b": "[8mpayeno"}, 1]}


@rows(
    "text",
    [
        "Adds." + "".join(chr(0xFE00 + part) for byte in b"hi" for part in divmod(byte, 16)),
        "Adds." + "".join("\u200c\u200d"[int(bit)] for bit in f"{0x6869:016b}"),
        "A\u200dd\u200cd\ufe0fs",
        "Adds\u115f\u3164\uffa0.",
        "Adds.\ufe00\ufe01",
        "Adds.\u200c\u200d\u200c",
        "Adds.\xad\u200e\xad\u200f\u200e",
    ],
)
def test_what_hides_a_sentence_is_left_out(text: str) -> None:
    assert plain_answer(text) in {"Adds.", "Adds"}


@rows("text", ["\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468 \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "\u0645\u06cc\u200c\u062e API\u200c\u0647", "\u0915\u094d\u200d\u0937", "Daten\xadschutz", "\u05e9\u200f\u200e 5"])  # fmt: skip
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert plain_answer(text) is text


def test_every_hidden_character_is_found_in_an_answer_that_has_nothing_else() -> None:
    for sign in map(chr, range(0x80)):
        expected = sign if sign.isprintable() or sign in "\n\r\t" else ""
        assert plain_answer({"text": f"a{sign}b"}) == {"text": f"a{expected}b"}, hex(ord(sign))
        assert plain_answer({f"a{sign}b": 1}) == {f"a{expected}b": 1}, hex(ord(sign))


@given(VALUES)
def test_a_line_that_looks_plain_has_nothing_to_clean_however_it_is_written(value: Any) -> None:
    for line in (json.dumps(value), json.dumps(value, ensure_ascii=False), encode(value)):
        data = line.encode() if isinstance(line, str) else line
        if is_plain_json(data):
            found = decode(data)
            assert plain_answer(found) is found


@rows("sign", [*map(chr, range(0x20)), "\x7f"])
def test_a_line_with_a_hidden_character_in_a_text_does_not_look_plain_or_is_no_json(sign: str) -> None:
    line = b'{"a":"%b"}' % sign.encode()
    with suppress(McpError):
        decode(line)
        assert not is_plain_json(line), "what is decoded and is not visible is seen"
