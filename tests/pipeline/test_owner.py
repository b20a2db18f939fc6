"""A channel does not offer one server under the name of another."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.channels.candidate import refuse_taken_project_name
from tests.pipeline.fake_stages import add_server


def test_a_server_with_the_name_of_another_is_refused_and_the_channel_stays(books):
    refuse_taken_project_name(books.workspace, "staging", "books", "books")
    with pytest.raises(
        StateError, match="others cannot use the distribution name books: the name belongs to books"
    ) as caught:
        refuse_taken_project_name(books.workspace, "staging", "books", "others")
    assert "pyproject.toml" in caught.value.hint


def test_the_name_of_the_runtime_is_nobodys(books):
    page = books.workspace.pipeline / "channels/staging/simple/mcpfactory-runtime/index.html"
    before = page.read_text()
    add_server(books.workspace.root, "mcpfactory-runtime")
    assert books.run("mcpfactory-runtime").servers["mcpfactory-runtime"] != "passed"
    assert page.read_text() == before
