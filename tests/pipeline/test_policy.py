"""Channels as they are configured, what is due, and rehearsals that change nothing."""

from __future__ import annotations

import pytest

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError
from mcpfactory_pipeline.base.hashing import hash_files, list_source_files
from mcpfactory_pipeline.decisions import decision
from mcpfactory_pipeline.decisions.promote import promote_due
from mcpfactory_pipeline.operations.decisions import Promote
from mcpfactory_pipeline.operations.operation import DeclinedError, OperationContext, OperationError
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.workspace.policy import DEFAULT, ChannelPolicy
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.staged_workspace import SOAK, configured, refused, shipped_at, two_in_production


def test_a_dry_run_of_anything_checks_everything_and_writes_nothing(books):
    two_in_production(books)
    books.next("three")

    def everything() -> str:
        return hash_files(books.workspace.root, list_source_files(books.workspace.root))

    before = everything()
    calls = {
        "approve": lambda: books.decide("approve", dry_run=True),
        "reject": lambda: books.decide("reject", reason="x", dry_run=True),
        "hold": lambda: books.decide("hold", reason="x", dry_run=True),
        "retire": lambda: books.decide("retire", reason="x", dry_run=True),
        "rollback": lambda: books.rollback(dry_run=True),
        "promote": lambda: books.promote("staging", dry_run=True),
    }
    for name, call in calls.items():
        assert call()["dry_run"], name
        assert everything() == before, name
    with refused("1 of 1 approval missing"):
        books.promote(dry_run=True)
    with refused("not held"):
        books.decide("unhold", dry_run=True)
    with refused("not retired"):
        books.decide("revive", dry_run=True)


def test_a_timer_promotes_what_is_due_and_nothing_else(books, workspace, run):
    books.configure(SOAK)
    add_server(workspace.root, "notes")
    add_server(workspace.root, "never", outcome="failed")
    books.run("notes", "never")
    decision.hold(books.workspace, "notes", "production", reason="audit", stages=STAGES)
    due = {"stages": STAGES, "clock": books.clock}
    books.clock.at = shipped_at(books)
    assert all("waits_for" in one for one in promote_due(books.workspace, "production", **due))
    books.clock.pass_(days=2)
    rehearsed, waits = promote_due(books.workspace, "production", dry_run=True, **due)
    assert waits["server"] == "notes"
    assert "audit" in waits["waits_for"]
    assert waits["hint"].startswith("mcpfactory pipeline unhold notes")
    assert (rehearsed["server"], rehearsed["dry_run"]) == ("books", True)
    moved, _ = promote_due(books.workspace, "production", **due)
    assert (moved["server"], moved["candidate"]) == ("books", books.state.candidate)
    assert [one["server"] for one in promote_due(books.workspace, "production", **due)] == ["notes"]


def test_without_settings_there_are_staging_and_production_which_asks_for_an_approval(workspace):
    assert read_channels(workspace) == DEFAULT
    assert [(channel.name, channel.source, channel.approvals) for channel in DEFAULT] == [
        ("staging", None, 0),
        ("production", "staging", 1),
    ]


def test_a_channel_is_read_with_everything_that_it_asks_for(workspace):
    space = configured(
        workspace,
        """
[[pipeline.channels]]
name = "dev"
gates = { min_score = 80 }
[[pipeline.channels]]
name = "live"
from = "dev"
soak = "2d"
approvals = 2
approvers = ["ada", "ben"]
[pipeline.channels.gates]
min_score = 95
token_budget = 8000
min_coverage = 80
""",
    )
    dev, live = read_channels(space)
    assert dev == ChannelPolicy(name="dev", gates={"min_score": 80})
    gates = {"min_score": 95, "token_budget": 8000, "min_coverage": 80}
    assert live == ChannelPolicy(
        name="live", source="dev", gates=gates, soak="2d", approvals=2, approvers=("ada", "ben")
    )
    assert workspace_stages(space)[-1].name == "dev", "the first channel is filled by the stage of its name"


FIRST = '[[pipeline.channels]]\nname = "a"\n'
SECOND = FIRST + '[[pipeline.channels]]\nname = "b"\nfrom = "a"\n'
BAD = {
    "channels = 3": "channels: must be a list of tables",
    "channels = []": "channels: [] is not valid",
    '[[pipeline.channels]]\nname = "../x"\n': 'channels[1].name: "../x" is not valid',
    FIRST + FIRST: "two channels have the name 'a'",
    FIRST + '[[pipeline.channels]]\nname = "b"\n': "from is None",
    FIRST + '[[pipeline.channels]]\nname = "b"\nfrom = "c"\n': "from is 'c'",
    FIRST + "approvals = 1\n": "must not set 'from', 'soak', 'approvals' or 'approvers'",
    FIRST + 'soak = "1h"\n': "must not set 'from', 'soak', 'approvals' or 'approvers'",
    SECOND + "approvals = -1\n": "approvals: -1 is not valid",
    SECOND
    + 'approvals = 2\napprovers = ["ada", "ada"]\n': "requires 2 approvals, but 'approvers' has only 1 approver$",
    SECOND + "soak = 24\n": "soak: 24 is not a valid duration",
    SECOND + 'soak = "1 week"\n': "soak: '1 week' is not a valid duration",
    SECOND + 'gates = { min_score = "A" }\n': "gates.min_score: must be a whole number or a number",
}


@pytest.mark.parametrize("text", BAD)
def test_a_policy_that_cannot_be_used_is_refused_by_what_is_wrong_with_it(workspace, text):
    with pytest.raises(ConfigError, match=BAD[text].replace("[", r"\[")) as caught:
        read_channels(configured(workspace, text))
    assert caught.value.hint


def test_unknown_servers_and_channels_are_not_found(books):
    with pytest.raises(NotFoundError):
        decision.approve(books.workspace, "nope", "production")
    with pytest.raises(NotFoundError, match="unknown channel 'live'"):
        books.decide("hold", "live", reason="x")
    with pytest.raises(NotFoundError, match="unknown channel 'live'"):
        books.decide("retire", "live", reason="x")


@pytest.mark.parametrize(
    ("written", "may"),
    [
        ("true", ("approve", "reject", "promote", "rollback", "hold", "unhold")),
        ("false", ()),
        ('["hold", "approve"]', ("approve", "hold")),
    ],
)
def test_what_a_channel_leaves_to_agents_is_all_nothing_or_a_list(workspace, written, may):
    space = configured(workspace, f'[[pipeline.channels]]\nname = "staging"\nagents = {written}\n')
    assert read_channels(space)[0].agents == may
    assert DEFAULT[0].agents == DEFAULT[1].agents == ()


@pytest.mark.parametrize("written", ['"yes"', '["retire"]', "1", "[1]"])
def test_anything_else_that_is_left_to_agents_is_refused(workspace, written):
    with pytest.raises(ConfigError, match=r"agents.*: ") as error:
        configured(workspace, f'[[pipeline.channels]]\nname = "staging"\nagents = {written}\n')
    assert "approve" in error.value.hint


def test_one_confirmation_promotes_what_the_person_saw(books, workspace, run, set_actor):
    books.configure(SOAK + "approvals = 1\n")
    add_server(workspace.root, "notes")
    books.run("notes")
    books.clock.pass_(days=2)

    def approve(server="notes"):
        decision.approve(books.workspace, server, "production", stages=STAGES, clock=books.clock)

    approve("books")
    approve()
    set_actor("ada")
    asked = []

    def answer(yes, meanwhile=lambda: None):
        def ask(question, tried):
            asked.append((question, [one["server"] for one in tried.promoted]))
            meanwhile()
            return yes

        context = OperationContext(books.workspace, stages=STAGES, clock=books.clock, ask=ask)
        return Promote(due=True, channel="production").run(context)

    with pytest.raises(OperationError, match="confirmation is required"):
        answer(None)
    with pytest.raises(DeclinedError):
        answer(False)
    assert not books.state.offered("production")
    done = answer(True, approve)
    assert asked[-1] == ("Promote 2 candidates to production?", ["books", "notes"])
    assert [one["server"] for one in done.promoted] == ["books"]
    assert [(one["server"], "changed" in one["error"]) for one in done.failed] == [("notes", True)]
    assert [one["server"] for one in answer(True).promoted] == ["notes"]
