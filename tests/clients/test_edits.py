"""Texts in, texts out: what was there is there again, however it was written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_pipeline.delivery.clients import config_edits, jsonc
from mcpfactory_pipeline.delivery.clients.client_profiles import CLIENTS, ClientProfile
from mcpfactory_pipeline.delivery.clients.config_files import ConfigSyntaxError
from tests.fuzzing import examples
from tests.subtest_table import parametrize_subtests

ENTRY = {"command": "uvx", "args": ["a==1", 'q"\\'], "env": {"K": "${K}"}}
BY_FORMAT = {row.user.format: row for row in CLIENTS}

BLANK = st.lists(st.sampled_from([" ", "\n", "\t", "\r\n", "/* } */", '// "c", {\n']), max_size=3).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["//", "/*", '"', "}"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """A value as JSON with comments, trailing commas and blanks anywhere."""
    if isinstance(value, dict):
        parts = [
            f"{draw(BLANK)}{json.dumps(key)}{draw(BLANK)}:{draw(BLANK)}{draw(written(item))}{draw(BLANK)}"
            for key, item in value.items()
        ]
    elif isinstance(value, list):
        parts = [f"{draw(BLANK)}{draw(written(item))}{draw(BLANK)}" for item in value]
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    comma = f",{draw(BLANK)}" if parts and draw(st.booleans()) else "" if parts else draw(BLANK)
    return ("{%s%s}" if isinstance(value, dict) else "[%s%s]") % (",".join(parts), comma)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    data = draw(st.dictionaries(st.text(max_size=4).filter(lambda key: key != "mcpServers"), VALUES, max_size=3))
    servers = st.dictionaries(st.sampled_from(["a", "b", "c d", "é"]), VALUES, max_size=3)
    if draw(st.booleans()):
        data["mcpServers"] = draw(servers)
    return f"{draw(BLANK)}{draw(written(data))}{draw(BLANK)}"


TOML_PARTS = (
    'a = 1\n', 'b = """\n[mcp_servers.n]\n"""\n', "# c\n", "\n", "c = [\n 1, # ]\n]\n", "[t]\nx = 'y'\n",
    '[mcp_servers.k]\ncommand = "x"\n', "[mcp_servers.k.env]\nA = '[mcp_servers.n]'\n", "[[l]]\nx = {a = 1}\n",
    '["mcp_servers"."o p"] # c\ncommand = """x\n"""\n',
)  # fmt: skip
YAML_PARTS = (
    "a: 1\n", "# c\n", "\n", "b:\n- x\n-   y: 1\n", "t: |\n  extensions:\n    n: 1\n", "extensions:\n  k:\n    cmd: x # c\n",
    "extensions:\n      k: {cmd: x}\n      l:\n          args:\n          - a\n", "extensions: {}\n",
    "extensions: # c\n", "z: >\n  a\n\n  b\n",
)  # fmt: skip
LIST_PARTS = (
    "a: 1\n", "# c\n", "\n", "mcpServers:\n- name: k\n  command: x\n", "mcpServers:\n  -   name: k # c\n      args:\n      - x\n",
    "mcpServers: []\n", "models:\n  - name: n\n",
)  # fmt: skip


def pieces(parts: tuple[str, ...], *, unique: bool) -> st.SearchStrategy[str]:
    texts = st.lists(st.sampled_from(parts), max_size=6, unique=unique).map("".join)
    ends = st.sampled_from([str, lambda text: text.replace("\n", "\r\n"), lambda text: text.removesuffix("\n")])
    return st.builds(lambda text, end: end(text), texts, ends)


TEXTS = {
    "json": json_texts(),
    "toml": pieces(TOML_PARTS, unique=True),
    "yaml": pieces(YAML_PARTS, unique=True),
    "yaml list": pieces(LIST_PARTS, unique=True),
}


def readable(client: ClientProfile, text: str) -> bool:
    try:
        config_edits.read(text, client.user)
    except ConfigSyntaxError:
        return False
    return True


@pytest.mark.parametrize("kind", TEXTS)
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_what_was_installed_and_taken_out_was_never_there(kind, data):
    client = BY_FORMAT[kind]
    place, form = client.user, client.forms[0]
    text = data.draw(TEXTS[kind].filter(lambda text: readable(client, text)))
    before = config_edits.read(text, place)
    others = config_edits.entries(before, form, place)
    entry = {"name": "n", **ENTRY} if kind == "yaml list" else ENTRY
    try:
        after = config_edits.install(text, place, form, "n", entry)
    except ConfigSyntaxError:
        assert kind != "toml"  # a refusal is for containers in a form that cannot be changed in place
        return
    assert config_edits.entries(config_edits.read(after, place), form, place) == {**others, "n": entry}
    assert config_edits.install(after, place, form, "n", entry) == after
    assert config_edits.uninstall(after, place, form, "n", backups=[text]) == text
    back = config_edits.uninstall(after, place, form, "n")
    assert back is not None
    assert back == text or not others  # an emptied container stays, unless it is known that there was none
    assert config_edits.entries(config_edits.read(back, place), form, place) == others


@settings(max_examples=examples(60), deadline=None)
@given(VALUES.filter(lambda value: value is not None).flatmap(lambda value: st.tuples(st.just(value), written(value))))
def test_json_with_comments_is_read_as_it_is_meant(pair):
    value, text = pair
    assert jsonc.parse(text) == value


@settings(max_examples=examples(200), deadline=None)
@given(st.text(alphabet='{}[]",:1a/* \n\\', max_size=20))
def test_what_is_no_json_is_refused_and_what_is_json_is_read_alike(text):
    try:
        strict = json.loads(text)
    except ValueError:
        strict = None
    try:
        found = jsonc.parse(text)
    except ConfigSyntaxError:
        found = None
    assert strict is None or found == strict


@parametrize_subtests(
    "text",
    [
        "[,]",
        "{,}",
        "[1,,]",
        '{"a":,}',
        '{"a": 1,, }',
        "[NaN]",
        "[Infinity]",
        '{"a": "x}',
        "/* [1]",
        "[" * 101 + "]" * 101,
    ],
)
def test_what_is_wrong_beside_comments_and_trailing_commas_is_refused(text):
    with pytest.raises(ConfigSyntaxError):
        jsonc.parse(text)


def test_a_comment_of_many_pages_is_read_at_once():
    text = "{\n/*" + " more of it\n" * 200_000 + '*/ "a": [1 , ], }'
    assert jsonc.parse(text) == {"a": [1]}


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_what_looks_like_a_table_within_a_text_is_none(quotes):
    client = BY_FORMAT["toml"]
    text = f"[a]\nx = {quotes}\n[mcp_servers.n]\n# y\n{quotes}\n"
    after = config_edits.install(text, client.user, client.forms[0], "n", ENTRY)
    assert after.startswith(text)
    assert config_edits.uninstall(after, client.user, client.forms[0], "n") == text


@parametrize_subtests(
    "kind, text",
    [
        ("json", '{"mcpServers": []}'),
        ("json", '{"mcpServers": null}'),
        ("json", '{"mcpServers": {}, "mcpServers": {}}'),
        ("toml", 'mcp_servers = { k = { command = "x" } }\n'),
        ("toml", '[mcp_servers]\nn.command = "x"\n'),
        ("yaml", "extensions: [a]\n"),
        ("yaml", "base: &b {x: {}}\nextensions: *b\n"),
        ("yaml", '{"extensions": {}}'),
        ("yaml", "extensions: text\n"),
        ("yaml", "extensions: {k: {cmd: x}}\n"),
        ("yaml list", "mcpServers: [{name: k}]\n"),
    ],
)
def test_a_form_that_cannot_be_changed_in_place_is_refused(kind, text):
    client = BY_FORMAT[kind]
    with pytest.raises(ConfigSyntaxError):
        config_edits.install(text, client.user, client.forms[0], "n", {"name": "n", **ENTRY})
