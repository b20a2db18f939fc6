"""The server's own credentials in what an API answers, in all spellings."""

from __future__ import annotations

import html
import json
import quopri
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from itertools import product
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_runtime.server.results import Image, Text, ToolResult
from mcpfactory_runtime.upstream.escapes import layers
from mcpfactory_runtime.upstream.redaction import REDACTED, Redaction
from tests.rows import rows

SECRETS = ("sk-proj-AbCdEf0123456789xyz", 'a/b+c "d" é\\?&=<z~', "hunter2", "\U0001f511 of gold")

SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON, slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON, all escaped": lambda text: "".join(f"\\u{int.from_bytes(text.encode('utf-16-be')[at : at + 2]):04X}" for at in range(0, len(text.encode("utf-16-be")), 2)),
    "URL": quote,
    "URL, all reserved": lambda text: quote(text, safe=""),
    "URL, plus": quote_plus,
    "URL, every byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML, numbers": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(one):X};" for one in text),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
    "hexadecimal, spaced": lambda text: text.encode().hex(" "),
    "HEXADECIMAL, colons": lambda text: text.encode().hex(":").upper(),
    "hexadecimal, hyphens": lambda text: text.encode().hex("-"),
    "HEXADECIMAL, commas": lambda text: text.encode().hex(",").upper(),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"k": text})),
    "JSON in JSON, slashes": lambda text: json.dumps(json.dumps(text).replace("/", "\\/")),
    "JSON, three deep": lambda text: json.dumps(json.dumps(json.dumps([text]))),
    "JSON in a URL": lambda text: quote(json.dumps(text)),
    "Python": repr,
    "Python, bytes": lambda text: repr(text.encode()),
    "URL, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "URL, twice, every byte": lambda text: quote("".join(f"%{byte:02X}" for byte in text.encode())),
    "HTML in a URL": lambda text: quote(html.escape(text), safe=""),
    "HTML, twice": lambda text: html.escape(html.escape(text)),
    "URL in HTML in JSON": lambda text: json.dumps(html.escape(quote(text))),
    "mail": lambda text: quopri.encodestring(text.encode()).decode(),
    "mail in JSON": lambda text: json.dumps(quopri.encodestring(text.encode()).decode()),
    "C": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "C, octal": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "JavaScript": lambda text: "".join(f"\\u{{{ord(one):x}}}" for one in text),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1") if text.isascii() else text,
    "UTF-16 in JSON": lambda text: json.dumps(text.encode("utf-16-be").decode("latin-1")) if text.isascii() else text,
}  # fmt: skip


@rows("secret, spelling", product(SECRETS, SPELLINGS))
def test_a_secret_is_found_in_each_spelling(secret: str, spelling: str) -> None:
    spelled = SPELLINGS[spelling](secret)
    found = Redaction(SECRETS).text(f"before {spelled} after")
    assert REDACTED in found
    assert spelled.strip('"') not in found
    assert found.startswith("before ")
    assert found.endswith(" after")


@rows(
    "secret, end, spell",
    product(
        SECRETS,
        ["\n", "\r\n"],
        [str, json.dumps, lambda text: json.dumps(json.dumps(text)), quote, lambda text: quote(text, safe="")],
    ),
)
def test_a_secret_that_a_line_of_mail_breaks_is_found(secret: str, end: str, spell: Callable[[str], str]) -> None:
    for column in range(40, 80):
        mail = quopri.encodestring(f"{'x' * column}{secret} after".encode()).decode().replace("\n", end)
        found = Redaction(SECRETS).text(spell(mail))
        for undo in (unquote, lambda text: text.replace("\\", "").replace("=rn", "").replace("=n", "")):
            found = undo(found)
        found = quopri.decodestring(found.encode()).decode()
        assert found.strip('"') == f"{'x' * column}{REDACTED} after"


@rows(
    "secret, before, code",
    product([one for one in SECRETS if len(one) > 10], ["", "u", "us", "user:"], [b64encode, urlsafe_b64encode]),
)
def test_a_secret_in_base64_is_found_within_other_bytes(
    secret: str, before: str, code: Callable[[bytes], bytes]
) -> None:
    found = Redaction(SECRETS).text(code(f"{before}{secret} and more".encode()).decode())
    assert REDACTED in found
    assert len(found) < 60


@rows(
    "secret, before, spell",
    product(
        ["token-of-the-tests", "token-of-the-tests!", "token-of-the-tests!!"],
        ["", "u", "us", "use"],
        [str, lambda code: code.replace("=", "%3D")],
    ),
)
def test_a_secret_at_the_end_of_base64_leaves_no_tail(secret: str, before: str, spell: Callable[[str], str]) -> None:
    found = Redaction([secret]).text(f"({spell(b64encode(f'{before}{secret}'.encode()).decode())})")
    assert found.endswith(f"{REDACTED})")


@rows(
    "before, spell",
    product(["", "k", "ke", "key"], [json.dumps, lambda text: json.dumps(text).replace("/", "\\/"), quote]),
)
def test_a_secret_in_base64_of_json_is_found(before: str, spell: Callable[[str], str]) -> None:
    code = b64encode(f"{before}{spell(SECRETS[1])} and more".encode()).decode()
    for text in (code, json.dumps({"body": code}), quote(code, safe="")):
        found = Redaction(SECRETS).text(text)
        assert REDACTED in found
        assert len(found) < 60


def test_only_the_secret_is_taken_out_and_the_text_around_it_stays_as_it_was_escaped() -> None:
    inner = json.dumps({"say": 'a "quoted" word', "key": SECRETS[1], "more": "50% & \\n"})
    text = json.dumps({"inner": inner, "url": "https://x/?q=%D0%9F%20&amp;k=1"})
    found = json.loads(Redaction(SECRETS).text(text))
    assert json.loads(found["inner"]) == {"say": 'a "quoted" word', "key": REDACTED, "more": "50% & \\n"}
    assert found["url"] == "https://x/?q=%D0%9F%20&amp;k=1"


@pytest.mark.parametrize("secret", ["key%41bc%2Fdef", "a&amp;b\\u0041bcdef", "=3D=3D=3D"])
def test_a_secret_that_looks_escaped_is_found_escaped_and_not(secret: str) -> None:
    for text in (secret, quote(secret), json.dumps(json.dumps(secret)), html.escape(html.escape(secret))):
        assert REDACTED in Redaction([secret]).text(f"before {text} after")


@pytest.mark.parametrize("wide", ["utf-16-le", "utf-16-be"])
def test_a_secret_in_utf_16_is_taken_out_of_bytes(wide: str) -> None:
    content = b"\x00\xff" + SECRETS[0].encode(wide) + b"\xff"
    assert Redaction(SECRETS).content(content) == b"\x00\xff" + REDACTED.encode() + b"\xff"


@settings(deadline=None)
@given(st.text(st.sampled_from("\\%&=u0041x;#amp\"'/ é\ud800"), max_size=60))
def test_what_escapes_a_text_may_have_it_is_left_as_it_is_without_a_secret(text: str) -> None:
    assert Redaction(SECRETS).text(text) == text
    assert Redaction(SECRETS).text(f"{text} {SECRETS[0]}") == f"{text} {REDACTED}"


OF_EVERY_LETTER = {name for name in SPELLINGS if "every" in name or "all escaped" in name} | {
    "C",
    "C, octal",
    "JavaScript",
    "HTML, numbers",
    "HTML, hexadecimal",
}
NESTED = sorted(
    name for name in SPELLINGS if ("UTF-16" not in name and "hex" not in name.lower()) or name.startswith("HTML")
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(NESTED), max_size=3))
def test_a_secret_is_found_however_its_escapes_are_put_into_each_other(spellings: list[str]) -> None:
    text = SECRETS[0]
    for spelling in spellings:
        text = SPELLINGS[spelling](text)
    if sum(one in OF_EVERY_LETTER for one in spellings) < 2:  # nobody hides letters twice
        assert REDACTED in Redaction(SECRETS).text(f"before {text} after")


@rows("piece", ["\\", "%25", "&amp;", "=\n", "\\u0041", "%41", "&#65;"])
def test_a_text_full_of_escapes_has_few_layers(piece: str) -> None:
    assert len(list(layers(piece.encode() * 100_000))) < 20


def test_what_has_no_secret_is_left_as_it_is() -> None:
    result = ToolResult(
        [Text("100% of \\u0041 &amp; hunter 2"), Image(b"hunter")], structured={"a": ["hunter"]}, meta={"b": 1}
    )
    assert Redaction(SECRETS).result(result) is result
    assert Redaction(()).text("hunter2") == "hunter2"


def test_a_result_loses_it_in_texts_structured_content_and_meta() -> None:
    value = {"hunter2": ["x hunter2", {"n": 1, "deep": "h%75nter2"}]}
    found = Redaction(SECRETS).result(
        ToolResult([Text(json.dumps(value))], structured=value, meta={"next": "?key=hunter2"})
    )
    assert "unter2" not in json.dumps(found.to_dict())
    assert found.structured == {REDACTED: [f"x {REDACTED}", {"n": 1, "deep": REDACTED}]}
