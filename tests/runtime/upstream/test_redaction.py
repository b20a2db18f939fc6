"""The server's own credentials in what an API answers, in all spellings."""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from mcpfactory_runtime.server.results import Image, Text, ToolResult
from mcpfactory_runtime.upstream.redaction import REDACTED, Redaction

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
}  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_found_in_each_spelling(secret: str, spelling: str) -> None:
    spelled = SPELLINGS[spelling](secret)
    found = Redaction(SECRETS).text(f"before {spelled} after")
    assert REDACTED in found
    assert spelled.strip('"') not in found
    assert found.startswith("before ")
    assert found.endswith(" after")


@pytest.mark.parametrize("secret", [one for one in SECRETS if len(one) > 10])
@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("code", [b64encode, urlsafe_b64encode])
def test_a_secret_in_base64_is_found_within_other_bytes(
    secret: str, before: str, code: Callable[[bytes], bytes]
) -> None:
    found = Redaction(SECRETS).text(code(f"{before}{secret} and more".encode()).decode())
    assert REDACTED in found
    assert len(found) < 60


@pytest.mark.parametrize("secret", ["token-of-the-tests", "token-of-the-tests!", "token-of-the-tests!!"])
@pytest.mark.parametrize("before", ["", "u", "us", "use"])
@pytest.mark.parametrize("spell", [str, lambda code: code.replace("=", "%3D")])
def test_a_secret_at_the_end_of_base64_leaves_no_tail(secret: str, before: str, spell: Callable[[str], str]) -> None:
    found = Redaction([secret]).text(f"({spell(b64encode(f'{before}{secret}'.encode()).decode())})")
    assert found.endswith(f"{REDACTED})")


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
