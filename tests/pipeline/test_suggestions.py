"""What is suggested goes through: in random states each suggestion of inbox and status is followed, and none is refused."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as some

from mcpfactory_pipeline.adoption.remote_offers import offers_to_text
from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.ids import acting_as, new_id
from mcpfactory_pipeline.dashboard.actions import ACTIONS, action_for_command
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote, rollback
from mcpfactory_pipeline.operations.decisions import Approve
from mcpfactory_pipeline.operations.table import parse_operation_command
from mcpfactory_pipeline.plan.fingerprint import InputReader, stage_inputs
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.event_schema import RUN_DIED
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.drift import refresh_adopted_drift
from mcpfactory_pipeline.views.inbox import InboxItem, next_commands, read_inbox
from mcpfactory_pipeline.views.status import status
from mcpfactory_pipeline.views.suggestions import hinted_command
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.adoption.changing_server import Offering, offering, tool
from tests.cli.conftest import CommandResult, InProcessCli
from tests.cli.recorded_workspaces import make
from tests.fuzzing import examples
from tests.subtest_table import parametrize_subtests
from tests.system import ended_process

POLICIES = (
    "",
    'gates = { min_score = 90 }\napprovals = 1\napprovers = ["Ada", "Grace"]\n',
    "approvals = 2\n",
    'soak = "1h"\n',
)
HONEST = "Keep a note."
TRIES = 3  # of asking a server on loopback
PEOPLE = ("Ada", "Grace", "Linus")


class Shop:
    """A workspace with one server, and what may happen to it. What cannot be done as things stand happens to nobody."""

    def __init__(self, root: Path, far: Offering | None = None) -> None:
        self.space = make(root, "notes")
        self.root, self.texts, self.far = root, 0, far
        if far:
            folder = root / "servers/notes"
            text = (folder / "mcpfactory.toml").read_text()
            (folder / "mcpfactory.toml").write_text(f'{text}\n[adopted]\nkind = "url"\nurl = "{far.url}"\n')
            (folder / "offers.json").write_text(offers_to_text(far.url, {"tools": far.tools}))

    def fresh(self) -> Workspace:
        return Workspace.find(self.root)

    def finish(self, name: str, outcome: str = "passed", *, stale: bool = False, **facts: Any) -> None:
        """A stage ended that read what is there now, or (`stale`) what was there before."""
        space = self.fresh()
        known = next(one for one in workspace_stages(space) if one.name == name)
        with Store(space).transaction("notes") as transaction:
            for start in Store(space).unfinished_starts("notes"):  # as every run begins
                transaction.append("stage.interrupted", stage=start["stage"], run=start["run"], message=RUN_DIED)
            inputs = stage_inputs(known, InputReader(space.server("notes"), transaction.state))
            inputs = dict.fromkeys(inputs, "sha256:other") if stale else inputs
            about = {"stage": name, "run": new_id()}
            transaction.append(
                "stage.finished", **about, outcome=outcome, inputs=inputs, seconds=1.0,
                **{"message": f"{name} {outcome}", "summary": {}, **facts},
            )  # fmt: skip

    def next(self, score: int) -> None:
        """A candidate that goes to staging."""
        self.texts += 1
        version, text = f"1.{self.texts - 1}", f"text {self.texts}".encode()
        name = f"notes-{version}-py3-none-any.whl"
        files = {name: hash_bytes(text)}
        candidate = hash_named_texts(files).removeprefix("sha256:")[:16]
        folder = self.space.artifacts / "notes" / candidate
        folder.mkdir(parents=True)
        (folder / name).write_bytes(text)
        self.finish("generate")
        self.finish("build", candidate=candidate, built={"version": version, "files": files, "facts": {}})
        self.finish("test", candidate=candidate, summary={"passed": 3})
        self.finish("validate", candidate=candidate, summary={"score": score, "critical": 0, "gates": []})
        self.finish("staging", candidate=candidate, channel="staging", version=version)
        logs = self.space.artifacts / "notes" / "logs"
        logs.mkdir(exist_ok=True)
        (logs / "test.log").write_text("seen")

    def built_only(self, outcome: str) -> None:
        """A candidate that fails before it is in staging: what staging offers is older than the newest."""
        self.texts += 1
        candidate = f"{self.texts:016x}"
        files = {"notes-1.0-py3-none-any.whl": "sha256:" + "0" * 64}
        self.finish("build", candidate=candidate, built={"version": "1.0", "files": files})
        self.finish("test", outcome, candidate=candidate)

    def fail(self, which: str) -> None:
        self.finish(which, "failed", candidate=Store(self.space).state("notes").candidate)

    def recheck(self, stale: bool) -> None:
        self.finish("test", candidate=Store(self.space).state("notes").candidate, stale=stale)

    def die(self, which: str) -> None:
        """The process of a run is killed while a stage is at work."""
        store = Store(self.space)
        start = store.make_event(store.state("notes").last, "stage.started", stage=which, run="killed")
        note = {"pid": ended_process(), "run": "killed", "starts": [start]}
        (self.space.pipeline / "locks" / "notes.running").write_text(json.dumps(note))

    def decide(self, what: str, channel: str) -> None:
        function = {"promote": promote, "rollback": rollback}.get(what) or getattr(decision, what)
        function(self.fresh(), "notes", channel, reason="because")

    def drift(self, message: str) -> None:
        """What was adopted is known to be another one, or to be what it was again (no message)."""
        if self.far:
            self.far.tools = [tool("note", message or HONEST)]
            tried: list[str] = []
            for _ in range(TRIES):
                found = refresh_adopted_drift(self.fresh().server("notes"))
                tried += [f"{one.kind}: {one.message}" for one in found]
                if not any(one.command.startswith("mcpfactory inbox --refresh") for one in found):
                    break  # nobody answered, and that is what is suggested then
            assert [one.kind for one in found] == (["offers"] if message else []), tried

    def lose_wheels(self) -> None:
        for wheel in self.space.artifacts.rglob("*.whl"):
            wheel.unlink()

    def edit(self, version: str) -> None:
        """Somebody writes into the state by hand."""
        file = self.root / "pipeline/state/notes.json"
        file.write_text(file.read_text().replace('"version": "1.0"', f'"version": "{version}"'))

    def policy(self, text: str) -> None:
        head = '[workspace]\nname = "space"\n[[pipeline.channels]]\nname = "staging"\n[[pipeline.channels]]\nname = "production"\n'
        (self.root / "mcpfactory.toml").write_text(f'{head}from = "staging"\n{text}')


EVENTS: dict[str, Any] = {
    "next": some.sampled_from([97, 12]),
    "built_only": some.sampled_from(["passed", "failed", "errored", "inconclusive"]),
    "fail": some.sampled_from(["generate", "test", "validate"]),
    "recheck": some.booleans(),
    "die": some.sampled_from(["generate", "build", "test", "validate", "staging"]),
    "drift": some.sampled_from(["Another text.", "And another.", ""]),
    "lose_wheels": some.none(),
    "edit": some.just("9.9"),
    "policy": some.sampled_from(POLICIES),
}
DECISIONS = some.tuples(
    some.sampled_from(["approve", "reject", "promote", "rollback", "hold", "unhold", "retire"]),
    some.sampled_from(["staging", "production"]),
    some.sampled_from(PEOPLE),
)
HAPPENED = some.one_of(
    DECISIONS, DECISIONS, *(some.tuples(some.just(name), value) for name, value in EVENTS.items()),
    some.tuples(some.just("next"), EVENTS["next"]),
)  # fmt: skip


def live(shop: Shop, happened: tuple[Any, ...]) -> None:
    name, *about = happened
    try:
        if name in EVENTS:
            getattr(shop, name)(*(one for one in about if one is not None))
        else:
            with acting_as(about[1]):
                shop.decide(name, about[0])
    except PipelineError:
        pass


def eligible(command: str, space: Workspace) -> str:
    """Somebody who may give the command: for an approval, who has not given one."""
    found = parse_operation_command(command)
    if not isinstance(found, Approve):
        return "Ada"
    state = Store(space).state("notes")
    known = state.candidates[found.candidate]
    return next(who for who in (*PEOPLE, "Margaret") if who not in known.approvals.get(found.channel, {}))


def followed(shop: Shop, command: str) -> CommandResult:
    """What a suggestion comes to when it is typed, without its consequences: words for what a person has to find, and a dry run."""
    _, *words = shlex.split(command.replace("…", "because"))
    dry = ["--dry-run"] if parse_operation_command(command) else []
    shell = InProcessCli(shop.root, {"MCPFACTORY_ACTOR": eligible(command, shop.fresh())})
    return shell(*words, *dry)


def suggestions(shop: Shop) -> tuple[list[InboxItem], list[str]]:
    space = shop.fresh()
    items = read_inbox(space)
    drift = [entry["command"] for row in status(space) for entry in row["drift"]]
    return items, list(dict.fromkeys([*(item.command for item in items), *drift, *next_commands(items)]))


@pytest.mark.hypothesis
@settings(deadline=None, max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(past=some.lists(HAPPENED, min_size=1, max_size=9), adopted=some.booleans())
def test_no_suggestion_is_refused_when_it_is_followed(past: list[tuple[Any, ...]], adopted: bool) -> None:
    with tempfile.TemporaryDirectory() as place, offering(tool("note", HONEST)) as far:
        shop = Shop(Path(place, "space"), far if adopted else None)
        shop.next(97)
        for happened in past:
            live(shop, happened)
        items, commands = suggestions(shop)
        for command in commands:
            note(command)
            if not command.startswith(("mcpfactory pipeline", "mcpfactory inbox", "mcpfactory waive")):
                continue  # what starts servers, or a program that is not ours
            done = followed(shop, command)
            if (
                command.startswith("mcpfactory pipeline restore") and done.code
            ):  # candidates of this shop have no sources
                assert "hint: notes: copy pipeline/artifacts/notes/" in done.err, f"{command}: {done.err}"
                continue
            if command.startswith("mcpfactory pipeline verify --repair") and "mcpfactory pipeline restore" in done.err:
                assert verify(shop.fresh()) == [], "the state is repaired, and only a wheel is missing"
                continue
            assert done.code == 0, f"{command}: {done.err}"
            if command.startswith("mcpfactory pipeline run"):
                assert "nothing to do" not in done.out + done.err, command
        for item in items:
            found = action_for_command(item.command)
            if found:  # the button beside it
                action, values = found
                fields = {one.name for one in ACTIONS[action].fields}
                given = {**values, **({"reason": "because"} if "reason" in fields else {})}
                with acting_as(eligible(item.command, shop.fresh())):
                    assert ACTIONS[action].perform(shop.fresh(), "notes", given, dry_run=True).message


def failing(shop: Shop) -> None:
    shop.decide("approve", "production")
    shop.lose_wheels()


def older(shop: Shop) -> None:
    shop.decide("approve", "production")
    shop.decide("promote", "production")
    shop.next(97)
    shop.decide("approve", "production")
    shop.decide("promote", "production")
    shop.decide("rollback", "staging")


def drifted(shop: Shop) -> None:
    shop.drift("Another text.")


def approved_and_drifted(shop: Shop) -> None:
    shop.decide("approve", "production")
    shop.drift("Another text.")


@parametrize_subtests(
    "lives, never",
    [
        (failing, "promote"),
        (older, "promote"),
        (older, "approve"),
        (drifted, "approve"),
        (approved_and_drifted, "promote"),
    ],
)
def test_what_a_dry_run_refuses_is_not_suggested(tmp_path: Path, lives: Callable[[Shop], None], never: str) -> None:
    with offering(tool("note", HONEST)) as far:
        shop = Shop(tmp_path / "space", far if "drifted" in lives.__name__ else None)
        shop.next(97)
        lives(shop)
        asked = far.lists
        _, commands = suggestions(shop)
        assert far.lists == asked
    assert commands
    assert [command for command in commands if f"pipeline {never} " in command] == []


def test_what_is_ready_but_lacks_its_bytes_is_a_problem_that_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "space")
    shop.next(97)
    failing(shop)
    (item,) = [item for item in read_inbox(shop.fresh()) if item.about == "production"]
    assert item.kind == "problem"
    assert "is ready for production, but candidate" in item.message
    assert item.command.startswith("mcpfactory pipeline restore notes --candidate ")


def test_a_run_of_what_a_killed_one_was_at_is_suggested_and_has_something_to_do(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "space")
    shop.next(97)
    assert "mcpfactory pipeline run notes" not in suggestions(shop)[1]
    shop.die("validate")
    assert "mcpfactory pipeline run notes" in suggestions(shop)[1]
    assert "last outcome interrupted" in followed(shop, "mcpfactory pipeline run notes").out


def test_a_state_that_was_edited_is_repaired_by_the_command_alone(tmp_path: Path) -> None:
    """What the hint says about the command is not a part of it."""
    shop = Shop(tmp_path / "space")
    shop.next(97)
    shop.edit("9.9")
    found = [command for command in suggestions(shop)[1] if "verify" in command]
    assert found == ["mcpfactory pipeline verify --repair notes"]


@parametrize_subtests(
    "hint, command",
    [
        ("mcpfactory pipeline verify --repair books shows the difference", "mcpfactory pipeline verify --repair books"),
        ("mcpfactory adopt URL, then mcpfactory remove books", "mcpfactory adopt URL"),
        ("mcpfactory pipeline run lists", "mcpfactory pipeline run lists"),
        ("mcpfactory pipeline hold names --channel staging", "mcpfactory pipeline hold names --channel staging"),
        ("free space, or look with mcpfactory inbox", ""),
    ],
)
def test_a_command_is_taken_out_of_the_words_about_it_and_keeps_its_server(hint: str, command: str) -> None:
    assert hinted_command(hint) == command
