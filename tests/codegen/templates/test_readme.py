from __future__ import annotations

import pytest

from mcpfactory_codegen.servers.build import markdown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | b", "a \\| b"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("[click](javascript:x) ![i](y)", "\\[click\\](javascript:x) \\!\\[i\\](y)"),
        ("`code` *b* _i_ ~s~", "\\`code\\` \\*b\\* \\_i\\_ \\~s\\~"),
        ("one\n# two\r\n\n- three", "one \\# two - three"),
        ("&lt;b&gt; a\\", "\\&lt;b\\&gt; a\\\\"),
    ],
)
def test_text_of_a_document_stays_text_in_markdown(text: str, expected: str) -> None:
    assert markdown(text) == expected
