"""What a model is shown of servers behind a gateway: nothing that a person does not see, and the health page says so."""

from __future__ import annotations

from mcpfactory_pipeline.serve.child_server import ServerListing, sanitize_answer, sanitize_listing
from tests.subtest_table import parametrize_subtests

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
    shown, notes = sanitize_listing(listing)
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


@parametrize_subtests("text", ["\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468 \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "\u0645\u06cc\u200c\u062e API\u200c\u0647", "\u0915\u094d\u200d\u0937", "Daten\xadschutz", "\u05e9\u200f\u200e 5"])  # fmt: skip
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert sanitize_answer(text) is text


def test_every_hidden_character_is_found_in_an_answer_that_has_nothing_else() -> None:
    for sign in map(chr, range(0x80)):
        expected = sign if sign.isprintable() or sign in "\n\r\t" else ""
        assert sanitize_answer({"text": f"a{sign}b"}) == {"text": f"a{expected}b"}, hex(ord(sign))
        assert sanitize_answer({f"a{sign}b": 1}) == {f"a{expected}b": 1}, hex(ord(sign))
