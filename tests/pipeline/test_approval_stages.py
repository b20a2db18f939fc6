"""A person's gate is a stage: it waits, is decided about exactly what it shows, and stops or sends back what was rejected."""

from __future__ import annotations

import sys

import pytest

from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.decisions.stage_decision import approve_stage, reject_stage
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.pipeline.fake_stages import add_server, with_fake_stages
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured, offered, refused

TOOLS = """
[[pipeline.stages]]
name = "curate"
command = ["{python}", "curate.py"]
needs = []
reads = ["config"]
before = ["generate"]
[[pipeline.stages]]
name = "tools-approved"
kind = "approval"
needs = ["curate"]
before = ["build"]
approvers = ["ada", "grace"]
approvals = {approvals}
shows = ["stage:curate", "file:TOOLS.md"]
message = "Are these the tools that callers need?"
on_rejection = "{rejected}"
"""
CURATE = """
import os, sys
from pathlib import Path
Path(os.environ["MCPFACTORY_REPORTS"], "said.txt").write_text(os.environ["MCPFACTORY_REJECTION"])
"""


class Gated:
    """A workspace in which the tool list is approved before anything is built."""

    def __init__(self, space, set_actor) -> None:
        self.space, self.act = space, set_actor
        self.folder = add_server(space.root, "books")
        (self.folder / "TOOLS.md").write_text("one tool")
        (space.root / "curate.py").write_text(CURATE)

    @property
    def state(self):
        return Store(self.space).state("books")

    def configure(self, text: str = TOOLS, *, approvals: int = 1, rejected: str = "stop") -> None:
        text = text.format(python=sys.executable, approvals=approvals, rejected=rejected)
        self.space = configured(self.space, text)

    @property
    def stages(self):
        return with_fake_stages(workspace_stages(self.space))

    def run(self) -> str:
        return run_pipeline(self.space, ["books"], stages=self.stages, executor=InProcessExecutor()).servers["books"]

    def verdicts(self) -> dict[str, tuple[str, str]]:
        steps = plan_servers(self.space, ["books"], stages=self.stages)
        return {step.stage: (step.verdict, "; ".join(step.reasons)) for step in steps}

    def approve(self, who: str, stage: str = "tools-approved", **options):
        self.act(who)
        return approve_stage(self.space, "books", stage, stages=self.stages, **options)

    def reject(self, who: str, reason: str, stage: str = "tools-approved"):
        self.act(who)
        return reject_stage(self.space, "books", stage, reason=reason, stages=self.stages)

    def waiting(self) -> list[tuple[str, str, str]]:
        return [(item.kind, item.about, item.command) for item in read_inbox(self.space, ["books"], stages=self.stages)]


@pytest.fixture
def gated(workspace, set_actor) -> Gated:
    return Gated(workspace, set_actor)


def test_what_stands_behind_waits_until_the_people_who_are_named_have_approved(gated):
    gated.configure(approvals=2)
    assert gated.run() == "passed", "to wait for a person is no failure"
    assert gated.verdicts()["tools-approved"] == ("waiting", "2 of 2 approvals missing, from ada, grace")
    assert gated.verdicts()["build"] == ("waiting", "needs tools-approved, which waits")
    assert gated.state.candidate is None
    command = "mcpfactory pipeline approve books --stage tools-approved"
    assert gated.waiting() == [("approval", "tools-approved", command)]
    (item,) = read_inbox(gated.space, ["books"], stages=gated.stages)
    assert "Are these the tools that callers need?" in item.message
    assert "servers/books/TOOLS.md" in item.message
    with refused("eve has no permission to decide about tools-approved"):
        gated.approve("eve")
    assert gated.approve("ada")["missing"] == "1 of 2 approvals missing, from grace"
    with refused("ada has already approved the output of tools-approved of books"):
        gated.approve("ada")
    assert gated.run() == "passed"
    assert gated.state.candidate is None, "one of two is not enough"
    gated.approve("grace")
    assert gated.run() == "passed"
    assert offered(gated.space, "staging") == [b"one"]
    assert set(gated.verdicts().values()) == {("up-to-date", "")}
    assert verify(gated.space) == []


def test_a_decision_is_about_exactly_what_was_shown(gated):
    gated.configure()
    gated.run()
    gated.approve("ada", reason="read it")
    gated.run()
    (gated.folder / "TOOLS.md").write_text("another tool")
    verdict, reason = gated.verdicts()["tools-approved"]
    assert (verdict, reason) == (
        "waiting",
        "1 of 1 approval missing, from ada, grace; what was approved before has changed",
    )
    assert gated.verdicts()["staging"][0] == "waiting"
    gated.run()
    (gated.folder / "TOOLS.md").write_text("one tool")
    assert gated.verdicts()["tools-approved"][0] == "up-to-date", "it is what was approved"
    event = next(e for e in Store(gated.space).history("books") if e["event"] == "approved")
    assert set(event["shown"]) == {"stage", "stage:curate", "file:TOOLS.md"}
    assert (event["stage"], event["reason"]) == ("tools-approved", "read it")


def test_a_rejection_stops_what_stands_behind_until_something_else_is_shown_or_somebody_approves(gated):
    gated.configure()
    gated.run()
    gated.approve("ada")
    gated.reject("grace", "too many")
    assert gated.run() == "blocked"
    assert gated.verdicts()["tools-approved"] == ("blocked", "rejected by grace: too many")
    assert gated.verdicts()["build"] == ("blocked", "needs tools-approved, which was rejected")
    assert gated.state.decisions["tools-approved"].approvals == {}
    assert gated.waiting()[0][:2] == ("gate", "tools-approved")
    (gated.folder / "TOOLS.md").write_text("fewer tools")
    assert gated.verdicts()["tools-approved"][0] == "waiting"
    (gated.folder / "TOOLS.md").write_text("one tool")
    gated.approve("ada")
    assert gated.run() == "passed"
    assert gated.state.candidate


def test_a_rejection_may_send_the_work_back_to_an_earlier_stage_with_what_was_said(gated):
    gated.configure(rejected="restart:curate")
    gated.run()
    gated.reject("ada", "name them by what they do")
    assert gated.verdicts()["curate"] == ("run", "sent back by ada: name them by what they do (tools-approved)")
    assert gated.verdicts()["tools-approved"] == ("waiting", "stage curate will run")
    assert gated.run() == "passed", "curate had its say, and found something else"
    said = gated.space.artifacts / "books" / "reports" / "curate" / "said.txt"
    assert said.read_text() == "name them by what they do"
    assert gated.state.sent_back == {}
    assert gated.verdicts()["tools-approved"][0] == "waiting"
    gated.approve("ada")
    assert gated.run() == "passed"
    assert verify(gated.space) == []


def test_what_is_not_shown_yet_cannot_be_decided(gated):
    gated.configure()
    with refused("tools-approved of books cannot be approved or rejected yet: curate: never run"):
        gated.approve("ada")
    with refused("stage curate is not an approval stage"):
        gated.approve("ada", "curate")
    with pytest.raises(NotFoundError, match="unknown stage 'curated'"):
        gated.approve("ada", "curated")


REPORT = """
[[pipeline.stages]]
name = "report-approved"
kind = "approval"
needs = ["test"]
shows = ["artifact:test/report.txt"]
"""


def test_a_decision_behind_build_is_about_the_candidate_and_its_reports(gated):
    gated.configure(REPORT)
    gated.run()
    first = gated.state.candidate
    assert gated.waiting()[0][2] == f"mcpfactory pipeline approve books --stage report-approved --candidate {first}"
    shown = gated.approve("ada", "report-approved", candidate=first[:6])["shown"]
    assert shown[1]["file"] == f"pipeline/artifacts/books/{first}/test/report.txt"
    gated.run()
    (gated.folder / "source.txt").write_text("two")
    gated.run()
    assert offered(gated.space, "staging") == [b"one"]
    with refused(f"waits for a decision about candidate {gated.state.candidate}, not {first}"):
        gated.approve("ada", "report-approved", candidate=first)
    gated.approve("ada", "report-approved")
    gated.run()
    assert offered(gated.space, "staging") == [b"two"]


def test_a_report_that_was_changed_after_its_stage_kept_it_is_not_approved_and_may_be_rejected(gated):
    gated.configure(REPORT)
    gated.run()
    report = gated.space.artifacts / "books" / (gated.state.candidate or "") / "test" / "report.txt"
    kept = report.read_bytes()
    report.write_text("all is well")
    with refused("report.txt has changed since the stage wrote the file"):
        gated.approve("ada", "report-approved")
    gated.reject("ada", "who wrote this?", "report-approved")
    report.write_bytes(kept)
    assert gated.approve("ada", "report-approved")["missing"] == ""


def test_an_approval_of_somebody_who_may_no_longer_approve_does_not_count(gated):
    gated.configure()
    gated.run()
    gated.approve("ada")
    gated.configure(TOOLS.replace('["ada", "grace"]', '["grace"]'))
    assert gated.verdicts()["tools-approved"] == ("waiting", "1 of 1 approval missing, from grace")
