"""Approvals that have to be signed: by the key of who gives them, for this candidate, once."""

from __future__ import annotations

import subprocess

import pytest

from mcpfactory_pipeline.base.errors import ConfigError, RefusedError
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.decisions.integrity import faults
from mcpfactory_pipeline.decisions.stage_decision import approve_stage
from mcpfactory_pipeline.delivery.ci.pull_request import refusals
from mcpfactory_pipeline.run.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.views.inbox import read_inbox
from tests.pipeline.fake_stages import with_fake_stages
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import refused
from tests.pipeline.test_history_rewrites import rewrite
from tests.system import git

SIGNED = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\nsigned = true\n'


def make_key(folder, name: str):
    file = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(file)], check=True)
    return file


@pytest.fixture
def signed(books, tmp_path):
    """A server in staging, production asks for signed approvals, and `tester` has a key."""
    books.configure(SIGNED)
    books.key, books.other = make_key(tmp_path, "tester"), make_key(tmp_path, "mallory")
    signers = books.workspace.root / "pipeline" / "allowed_signers"
    signers.write_text(f'"tester" {books.key.with_suffix(".pub").read_text()}')
    return books


def test_an_approval_that_is_signed_counts(signed):
    signed.decide("approve", reason="read it\nand tried it", sign_with=signed.key)  # it is one line before it is signed
    assert faults(signed.workspace) == []
    signed.promote()
    assert faults(signed.workspace) == []


def test_without_a_key_or_with_one_that_is_not_theirs_nobody_approves(signed, set_actor):
    with refused("must be signed"):
        signed.decide("approve")
    with refused("is not a key of tester"):
        signed.decide("approve", sign_with=signed.other)
    set_actor("mallory")
    with refused("is not a key of mallory"):
        signed.decide("approve", sign_with=signed.key)
    with pytest.raises(ConfigError, match="cannot sign"):
        signed.decide("approve", sign_with=signed.folder / "source.txt")


FORGED = {
    "no signature": lambda event: {key: event[key] for key in event if key not in {"signature", "nonce"}},
    "another reason": lambda event: {**event, "reason": "because"},
    "another name": lambda event: {**event, "actor": "grace"},
    "a signature of nothing": lambda event: {**event, "signature": "-----BEGIN SSH SIGNATURE-----"},
    "another nonce": lambda event: {**event, "nonce": new_id()},
}


@pytest.mark.parametrize("what", FORGED)
def test_an_approval_that_was_written_by_hand_is_told_and_not_promoted_on(signed, what):
    signed.decide("approve", sign_with=signed.key)
    rewrite(signed, lambda lines: [*lines[:-1], FORGED[what](lines[-1])])
    assert [one["server"] for one in faults(signed.workspace)] == ["books"]
    with pytest.raises(RefusedError, match="do not count"):
        signed.promote()


def test_what_was_brought_in_before_signatures_were_asked_for_is_told_until_it_is_signed(books, signed):
    books.configure(SIGNED.replace("signed = true\n", ""))
    books.decide("approve")
    books.promote()
    books.configure(SIGNED)
    (wrong,) = faults(books.workspace)
    assert "0 of 1 signed approvals" in wrong["message"]
    books.decide("approve", sign_with=signed.key)
    assert faults(books.workspace) == []


def test_a_pull_request_may_bring_signed_approvals_and_nothing_else(signed):
    root = signed.workspace.root
    git(root, "init", "-q")
    git(root, "add", "pipeline")
    git(root, "commit", "-qm", "base")
    signed.decide("approve", sign_with=signed.key)
    assert refusals(signed.workspace, "HEAD") == []
    signed.decide("hold", reason="wait", sign_with=signed.key)
    assert [one.server for one in refusals(signed.workspace, "HEAD")] == ["books"]


def test_a_pull_request_may_not_repeat_a_signed_approval_and_so_lift_a_rejection(signed):
    root = signed.workspace.root
    signed.decide("approve", sign_with=signed.key)
    signed.decide("reject", reason="it leaks", sign_with=signed.key)
    git(root, "init", "-q")
    git(root, "add", "pipeline")
    git(root, "commit", "-qm", "base")
    rewrite(signed, lambda lines: [*lines, {**lines[-2], "id": new_id(lines[-1]["id"])}])
    (found,) = refusals(signed.workspace, "HEAD")
    assert "approved by tester" in found.message


def test_a_pull_request_that_brings_a_key_signs_nothing_with_it(signed):
    root = signed.workspace.root
    git(root, "init", "-q")
    git(root, "add", "pipeline")
    git(root, "commit", "-qm", "base")
    (root / "pipeline" / "allowed_signers").write_text(f'"tester" {signed.other.with_suffix(".pub").read_text()}')
    signed.decide("approve", sign_with=signed.other)
    (found,) = refusals(signed.workspace, "HEAD")
    assert "approved by tester" in found.message


TAKEN_BACK = {"reject": {"reason": "it leaks"}, "hold": {"reason": "wait"}, "unhold": {}}


@pytest.mark.parametrize("what", TAKEN_BACK)
def test_rejections_holds_and_releases_are_signed_too_where_approvals_are(signed, what):
    if what == "unhold":
        signed.decide("hold", reason="wait", sign_with=signed.key)
    with refused("must be signed"):
        signed.decide(what, **TAKEN_BACK[what])
    signed.decide(what, **TAKEN_BACK[what], sign_with=signed.key)
    assert faults(signed.workspace) == []
    rewrite(signed, lambda lines: [*lines[:-1], FORGED["no signature"](lines[-1])])
    with pytest.raises(RefusedError, match="is not signed"):
        signed.promote()


def test_a_hold_of_automation_and_a_rollback_need_no_signature(signed):
    signed.decide("hold", reason="smoke failed", stage="smoke")
    assert faults(signed.workspace) == []


STAGE = """
[[pipeline.stages]]
name = "seen"
kind = "approval"
needs = ["build"]
before = ["test"]
signed = true
"""


@pytest.fixture
def gated(signed):
    """The same server, with a stage that asks for signed approvals."""
    signed.configure(STAGE)
    stages = with_fake_stages(workspace_stages(signed.workspace))
    run_pipeline(signed.workspace, until="build", stages=stages, executor=InProcessExecutor(), jobs=1)
    return signed, stages


def test_an_approval_of_a_stage_counts_with_its_signature_alone(gated):
    signed, stages = gated
    command = next(item.command for item in read_inbox(signed.workspace, stages=stages) if item.about == "seen")
    assert command.startswith("mcpfactory pipeline approve books --stage seen ")
    assert command.endswith(" --sign-with ~/.ssh/id_ed25519")
    with refused("a decision about seen must be signed"):
        approve_stage(signed.workspace, "books", "seen", stages=stages)
    approve_stage(signed.workspace, "books", "seen", stages=stages, sign_with=signed.key)
    assert faults(signed.workspace) == []
    assert verdict(signed, stages) == "up-to-date"
    with refused("has already approved the output of seen"):
        approve_stage(signed.workspace, "books", "seen", stages=stages, sign_with=signed.key)


@pytest.mark.parametrize(
    "change", [FORGED["no signature"], lambda event: {**event, "shown": {**event["shown"], "x": "y"}}]
)
def test_an_approval_of_a_stage_that_was_written_by_hand_counts_as_none_and_can_be_given_again(gated, change):
    signed, stages = gated
    approve_stage(signed.workspace, "books", "seen", stages=stages, sign_with=signed.key)
    rewrite(signed, lambda lines: [*lines[:-1], change(lines[-1])])
    assert "the approval of seen by tester" in faults(signed.workspace)[0]["message"]
    assert verdict(signed, stages) == "waiting"
    approve_stage(signed.workspace, "books", "seen", stages=stages, sign_with=signed.key)
    assert verdict(signed, stages) == "up-to-date"


def verdict(space, stages) -> str:
    return next(step.verdict for step in plan_servers(space.workspace, stages=stages) if step.stage == "seen")


def test_a_signature_says_yes_once(signed):
    signed.decide("approve", sign_with=signed.key)
    signed.decide("reject", reason="it leaks", sign_with=signed.key)
    rewrite(signed, lambda lines: [*lines, {**lines[-2], "id": new_id(lines[-1]["id"])}])
    with pytest.raises(RefusedError, match="the signature of another event"):
        signed.promote()
