"""Servers of other kinds of documents, through the front door: what is said, what is kept, and that an update finds it again."""

from __future__ import annotations

import json

import pytest

from tests.codegen.sources import library, test_discovery, test_postman

DOCUMENTS = {
    "discovery.json": (test_discovery.document(), "a Google discovery document, 4 methods"),
    "schema.graphql": (library.SDL, "a GraphQL schema, 9 fields"),
    "collection.json": (test_postman.collection(test_postman.request()), "a Postman collection, 1 request"),
}


@pytest.mark.parametrize("file", DOCUMENTS)
def test_a_server_of_another_kind_of_document_says_what_it_is_made_from(cli, file):
    assert cli("init", "ws", "--factory", "index").code == 0
    workspace = cli.at(cli.folder / "ws")
    content, recognised = DOCUMENTS[file]
    given = workspace.folder / f"given-{file}"
    given.write_text(content if isinstance(content, str) else json.dumps(content))
    made = workspace("new", "one", "--from", given.name)
    assert (made.code, f"read {recognised}\n" in made.out) == (0, True), made.out + made.err
    assert (workspace.folder / "servers/one/api" / file).is_file()
    assert workspace("update", "one", "--dry-run").out == "one is up to date\n"
    shown = workspace("inspect", "one", "--json").data
    assert shown["tools"]
    if isinstance(content, dict):  # the same, written in another way: nothing changes for callers
        given.write_text(json.dumps(content, indent=2))
        assert "breaking" not in workspace("update", "one", "--from", given.name).out


def test_what_is_none_of_the_kinds_is_refused_with_those_that_can_be_read(cli):
    assert cli("init", "ws", "--factory", "index").code == 0
    workspace = cli.at(cli.folder / "ws")
    (workspace.folder / "other.json").write_text('{"hello": 1}')
    done = workspace("new", "one", "--from", "other.json")
    assert done.code == 4
    assert "a Postman collection" in done.err
