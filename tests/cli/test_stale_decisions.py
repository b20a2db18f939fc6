"""A decision counts only while things are as its maker saw them: forms of the dashboard and tokens of the command line, in processes of their own."""

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
from tests.cli.conftest import Inside
from tests.cli.workshop import make, stage
from tests.dashboard.person import PEOPLE, Browser, confirming
from tests.patience import PATIENCE


def started(space: Workspace, *words: str, actor: str = "Grace", **options: Any) -> subprocess.Popen[str]:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("MCPFACTORY_")}
    return subprocess.Popen(
        [sys.executable, "-m", "mcpfactory", *words], cwd=space.root, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, env={**environ, "MCPFACTORY_ACTOR": actor}, **{"stderr": subprocess.PIPE, **options},
    )  # fmt: skip


def typed(space: Workspace, *words: str, actor: str = "Grace") -> tuple[int, str, str]:
    done = Inside(space.root, {"MCPFACTORY_ACTOR": actor})(*words)
    return done.code, done.out, done.err


def decided(space: Workspace) -> list[tuple[str, str]]:
    past = Store(space).history("notes")
    return [(event["event"], event["actor"]) for event in past if not event["event"].startswith("stage.")]


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    made = make(tmp_path, "notes")
    stage(made, "notes", "one")
    return made


@pytest.fixture
def token(space: Workspace) -> str:
    (item,) = json.loads(typed(space, "inbox", "--json")[1])
    return str(item["expect"])


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


def test_of_many_who_decide_at_once_about_the_same_view_one_is_heard(space, token) -> None:
    words = ("notes", "--expect", token, "--reason", "at once")
    racers = [
        started(space, "pipeline", "approve" if number % 2 else "reject", *words, actor=f"racer {number}")
        for number in range(4)
    ]
    ended = [(racer.communicate(timeout=PATIENCE), racer.returncode) for racer in racers]
    assert sorted(code for _, code in ended) == [0, 1, 1, 1]
    assert len(decided(space)) == 1
    for (_, said), code in ended:
        assert code == 0 or "production of notes is not as it was when you looked; now decisions: " in said


def test_the_refusal_names_a_token_with_which_the_command_goes_through(space, token) -> None:
    assert typed(space, "pipeline", "reject", "notes", "--reason", "no")[0] == 0
    code, _, said = typed(space, "pipeline", "approve", "notes", "--expect", token, actor="Ada")
    assert (code, "now decisions: rejected by Grace: no" in said) == (1, True), said
    new = said.partition("--expect ")[2].split()[0]
    assert typed(space, "pipeline", "approve", "notes", "--expect", new, actor="Ada")[0] == 0
    assert decided(space)[-1] == ("approved", "Ada")


def test_status_inbox_and_dry_run_print_the_same_token(space, token) -> None:
    (row,) = json.loads(typed(space, "pipeline", "status", "--json")[1])
    assert row["expect"]["production"] == token
    dry = json.loads(typed(space, "pipeline", "approve", "notes", "--dry-run", "--json")[1])
    assert dry["expect"] == token
    assert list(dry["basis"]) == ["candidate", "channels", "checks", "decisions", "policy"]
    assert f"--expect {token}" in typed(space, "pipeline", "hold", "notes", "--reason", "x", "--dry-run")[2]


def test_another_policy_candidate_or_check_makes_a_token_stale(space, token) -> None:
    config = space.root / "mcpfactory.toml"
    before = config.read_text()
    config.write_text(
        before
        + '\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 2\n'
    )
    said = typed(space, "pipeline", "approve", "notes", "--expect", token)[2]
    assert "now policy: source staging; approvals 2" in said
    config.write_text(before)
    stage(space, "notes", "one", score=12)
    said = typed(space, "pipeline", "approve", "notes", "--expect", token)[2]
    assert "now checks: " in said
    assert "score 12" in said
    stage(space, "notes", "two")
    said = typed(space, "pipeline", "approve", "notes", "--expect", token)[2]
    assert "now candidate: 1.1 (" in said
    assert decided(space) == []
