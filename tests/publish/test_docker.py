"""A Dockerfile for those who have docker: of the candidate's bytes, and pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcpfactory_pipeline.delivery.publish.publish import publish
from tests.publish.promoted_workspace import packages

BASE = f"docker.io/library/python:3.13-slim@sha256:{'0' * 64}"


@pytest.fixture
def make(promoted, monkeypatch):
    """Publishes to docker, and gives the outcome and its folder; without an index: the server of the shelf needs nothing."""
    monkeypatch.setenv("UV_NO_INDEX", "1")

    def call(**options: str):
        (outcome,) = publish(promoted.workspace, "books", ["docker"], given={"docker": {"base": BASE, **options}})
        return outcome, Path(outcome.folder)

    return call


def test_base_and_packages_are_named_by_hash_and_the_server_runs_as_nobody(promoted, make):
    promoted.put()
    _, folder = make()
    text = (folder / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (.*?)(?: AS \w+)?$", text, re.MULTILINE)) == {"${BASE}"}
    assert f"ARG BASE={BASE}\n" in text
    assert "--require-hashes" in text
    assert text.index("USER 65532:65532") < text.index("ENTRYPOINT")
    assert re.findall(r"--hash=sha256:[0-9a-f]{64}", (folder / "requirements.lock").read_text())


def test_everything_that_the_dockerfile_copies_is_there_and_the_wheel_is_the_one_that_was_checked(promoted, make):
    promoted.put()
    _, folder = make()
    copied = re.findall(r"^COPY (?!--from)(\S+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    assert [name for name in copied if not (folder / name).exists()] == []
    wheel = "books_mcp-1.0.0-py3-none-any.whl"
    assert (folder / "wheels" / wheel).read_bytes() == packages()[wheel]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"base": "python:3.13-slim"}, "docker/base"),
        ({"base": ""}, "docker/base"),
    ],
)
def test_what_docker_would_refuse_is_refused_with_its_rule(promoted, make, options, rule):
    promoted.put()
    outcome, _ = make(**options)
    assert [problem["rule"] for problem in outcome.problems] == [rule]
