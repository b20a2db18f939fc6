"""A decision counts only while things are as its maker saw them: forms of the dashboard, beside decisions of the command line in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import make, stage
from tests.dashboard.http_browser import PEOPLE, Browser, confirming


def started(space: Workspace, *words: str, actor: str = "Grace", **options: Any) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MCPFACTORY_")}
    return subprocess.Popen(
        [sys.executable, "-m", "mcpfactory", *words], cwd=space.root, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, env={**environ, "MCPFACTORY_ACTOR": actor}, **{"stderr": subprocess.PIPE, **options},
    )  # fmt: skip


def typed(space: Workspace, *words: str, actor: str = "Grace") -> tuple[int, str, str]:
    done = InProcessCli(space.root, {"MCPFACTORY_ACTOR": actor})(*words)
    return done.code, done.out, done.err


def decided(space: Workspace) -> list[tuple[str, str]]:
    past = Store(space).history("notes")
    return [(event["event"], event["actor"]) for event in past if not event["event"].startswith("stage.")]


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    made = make(tmp_path, "notes")
    stage(made, "notes", "one")
    return made


@contextmanager
def dashboard(space: Workspace, folder: Path) -> Iterator[str]:
    people = folder / "tokens"
    people.write_text("".join(f"{name}: {secret}\n" for name, secret in PEOPLE.items()))
    people.chmod(0o600)
    words = ("dashboard", "--allow-actions", "--port", "0", "--json", "--token-file", str(people))
    with started(space, *words, stderr=None) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "}\n")
            yield str(json.loads("".join([*lines, "}"]))["url"]).rstrip("/")
        finally:
            process.terminate()


def test_a_form_that_was_open_while_somebody_rejected_asks_again_and_shows_what_changed(
    space, tmp_path_factory
) -> None:
    path = "/servers/notes/actions/approve/"
    with dashboard(space, tmp_path_factory.mktemp("people")) as address:
        ada = Browser(address).login("Ada")
        form = ada.confirmation("notes", "approve", channel="production", reason="tried it")
        assert typed(space, "pipeline", "reject", "notes", "--reason", "prices are wrong")[0] == 0
        answer = ada.post(path, form)
        assert answer.status == 409
        assert decided(space) == [("rejected", "Grace")]
        said = unescape(answer.text)
        assert "Nothing was done: this has changed since you looked" in said
        assert '<th scope="row">decisions</th><td>nothing</td><td>rejected by Grace: prices are wrong</td>' in said
        assert '<th scope="row">checks</th>' not in said, "what is as it was is not shown"
        assert ada.post(path, form).status == 403, "the old form confirms nothing any more"
        again = confirming(answer.text)
        assert again["reason"] == "tried it"
        assert ada.post(path, again).status == 303, "who has seen the difference may still approve"
    assert decided(space) == [("rejected", "Grace"), ("approved", "Ada")]
