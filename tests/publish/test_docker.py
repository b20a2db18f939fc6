"""A Dockerfile for those who have docker, and an entry for its catalogue: of the candidate's bytes, pinned, and never sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from mcpfactory_pipeline.publish.catalogue import to_yaml
from mcpfactory_pipeline.publish.publish import publish
from tests.publish.shelf import packages

BASE = f"docker.io/library/python:3.13-slim@sha256:{'0' * 64}"
ENTRY = {"base": BASE, "commit": "a" * 40, "project": "https://github.com/acme/servers", "category": "productivity"}


@pytest.fixture
def make(shelf, monkeypatch):
    """Publishes to docker, and gives the outcome and its folder; without an index: the server of the shelf needs nothing."""
    monkeypatch.setenv("UV_NO_INDEX", "1")

    def call(**options: str):
        (outcome,) = publish(shelf.workspace, "books", ["docker"], given={"docker": {"base": BASE, **options}})
        return outcome, Path(outcome.folder)

    return call


def test_base_and_packages_are_named_by_hash_and_the_server_runs_as_nobody(shelf, make):
    shelf.put()
    _, folder = make()
    text = (folder / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (.*?)(?: AS \w+)?$", text, re.MULTILINE)) == {"${BASE}"}
    assert f"ARG BASE={BASE}\n" in text
    assert "--require-hashes" in text
    assert text.index("USER 65532:65532") < text.index("ENTRYPOINT")
    assert re.findall(r"--hash=sha256:[0-9a-f]{64}", (folder / "requirements.lock").read_text())


def test_everything_that_the_dockerfile_copies_is_there_and_the_wheel_is_the_one_that_was_checked(shelf, make):
    shelf.put()
    _, folder = make()
    copied = re.findall(r"^COPY (?!--from)(\S+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    assert [name for name in copied if not (folder / name).exists()] == []
    wheel = "books_mcp-1.0.0-py3-none-any.whl"
    assert (folder / "wheels" / wheel).read_bytes() == packages()[wheel]


def test_a_label_cannot_end_its_line_or_be_filled_in(shelf, make):
    shelf.put(summary='Says "hi" $HOME \\')
    _, folder = make()
    label = next(line for line in (folder / "Dockerfile").read_text().splitlines() if "image.description" in line)
    assert label == r'LABEL "org.opencontainers.image.description"="Says \"hi\" \$HOME \\"'


def test_without_a_commit_there_is_no_entry(shelf, make):
    shelf.put()
    outcome, _ = make()
    assert not [name for name in outcome.files if "catalogue" in name]


def test_the_entry_names_secrets_settings_and_the_pinned_source(shelf, make):
    shelf.put()
    _, folder = make(**ENTRY)
    entry = yaml.safe_load((folder / "catalogue/servers/books/server.yaml").read_text())
    assert (entry["name"], entry["type"], entry["about"]["title"]) == ("books", "server", "Books")
    assert entry["source"] == {"project": ENTRY["project"], "commit": ENTRY["commit"], "directory": "servers/books"}
    assert {row["env"] for row in entry["config"]["secrets"]} == {"BOOKS_API_KEY", "BOOKS_TOKEN", "BOOKS_CLIENT_SECRET"}
    assert all(row["name"].startswith("books.") for row in entry["config"]["secrets"])
    assert entry["config"]["env"][0]["value"] == "{{books.books_client_id}}"
    assert "books_client_id" in entry["config"]["parameters"]["properties"]
    rows = json.loads((folder / "catalogue/servers/books/tools.json").read_bytes())
    assert [row["name"] for row in rows] == ["list_books", "get_book"]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"base": "python:3.13-slim"}, "docker/base"),
        ({"base": ""}, "docker/base"),
        ({**ENTRY, "commit": "main"}, "docker/commit"),
        ({**ENTRY, "project": ""}, "docker/project"),
        ({**ENTRY, "category": ""}, "docker/category"),
    ],
)
def test_what_docker_or_its_catalogue_would_refuse_is_refused_with_its_rule(shelf, make, options, rule):
    shelf.put()
    outcome, _ = make(**options)
    assert [problem["rule"] for problem in outcome.problems] == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "yes",
        "12",
        "1.0",
        "a: b",
        "{{books.key}}",
        "# no",
        'say "hi"',
        'it\'s "so"',
        "two\nlines",
        "- x",
        "null",
        "<KEY>",
    ],
)
def test_every_text_is_read_back_as_it_was(text):
    data = {"a": text, "b": {"c": [text, {"d": text, "e": {"f": text}}]}}
    assert yaml.safe_load(to_yaml(data)) == data
