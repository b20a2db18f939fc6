"""Commands that the inbox, the status and hints name are accepted as they stand: no option of them is unknown, and none is missing.

One workspace, with a server in each state; every command that it names is read by the command line's own parser, and those that
decide are rehearsed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from mcpfactory.main import app
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import finish, make, stage

CHANNELS = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
[[pipeline.channels]]
name = "sealed"
from = "staging"
approvals = 1
signed = true
[[pipeline.channels]]
name = "aged"
from = "staging"
soak = "24h"
approvals = 2
approvers = ["ada", "tester"]
gates = { min_score = 90 }
"""
WAIVERS = """
[[waivers]]
rule = "descriptions.arguments"
tool = "get the reader's card"
person = "Ada"
reason = "soon"
until = 2020-01-31
"""
STAGED = ("approved", "failing", "hasty", "held", "killed", "moved", "rejected", "retired", "rolled", "sent", "waiting")
DECIDES = ("approve", "promote", "unhold", "waive")


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A server in each state; whoever acts has a key that counts."""
    root = tmp_path_factory.mktemp("named") / "ws"
    make(root, "broken", "died", "errored", "failed", "fresh", "gone", "unclear", *STAGED)
    config = root / "mcpfactory.toml"
    config.write_text(config.read_text() + CHANNELS)
    space = Workspace.find(root)
    key = root / "home" / ".ssh" / "id_ed25519"
    key.parent.mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (root / "pipeline" / "allowed_signers").write_text(f'"tester" {key.with_suffix(".pub").read_text()}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCPFACTORY_ACTOR", "tester")
        live(space, key)
    return space


def live(space: Workspace, key: Path) -> None:
    """What happened to the servers."""
    for name, outcome in (("failed", "failed"), ("errored", "errored"), ("unclear", "inconclusive")):
        finish(space, name, "generate", outcome)
    with Store(space).transaction("died") as transaction:
        transaction.append("stage.interrupted", stage="generate", run="r", message="it died")
    for name in ("gone", *STAGED):
        stage(space, name, "one", score=80 if name == "hasty" else 97)
    for name in ("approved", "failing", "killed", "moved", "rolled"):
        decision.approve(space, name, "production")
    for name in ("failing", "killed", "moved", "rolled"):
        promote(space, name, "production")
    for name in ("moved", "rolled"):
        stage(space, name, "two")
        decision.approve(space, name, "production")
        promote(space, name, "production")
    rollback(space, "rolled", "production", reason="two is bad")
    rollback(space, "rolled", "staging", reason="two is bad")
    decision.reject(space, "rejected", "production", reason="no")
    for channel, signature in (("production", None), ("sealed", key)):
        decision.hold(space, "held", channel, reason="audit", sign_with=signature)
    decision.retire(space, "retired", reason="old")
    killed = Store(space).state("killed").candidate
    for name in ("failing", "moved"):
        finish(space, name, "validate", "failed", candidate=Store(space).state(name).candidate)
    with Store(space).transaction("killed") as transaction:
        transaction.append(
            "publish.started", target="pypi", channel="production", candidate=killed, version="1.0", files={}
        )
    (space.root / "servers" / "waiting" / "waivers.toml").write_text(WAIVERS)
    (space.root / "servers" / "waiting" / "src").mkdir()
    (space.root / "servers" / "waiting" / "src" / "tools.py").write_text('NAME = "get the reader\'s card"\n')
    shutil.rmtree(space.root / "servers" / "gone")
    (space.root / "servers" / "broken" / "mcpfactory.toml").write_text("[server\n")


@pytest.fixture
def shell(space: Workspace) -> InProcessCli:
    return InProcessCli(space.root, {"HOME": str(space.root / "home")})


def parse(command: str) -> list[str]:
    """Read a command as the command line does, without running it; give its words. `UsageError` for what it does not take."""
    words = shlex.split(command)
    assert words.pop(0) == "mcpfactory"
    rest, known = words, typer.main.get_command(app)
    while hasattr(known, "commands"):
        assert rest[0] in known.commands, command
        known, rest = known.commands[rest[0]], rest[1:]
    known.make_context(command, list(rest))
    return words


def commands_in(text: str) -> list[str]:
    """Every command that a text names. It ends where the sentence does: hints have nothing behind a command but `;` or `,`."""
    return re.findall(r"mcpfactory (?:[^';,\n]|'[^']*')+", text)


def test_every_command_that_the_inbox_and_the_status_name_is_accepted(shell: InProcessCli, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = shell("inbox", "--json").data
    rows = shell("pipeline", "status", "--json").data
    named = {item["command"] for item in items} | {entry["command"] for row in rows for entry in row["drift"]}
    named |= {command for row in rows if "problem" in row for command in commands_in(row["problem"]["hint"])}
    named |= {command for item in items for command in commands_in(item["message"])}
    assert {item["kind"] for item in items} == {
        "approval", "drift", "errored", "failed", "gate", "hold", "inconclusive", "interrupted", "never", "problem",
        "publish", "ready", "waiver",
    }  # fmt: skip
    words = [parse(command) for command in sorted(named) if command.startswith("mcpfactory ")]
    assert len(words) > 30
    assert refused_decisions(shell, words, tmp_path) == {}


def refused_decisions(shell: InProcessCli, words: list[list[str]], place: Path) -> dict[str, str]:
    """Type each of the commands that decide in a copy of the workspace; give what those were told that were refused."""
    refused = {}
    deciding = [line for line in words if set(DECIDES).intersection(line[:2])]
    assert {name for line in deciding for name in DECIDES if name in line} == {*DECIDES}
    for number, line in enumerate(deciding):
        home = shutil.copytree(shell.folder, place / str(number)) / "home"
        there = InProcessCli(home.parent, {"HOME": str(home)})
        done = there(*(word.replace("~", str(home)) for word in line))
        if done.code:
            refused[shlex.join(line)] = done.err
    return refused


REFUSED = (
    ("pipeline promote waiting", "production: 1 of 1 approval missing, from anyone", "pipeline approve waiting"),
    ("pipeline promote held", "held by tester", "pipeline unhold held"),
    ("pipeline promote rejected", "rejected by tester", "pipeline approve rejected"),
    ("pipeline promote hasty --channel aged", "at least 90 wanted", "mcpfactory validate hasty"),
    ("pipeline promote waiting --channel aged", "2 of 2 approvals missing, from ada, tester; 23 h", ""),
    ("pipeline promote fresh", "no candidate yet", "pipeline run fresh; list pending approvals"),
    ("pipeline approve waiting --channel staging", "requires no approval", "pipeline promote waiting"),
    ("pipeline approve approved", "has already approved candidate", "mcpfactory pipeline promote approved"),
    ("pipeline approve waiting --channel sealed", "must be signed", ""),
    ("pipeline reject moved -m x", "already in production", "pipeline rollback moved"),
    ("pipeline rollback waiting -m x", "nothing to roll back", "pipeline status waiting"),
    ("pipeline hold held -m x", "is held by tester", "pipeline unhold held"),
    ("pipeline retire retired -m x", "is retired", "pipeline revive retired"),
    ("pipeline revive waiting", "is not retired", "mcpfactory pipeline status"),
    ("waive x.y --server waiting -m x --expires 2999-01-01", "unknown rule 'x.y'", "mcpfactory validate --explain descriptions.tool"),
    ("waive descriptions.arguments --server waiting -m x --expires 2999-01-01", "not allowed", "max_days"),
)  # fmt: skip


@pytest.mark.parametrize(("typed", "said", "hint"), REFUSED, ids=[row[0] for row in REFUSED])
def test_the_hint_of_a_refusal_names_commands_that_are_accepted(
    shell: InProcessCli, typed: str, said: str, hint: str
) -> None:
    key = str(shell.folder / "home" / ".ssh" / "id_ed25519")
    done = shell(*(word.replace("KEY", key) for word in typed.split()))
    _, _, told = done.err.partition("hint: ")
    assert done.code in {1, 3}, done.err
    assert said in done.err
    assert hint in told
    for command in commands_in(told):
        parse(command)


def test_an_approval_says_what_still_keeps_the_channel_closed_and_what_to_type_then(shell: InProcessCli) -> None:
    ready = shell("pipeline", "approve", "waiting", "--dry-run").err
    assert "next: mcpfactory pipeline promote waiting --channel production" in ready
    other = shell("pipeline", "approve", "waiting", "--channel", "aged", "--dry-run").err
    assert "aged stays closed to it: 1 of 2 approvals missing, from ada\n" in other
    assert re.search(r"aged stays closed to it: 23 h 5\d min of 1 d in staging left", other)
    assert "next: mcpfactory inbox waiting" in other


def test_promotions_that_are_due_say_what_waits_and_why(shell: InProcessCli) -> None:
    promote = ("pipeline", "promote", "--due", "--channel", "aged", "--dry-run")
    assert re.search(r"^waiting \S+ \(\w+\) waits: .*2 of 2 approvals missing", shell(*promote).err, re.MULTILINE)
    waiting = json.loads(shell(*promote, "--json").out)["waiting"]
    assert parse({one["server"]: one["hint"] for one in waiting}["waiting"])


def test_an_approval_that_leaves_the_soak_says_in_how_long_to_promote(tmp_path: Path) -> None:
    space = make(tmp_path / "ws", "books")
    config = tmp_path / "ws" / "mcpfactory.toml"
    config.write_text(config.read_text() + CHANNELS.replace("approvals = 2", "approvals = 1"))
    stage(space, "books", "one")
    done = InProcessCli(space.root)("pipeline", "approve", "books", "--channel", "aged")
    assert re.search(r"\nnext: in \S.*: mcpfactory pipeline promote books --channel aged\n", done.err), done.err


ASKED = """
[[pipeline.stages]]
name = "seen"
kind = "approval"
needs = []
before = ["generate"]
shows = ["file:mcpfactory.toml"]
"""


def test_a_run_that_ends_at_an_approval_says_what_to_type(tmp_path: Path) -> None:
    space = make(tmp_path / "ws", "books", "notes")
    config = tmp_path / "ws" / "mcpfactory.toml"
    config.write_text(config.read_text() + ASKED)
    stage(space, "notes", "one")
    done = InProcessCli(space.root)("pipeline", "run")
    assert done.code == 0
    assert "books: seen: 1 of 1 approval missing, from anyone; review: servers/books/mcpfactory.toml" in done.err
    commands = [parse(line.removeprefix("next: ")) for line in done.err.splitlines() if line.startswith("next: ")]
    assert sorted(commands) == [["pipeline", "approve", name, "--stage", "seen"] for name in ("books", "notes")]
    assert "next:" not in InProcessCli(space.root)("pipeline", "run", "--json").err
    for name in ("a", "b"):
        shutil.copytree(space.root / "servers" / "books", space.root / "servers" / name)
        (space.root / "servers" / name / "mcpfactory.toml").write_text(
            f'[server]\nname = "{name}"\npackage = "{name}"\ntemplate = "none"\n'
        )
    assert "see what needs your attention: mcpfactory inbox\n" in InProcessCli(space.root)("pipeline", "run").err
