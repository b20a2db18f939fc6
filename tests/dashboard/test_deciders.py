"""What somebody may not decide is not offered to them, and the reason is said: by the policy, for whoever a token or the proxy names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import unescape

from mcpfactory_pipeline.dashboard.deciders import channel_deciders, decision_refusal, stage_deciders
from mcpfactory_pipeline.plan.approval import ApprovalPolicy
from mcpfactory_pipeline.plan.policy import ChannelPolicy
from mcpfactory_pipeline.stages import STAGES
from tests.dashboard.conftest import Bench, serving
from tests.dashboard.person import PEOPLE, Browser
from tests.dashboard.test_decision import POLICY, shop

__all__ = ["shop"]

DECIDE = "/servers/bookshop/decide/production/"
SERVER = "/servers/bookshop/"
REASON = "only Grace may decide about production; you are Ada"


@contextmanager
def policy(bench: Bench, **fields: str) -> Iterator[str]:
    """The dashboard of a workspace whose production asks for this."""
    config = bench.root / "mcpfactory.toml"
    lines = "".join(f"{name} = {value}\n" for name, value in fields.items())
    config.write_text(config.read_text().replace(POLICY, POLICY.replace("approvals = 1\n", lines)))
    with serving(bench.root, PEOPLE) as address:
        yield address


def test_who_may_not_approve_has_no_button_for_it_and_reads_why(shop: Bench) -> None:
    with policy(shop, approvals="1", approvers='["Grace"]') as address:
        ada, grace, anybody = Browser(address).login("Ada"), Browser(address).login("Grace"), Browser(address)
        for path in ("/", DECIDE, SERVER):
            page = unescape(ada.get(path).text)
            assert REASON in page, path
            for offer in ("actions/approve/", "actions/reject/", ">Approve <", ">Approve marked"):
                assert offer not in page, (path, offer)
            assert REASON not in anybody.get(path).text
            page = unescape(grace.get(path).text)
            assert "actions/approve/" in page, path
            assert "only Grace" not in page, path
        assert 'name="item"' not in ada.get("/").text, "it cannot be marked for a decision about several"
        assert 'name="item"' in grace.get("/").text
        assert "Log in to decide" in anybody.get(DECIDE).text
        assert "may not approve" in unescape(ada.get("/servers/bookshop/actions/approve/", channel="production").text)
        refused = unescape(ada.get("/servers/bookshop/actions/reject/", channel="production", reason="no").text)
        assert "Ada may not reject for production" in refused
        assert grace.act("bookshop", "approve", channel="production").status == 303
        page = ada.get(DECIDE).text
        assert ">Promote <kbd>" in page, "that is for everybody"
        assert "only Grace may decide about production; you are Ada" in page
        assert ada.act("bookshop", "promote", channel="production").status == 303


def test_what_has_to_be_signed_is_not_offered_where_nobody_can_sign(shop: Bench) -> None:
    with policy(shop, approvals="1", signed="true") as address:
        page = Browser(address).login("Ada").get(DECIDE).text
        assert "decisions about production are signed, which is done in a terminal" in page
        assert 'name="reason"' not in page


def test_a_stage_is_decided_by_those_whom_it_names(library: Bench) -> None:
    config = library.root / "mcpfactory.toml"
    stage = '\n[[pipeline.stages]]\nname = "seen"\nkind = "approval"\nneeds = []\nshows = ["file:NOTES.md"]\napprovers = ["grace"]\n'
    config.write_text(config.read_text() + stage)
    (library.root / "servers/atlas/NOTES.md").write_text("one")
    with serving(library.root, PEOPLE) as address:
        page = unescape(Browser(address).login("Ada").get("/servers/atlas/").text)
        assert "Approve a stage, Reject a stage: only grace may decide about seen; you are Ada" in page
        assert "actions/approve-stage/" not in page
        assert "actions/approve-stage/" in Browser(address).login("Grace").get("/servers/atlas/").text


def test_names_are_compared_as_the_decision_compares_them() -> None:
    channel = channel_deciders(ChannelPolicy("production", "staging", approvals=1, approvers=("Ada",)))
    assert decision_refusal([channel], "approve", "Ada") == ""
    assert decision_refusal([channel], "approve", "ada") == "only Ada may decide about production; you are ada"
    assert decision_refusal([channel], "promote", "ada") == ""
    stage = stage_deciders(replace(STAGES[0], name="seen", approval=ApprovalPolicy(approvers=("Ada",))))
    assert decision_refusal([stage], "reject-stage", "ada") == ""
    assert decision_refusal([stage, channel], "approve", "Ada", "production") == ""
    assert decision_refusal([stage], "approve", "ada") == "", "that is about channels"
    many = channel_deciders(ChannelPolicy("p", "s", approvals=1, approvers=tuple("ABCDEFG")))
    assert "only A, B, C, D or 3 more may" in decision_refusal([many], "approve", "Z")
