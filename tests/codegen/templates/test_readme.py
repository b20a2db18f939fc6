from __future__ import annotations

import json
from pathlib import Path

from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.text import escape_markdown
from tests.subtest_table import parametrize_subtests


@parametrize_subtests(
    "text, expected",
    [
        ("a | b", "a \\| b"),
        ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
        ("[click](javascript:x) ![i](y)", "\\[click\\](javascript:x) \\!\\[i\\](y)"),
        ("`code` *b* _i_ ~s~", "\\`code\\` \\*b\\* \\_i\\_ \\~s\\~"),
        ("one\n# two\r\n\n- three", "one \\# two - three"),
        ("&lt;b&gt; a\\", "\\&lt;b\\&gt; a\\\\"),
    ],
)
def test_text_of_a_document_stays_text_in_markdown_text(text: str, expected: str) -> None:
    assert escape_markdown(text) == expected


def test_the_readme_says_what_the_tags_of_the_tools_are_about(tmp_path: Path) -> None:
    tags = {"books": "The *catalogue*.", "orders": "Orders", "films": "Films to rent.", "unused": "Nothing is here."}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "1"},
        "servers": [{"url": "https://shop.test"}],
        "tags": [{"name": name, "description": text} for name, text in tags.items()],
        "paths": {f"/{tag}": {"get": {"tags": [tag]}} for tag in ("films", "books", "orders")}
        | {"/books/{id}": {"get": {"tags": ["books"]}}},
    }
    source = tmp_path / "shop.json"
    source.write_text(json.dumps(document), "utf-8")
    readme = Path(create_server(tmp_path, source=str(source), name="shop").path, "README.md").read_text("utf-8")
    assert readme.splitlines()[2:5] == ["- books: The catalogue.", "- films: Films to rent.", ""]


def test_what_a_person_answers_neither_opens_a_comment_nor_cuts_a_sentence(tmp_path: Path) -> None:
    odd = {"title": "Notes <!-- of\nmine", "description": "Keeps\n\nwhat <b>I</b> said"}
    made = create_server(tmp_path, template="memory", name="notes", answers=odd)
    assert Path(made.path, "README.md").read_text("utf-8").splitlines()[:3] == [
        "# Notes &lt;!-- of mine",
        "",
        "Keeps what &lt;b>I&lt;/b> said: knowledge that a model keeps between conversations.",
    ]
    made = create_server(tmp_path, template="memory", name="empty", answers={"title": "", "description": ""})
    lines = Path(made.path, "README.md").read_text("utf-8").splitlines()
    assert (lines[0], lines[2][:6]) == ("# empty", "empty:")
