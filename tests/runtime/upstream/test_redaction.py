"""The server's own credentials in what an API answers: unchanged, URL-encoded and escaped in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from urllib.parse import quote, quote_plus

from mcpfactory_runtime.server.results import EmbeddedText, Text, ToolResult
from mcpfactory_runtime.upstream.redaction import REDACTED, Redaction
from tests.subtest_table import parametrize_subtests

SECRETS = ("sk-proj-AbCdEf0123456789xyz", 'a/b+c "d" é\\?&=<z~', "hunter2", "\U0001f511 of gold")

FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON, slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "URL": quote,
    "URL, all reserved": lambda text: quote(text, safe=""),
    "URL, plus": quote_plus,
}


@parametrize_subtests("secret, form", product(SECRETS, FORMS))
def test_a_secret_is_removed_in_each_form(secret: str, form: str) -> None:
    written = FORMS[form](secret)
    quoted = '"' if written.startswith('"') else ""
    assert Redaction(SECRETS).text(f"before {written} after") == f"before {quoted}{REDACTED}{quoted} after"


def test_a_result_loses_it_in_texts_structured_content_and_meta() -> None:
    value = {"hunter2": ["x hunter2", {"n": 1, "deep": "?k=hunter2"}]}
    found = Redaction(SECRETS).result(
        ToolResult([Text(json.dumps(value))], structured=value, meta={"next": "?key=hunter2"})
    )
    assert "unter2" not in json.dumps(found.to_dict())
    resource = Redaction(SECRETS).result(ToolResult([EmbeddedText("upstream://x", "<svg>hunter2</svg>")]))
    assert "unter2" not in json.dumps(resource.to_dict())
    assert found.structured == {REDACTED: [f"x {REDACTED}", {"n": 1, "deep": f"?k={REDACTED}"}]}


def test_a_secret_is_removed_from_bytes() -> None:
    content = b"\x00\xff" + SECRETS[0].encode() + b"\xff"
    assert Redaction(SECRETS).content(content) == b"\x00\xff" + REDACTED.encode() + b"\xff"
