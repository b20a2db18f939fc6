"""Stages behind a channel: they look at what it offers, run until its soak is over, and move it back when they fail."""

from __future__ import annotations

import sys

import pytest

from mcpfactory_pipeline.decisions.promote import promote
from mcpfactory_pipeline.decisions.stage_decision import approve_stage
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.pipeline.conftest import Recorder
from tests.pipeline.fake_stages import add_server, with_fake_stages
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured, offered, refused

CHANNELS = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
"""
SMOKE = """
[[pipeline.stages]]
name = "smoke"
command = ["{python}", "smoke.py"]
needs = ["channel:staging"]
on_failure = "rollback"
"""
ANNOUNCE = """
[[pipeline.stages]]
name = "announce"
command = ["{python}", "-c", "pass"]
needs = ["channel:production"]
"""


class Offered:
    """A workspace with stages behind its channels."""

    def __init__(self, space) -> None:
        self.space = space
        self.folder = add_server(space.root, "books")
        (space.root / "smoke.py").write_text(
            "import os, sys\nfrom pathlib import Path\n"
            "sys.exit(Path(os.environ['MCPFACTORY_WHEEL']).read_text() == 'bad')\n"
        )

    def configure(self, *parts: str) -> None:
        self.space = configured(self.space, "".join(parts).replace("{python}", sys.executable))

    @property
    def state(self):
        return Store(self.space).state("books")

    @property
    def stages(self):
        return with_fake_stages(workspace_stages(self.space))

    def run(self, source: str = "", **options) -> str:
        if source:
            (self.folder / "source.txt").write_text(source)
        usual = {"stages": self.stages, "executor": InProcessExecutor()}
        return run_pipeline(self.space, ["books"], **{**usual, **options}).servers["books"]

    def verdicts(self) -> dict[str, tuple[str, str]]:
        steps = plan_servers(self.space, ["books"], stages=self.stages)
        return {step.stage: (step.verdict, "; ".join(step.reasons)) for step in steps}

    def promote(self, **options):
        return promote(self.space, "books", "production", stages=self.stages, **options)

    def events(self, *kinds: str):
        return [event for event in Store(self.space).history("books") if event["event"] in kinds]


@pytest.fixture
def books(workspace) -> Offered:
    return Offered(workspace)


def test_a_stage_may_need_what_a_channel_offers_and_the_next_channel_needs_that_stage(books):
    books.configure(CHANNELS, SMOKE, ANNOUNCE)
    names = [stage.name for stage in books.stages]
    assert names == ["generate", "build", "test", "validate", "staging", "smoke", "production", "announce"]
    assert books.run(until="staging") == "passed"
    with refused("smoke was not run on it"):
        books.promote()
    assert books.run() == "passed"
    assert books.verdicts()["production"] == ("waiting", "production offers nothing")
    assert books.verdicts()["announce"] == ("waiting", "needs production, which waits")
    assert [item.kind for item in read_inbox(books.space, ["books"], stages=books.stages)] == ["ready"]
    books.promote()
    assert books.run() == "passed"
    assert {verdict for verdict, _ in books.verdicts().values()} == {"up-to-date"}
    assert verify(books.space) == []


def test_a_channel_may_name_the_checks_that_it_asks_for(books):
    other = SMOKE.replace('"smoke"', '"slow"')
    books.configure(CHANNELS, 'checks = ["smoke"]\n', SMOKE, other)
    books.run(until="smoke")
    books.promote()
    assert offered(books.space, "production") == [b"one"]


def test_a_failure_behind_a_channel_moves_it_back_holds_it_and_says_so(books):
    books.configure(CHANNELS, SMOKE)
    books.run("good")
    good = books.state.candidate
    assert books.run("bad") == "failed"
    assert offered(books.space, "staging") == [b"good"]
    (event,) = books.events("rolled-back")
    assert (event["actor"], event["candidate"], event["stage"]) == ("automation", good, "smoke")
    assert books.state.holds["staging"]["reason"].startswith("smoke failed on 1.0")
    items = {item.kind: item for item in read_inbox(books.space, ["books"], stages=books.stages)}
    assert "staging is held by automation: smoke failed" in items["hold"].message
    books.run()
    assert len(books.events("rolled-back")) == 1, "once is enough"
    assert verify(books.space) == []


def test_a_failed_check_behind_production_moves_production_back_and_leaves_staging(books):
    books.configure(CHANNELS, SMOKE.replace("channel:staging", "channel:production"))
    for text, outcome in (("good", "passed"), ("bad", "failed")):
        books.run(text)
        books.promote()
        assert books.run() == outcome
    assert offered(books.space, "production") == [b"good"]
    assert offered(books.space, "staging") == [b"bad"]
    assert set(books.state.holds) == {"production"}


def test_a_failure_behind_a_channel_is_pending_beside_the_failure_of_a_newer_candidate(books):
    books.configure(CHANNELS, SMOKE.replace("channel:staging", "channel:production").replace("rollback", "stop"))
    books.run("bad")
    books.promote()
    assert books.run() == "failed"
    offered = books.state.candidate
    (books.folder / "tests/outcome.txt").write_text("failed")
    books.run("worse")
    items = {item.about: item for item in read_inbox(books.space, ["books"], stages=books.stages)}
    assert {name: item.kind for name, item in items.items()} == {"test": "failed", "smoke": "failed"}
    assert [offered in items[name].message for name in ("test", "smoke")] == [False, True]
    assert "pipeline history books smoke" in items["smoke"].command


def test_a_run_that_broke_off_before_the_channel_was_moved_back_leaves_that_to_the_next(books, monkeypatch):
    books.configure(CHANNELS, SMOKE)
    books.run("good")
    with monkeypatch.context() as patch:
        patch.setattr(
            "mcpfactory_pipeline.run.runner.rollback_and_hold_failed_channels", lambda *_arguments, **_options: []
        )
        books.run("bad")
    assert offered(books.space, "staging") == [b"bad"]
    books.run()
    assert offered(books.space, "staging") == [b"good"]


def test_a_soak_goes_on_until_the_channel_has_offered_the_candidate_long_enough(books, monkeypatch):
    books.configure(CHANNELS, SMOKE, 'soak = "1h"\n', ANNOUNCE)
    recorder = Recorder()
    assert books.run(reporter=recorder) == "passed", "what only needs time is no failure"
    record = books.state.stages["smoke"]
    assert (record.outcome, record.summary["soaking"]) == ("inconclusive", True)
    assert "soaks until staging has offered it for 1 h" in record.message
    assert read_inbox(books.space, ["books"], stages=books.stages) == []
    with refused("smoke inconclusive"):
        books.promote()
    before = len(books.events("stage.finished"))
    books.run()
    assert len(books.events("stage.finished")) == before + 1, "the health command runs with every run"
    monkeypatch.setattr("mcpfactory_pipeline.run.runner.seconds_in_channel", lambda *_: 3600.0)
    books.run()
    assert books.state.stages["smoke"].outcome == "passed"
    before = len(books.events("stage.finished"))
    books.run()
    assert len(books.events("stage.finished")) == before
    books.promote()


PUBLISH = """
[[pipeline.stages]]
name = "publish-approved"
kind = "approval"
needs = ["smoke"]
"""


def test_an_approval_behind_a_channel_is_asked_for_by_the_next_one_for_these_bytes(books):
    books.configure(CHANNELS, SMOKE, PUBLISH)
    books.run("good")
    with refused("publish-approved: 1 of 1 approval missing"):
        books.promote()
    kinds = [(item.kind, item.about) for item in read_inbox(books.space, ["books"], stages=books.stages)]
    assert kinds == [("approval", "publish-approved")]
    approve_stage(books.space, "books", "publish-approved", stages=books.stages)
    approved = books.state.candidate
    books.run("other")
    with refused("publish-approved: 1 of 1 approval missing"):
        books.promote()
    (books.folder / "source.txt").write_text("newest")
    books.run(until="build")
    with refused("publish-approved: 1 of 1 approval missing"):
        books.promote()
    books.promote(candidate=approved)
    assert offered(books.space, "production") == [b"good"]


def test_independent_stages_run_side_by_side_and_are_recorded_in_their_order(books):
    (books.space.root / "meet.py").write_text(
        "import sys, time\nfrom pathlib import Path\nme, other = map(Path, sys.argv[1:])\nme.touch()\n"
        "end = time.monotonic() + 60\n"
        "while not other.exists() and time.monotonic() < end:\n    time.sleep(0.01)\n"
        "sys.exit(not other.exists())\n"
    )
    both = "".join(
        f'[[pipeline.stages]]\nname = "{name}"\ncommand = ["{{python}}", "meet.py", "{me}", "{other}"]\n'
        for name, me, other in (("left", "a.met", "b.met"), ("right", "b.met", "a.met"))
    )
    books.configure(both)
    assert books.run(executor=None, jobs=2) == "passed", "each waits for the other"
    about = [(e["event"], e["stage"]) for e in Store(books.space).history("books") if e["stage"] in {"left", "right"}]
    assert about == [("stage.finished", "left"), ("stage.finished", "right")]
