"""What a job hands over is taken as far as it was assigned, as a run makes it: everything else is refused by name, and nothing of it written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.base.ids import format_time, new_id, utc_now
from mcpfactory_pipeline.delivery.ci.bundle import pack_run
from mcpfactory_pipeline.delivery.ci.fold import ShardResult, fold_results
from mcpfactory_pipeline.plan.stage import Stage, candidate_id
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.policy import ApprovalPolicy, ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor

Events = list[dict[str, Any]]


@pytest.fixture
def shard_result(workspace, tmp_path):
    """A job's: its server went to staging; the workspace knows nothing of it yet. And a server that it was not assigned."""
    add_server(workspace.root, "a")
    add_server(workspace.root, "b")
    other = Workspace.find(workspace.root)
    early, run = new_id(), new_id()
    outcome = run_pipeline(other, ["a"], stages=STAGES, executor=InProcessExecutor(), jobs=1, run_id=run)
    pack_run(other, tmp_path / "shard-1", outcome.recorded)
    for file in (Store(other).history_file("a"), Store(other).state_file("a")):
        file.unlink()
    for folder in other.artifacts.iterdir():
        if folder.name == "a":
            folder.rename(tmp_path / "built")
    return Handed(other, ShardResult(tmp_path / "shard-1", ("a",)), run, early)


class Handed:
    """A shard result that somebody may change before it is folded."""

    def __init__(self, workspace, shard_result, run, early) -> None:
        self.workspace, self.result, self.run, self.early = workspace, shard_result, run, early
        self.file = shard_result.folder / "history" / "a.jsonl"

    def events(self) -> Events:
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def change(self, change: Callable[[Events], Events | None]) -> None:
        events = self.events()
        events = change(events) or events
        self.file.write_text("".join(json.dumps(event) + "\n" for event in events))

    def decide(self, kind: str, at: str = "", **facts: Any) -> None:
        """A decision that is on the branch: from before the run, or with an id of its own."""
        event = {"id": at or self.early, "at": format_time(utc_now()), "actor": "ada", "event": kind, **facts}
        history.append(Store(self.workspace).history_file("a"), [event], "pipeline/history/a.jsonl")
        Store(self.workspace).write_state("a", fold("a", Store(self.workspace).history("a")))

    def fold(self, **options):
        return fold_results(self.workspace, [self.result], self.run, **{"stages": STAGES, **options})


def decision(event: str, **facts: Any) -> Callable[[Events], Events]:
    def add(events: Events) -> Events:
        name = events[-1]["candidate"]
        head = {"id": new_id(events[-1]["id"]), "at": format_time(utc_now()), "actor": "ada", "event": event}
        return [*events, {**head, "channel": "production", "candidate": name, "version": "1.0", **facts}]

    return add


def finished(events: Events, stage: str) -> dict[str, Any]:
    return next(event for event in events if event["event"] == "stage.finished" and event["stage"] == stage)


def without(*stages: str) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if event["stage"] not in stages]


def on(stage: str, **facts: Any) -> Callable[[Events], None]:
    return lambda events: finished(events, stage).update(facts)


def everywhere(**facts: Any) -> Callable[[Events], None]:
    return lambda events: [event.update(facts) for event in events] and None


def climbing(events: Events) -> None:
    """A report whose path begins in the stage's own folder and leads out of it."""
    inline(events, "test", {f"{finished(events, 'test')['candidate']}/test/../../../x": hash_bytes(b"one")})


def inline(events: Events, stage: str, artifacts: dict[str, str]) -> None:
    """Put the files into the event, as earlier versions did, in place of the manifest."""
    end = finished(events, stage)
    del end["manifest"]
    end["artifacts"] = artifacts


def invented(events: Events, name: str = "a-1.0-py3-none-any.whl") -> None:
    """A candidate with a back door, in place of the one that was built."""
    files = {name: hash_bytes(b"back door")}
    build = finished(events, "build")
    build["built"]["files"] = files
    for stage in ("build", "test", "staging"):
        finished(events, stage)["candidate"] = candidate_id(files)


def another_test(events: Events) -> Events:
    return [*events, {**finished(events, "test"), "id": new_id(events[-1]["id"]), "stage": "deploy"}]


def twice(events: Events) -> Events:
    return [*events, {**finished(events, "test"), "id": new_id(events[-1]["id"])}]


REFUSED = {
    "an approval": ("kind", decision("approved")),
    "a promotion": ("kind", decision("promoted")),
    "a hold that is lifted": ("kind", decision("released")),
    "a publication": ("kind", decision("published", target="pypi")),
    "events of another run": ("run", everywhere(run=new_id())),
    "a check that ended twice": ("order", twice),
    "a check whose build did not run": ("order", without("build")),
    "a channel whose check did not run": ("order", without("test")),
    "a channel whose check failed": ("order", on("test", outcome="failed")),
    "a check of another candidate": ("candidate", on("test", candidate="0123456789abcdef")),
    "a candidate that its files are not": ("candidate", on("build", candidate="0123456789abcdef")),
    "a candidate whose files are not there": ("files", invented),
    "a candidate whose file has no name": ("candidate", lambda events: invented(events, "")),
    "another channel": ("channel", on("staging", channel="production")),
    "another version": ("channel", on("staging", version="9.9")),
    "a channel moved by the wrong stage": ("channel", on("test", channel="staging", version="1.0")),
    "a candidate by the wrong stage": ("stage", on("test", built={"version": "1.0", "files": {"x": "y"}})),
    "a stage that nobody has": ("stage", another_test),
    "an outcome that is none": ("history", on("test", outcome="perfect")),
    "events from last year": ("time", everywhere(at="2020-01-01T00:00:00Z")),
    "an event from the future": ("history", on("staging", at="2099-01-01T00:00:00Z")),
    "an event that is incomplete": ("history", lambda events: [event.pop("stage") for event in events] and None),
    "a file out of the folder": ("files", lambda events: inline(events, "test", {"../../../x": hash_bytes(b"x")})),
    "a file that its manifest does not have": ("files", on("test", artifacts={"logs/test.log": hash_bytes(b"x")})),
    "a manifest that nobody wrote": ("files", on("test", manifest="0" * 16)),
    "a file out of the stage's folder": ("files", climbing),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_run_of_the_job_makes_is_refused_by_name_and_nothing_is_written(shard_result, what):
    code, change = REFUSED[what]
    shard_result.change(change)
    folded, refused = shard_result.fold()
    assert ([one.server for one in folded], [(one.server, one.code) for one in refused]) == ([], [("a", code)])
    assert refused[0].hint
    store = Store(shard_result.workspace)
    assert (store.history_file("a").exists(), store.state_file("a").exists()) == (False, False)
    assert not (shard_result.workspace.artifacts / "a").exists()


PRODUCTION = Stage(
    name="production",
    needs=("staging",),
    reads=("candidate",),
    writes=(),
    version=1,
    channel=ChannelPolicy(name="production", source="staging", approvals=2),
    awaits=True,
)
ASKED = replace(PRODUCTION, name="asked", channel=None, awaits=False, approval=ApprovalPolicy())


@pytest.mark.parametrize("stage", [PRODUCTION, ASKED], ids=lambda stage: stage.name)
def test_a_stage_that_people_decide_is_no_stage_that_a_job_runs(shard_result, stage):
    def add(events: Events) -> Events:
        both = [event for event in events if event["stage"] == "staging"]
        facts = {"stage": stage.name, "channel": "production"} if stage.channel else {"stage": stage.name}
        made = [
            {key: value for key, value in {**event, **facts}.items() if stage.channel or key != "channel"}
            for event in both
        ]
        made[0].pop("channel", None)
        for event in made:
            event["id"] = new_id(events[-1]["id"])
            events = [*events, event]
        return events

    shard_result.change(add)
    assert [one.code for one in shard_result.fold(stages=(*STAGES, stage))[1]] == ["stage"]
    assert not Store(shard_result.workspace).history_file("a").exists()


READ: Final = replace(ASKED, name="read", needs=(), reads=("file:outcome.txt",))
BEHIND: Final = (READ, *(replace(stage, needs=(*stage.needs, "read")) for stage in STAGES))


@pytest.fixture
def approved(shard_result):
    """The same, of stages that wait until somebody has approved a file of the server, as ada has."""
    file = shard_result.workspace.root / "servers/a/outcome.txt"
    file.write_text("good")
    shown = {"file:outcome.txt": hash_file(file)}
    shard_result.decide("approved", stage="read", shown=shown)
    return shard_result, file, shown


def test_a_file_that_an_approval_stage_shows_has_to_be_the_one_that_was_approved(approved):
    shard_result, file, _ = approved
    file.write_text("another")
    (refused,) = shard_result.fold(stages=BEHIND)[1]
    assert (refused.code, "needs read, which did not pass" in refused.message) == ("order", True)
    file.write_text("good")
    assert [one.passed for one in shard_result.fold(stages=BEHIND)[0]] == [True]


def test_what_somebody_rejected_while_the_job_ran_moves_no_channel(approved):
    shard_result, _, shown = approved
    during = new_id(shard_result.events()[1]["id"])
    assert during > shard_result.events()[1]["id"]
    shard_result.decide("rejected", during, stage="read", shown=shown, reason="too many")
    (refused,) = shard_result.fold(stages=BEHIND)[1]
    assert (refused.code, "ada rejected it during the job" in refused.message) == ("channel", True)


def test_as_it_was_handed_over_it_is_taken(shard_result):
    folded, refused = shard_result.fold()
    assert ([(one.server, one.passed) for one in folded], refused) == ([("a", True)], [])


def test_bytes_that_are_not_those_of_the_events_are_refused(shard_result):
    (shard_result.result.folder / "files" / hash_bytes(b"one").removeprefix("sha256:")).write_bytes(b"another")
    assert [one.code for one in shard_result.fold()[1]] == ["files"]


def test_a_link_in_place_of_a_file_is_not_followed(shard_result, tmp_path):
    place = shard_result.result.folder / "files" / hash_bytes(b"one").removeprefix("sha256:")
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert [one.code for one in shard_result.fold()[1]] == ["files"]


def test_a_server_that_the_job_was_not_assigned_is_refused_and_the_others_are_taken(shard_result):
    shard_result.file.with_name("b.jsonl").write_text(shard_result.file.read_text())
    folded, refused = shard_result.fold()
    assert ([one.server for one in folded], [(one.server, one.code) for one in refused]) == (["a"], [("b", "server")])
    assert Store(shard_result.workspace).history("b") == []


def test_an_event_that_is_known_and_was_changed_is_refused(shard_result):
    shard_result.fold()
    shard_result.change(on("test", message="it went better"))
    assert [one.code for one in shard_result.fold()[1]] == ["changed"]


def test_a_channel_that_was_held_meanwhile_is_not_moved(shard_result):
    with Store(shard_result.workspace).transaction("a") as transaction:
        transaction.append("held", channel="staging", reason="wait")
    assert [one.code for one in shard_result.fold()[1]] == ["channel"]


def test_the_job_that_publishes_may_say_what_it_promoted_and_nothing_else(shard_result):
    shard_result.change(decision("promoted"))
    assert [one.server for one in shard_result.fold(released=True)[0]] == ["a"]
    shard_result.change(decision("approved"))
    assert [one.code for one in shard_result.fold(released=True)[1]] == ["kind"]


def test_only_logs_that_are_files_of_their_own_are_handed_over(workspace, tmp_path):
    """Code of servers runs beside them: a link would hand over what it leads to, and a pipe would be waited for."""
    add_server(workspace.root, "a")
    (tmp_path / "private.log").write_text("of another")
    logs = workspace.artifacts / "a" / "logs"
    logs.mkdir(parents=True)
    (logs / "link.log").symlink_to(tmp_path / "private.log")
    os.mkfifo(logs / "pipe.log")
    (logs / "folder.log").mkdir()
    outcome = run_pipeline(workspace, ["a"], stages=STAGES, executor=InProcessExecutor(), jobs=1, run_id=new_id())
    pack_run(workspace, tmp_path / "shard-1", outcome.recorded)
    ran = sorted(f"{stage.name}.log" for stage in STAGES)
    assert [file.name for file in sorted((tmp_path / "shard-1/logs/a").iterdir())] == ran


def test_a_manifest_that_somebody_changed_is_refused(shard_result):
    name = finished(shard_result.events(), "test")["manifest"]
    file = shard_result.result.folder / "manifests" / "a" / f"{name}.json"
    file.write_text(file.read_text().replace("never run", "forced"))
    folded, refused = shard_result.fold()
    assert (folded, [one.code for one in refused]) == ([], ["files"])
