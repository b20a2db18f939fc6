"""Channels and their policies: what a candidate needs, who may say so, and that automation keeps away from what is held."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcpfactory_pipeline import decision
from mcpfactory_pipeline.errors import ConfigError, NotFoundError, PromotionError
from mcpfactory_pipeline.gates import GATES, closed
from mcpfactory_pipeline.hashing import hash_files, source_files
from mcpfactory_pipeline.policy import DEFAULT, Channel, read_channels
from mcpfactory_pipeline.promote import promote, promote_due, rollback
from mcpfactory_pipeline.run import plan_servers, run_pipeline
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state import Candidate
from mcpfactory_pipeline.store import Store, verify
from tests.pipeline.cheap import STAGES, add_server
from tests.pipeline.conftest import configured
from tests.pipeline.test_promote import offered


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **time: int) -> None:
        self.at += timedelta(**time)


class Space:
    """A workspace with one server that went to staging, and what people do to it."""

    def __init__(self, workspace, run) -> None:
        self.workspace, self.run, self.clock = workspace, run, Clock()
        self.folder = add_server(workspace.root, "books")
        run("books")

    @property
    def state(self):
        return Store(self.workspace).state("books")

    def configure(self, text: str) -> None:
        self.workspace = configured(self.workspace, '[[pipeline.channels]]\nname = "staging"\n' + text)

    def next(self, source: str) -> str:
        """Another candidate in staging; gives its id."""
        (self.folder / "source.txt").write_text(source)
        self.run("books")
        return self.state.candidate

    def promote(self, channel: str = "production", **options):
        return promote(self.workspace, "books", channel, stages=STAGES, clock=self.clock, **options)

    def rollback(self, channel: str = "production", **options):
        return rollback(
            self.workspace, "books", channel, stages=STAGES, clock=self.clock, **{"reason": "it is bad", **options}
        )

    def decide(self, what: str, *arguments, **options):
        if what in {"retire", "revive"}:
            return getattr(decision, what)(self.workspace, "books", *arguments, clock=self.clock, **options)
        return getattr(decision, what)(
            self.workspace, "books", *(arguments or ("production",)), stages=STAGES, clock=self.clock, **options
        )

    def offered(self, channel: str) -> list[bytes]:
        return offered(self.workspace, channel)


@pytest.fixture
def books(workspace, run) -> Space:
    return Space(workspace, run)


@pytest.fixture
def act(monkeypatch):
    """Who acts from now on."""
    return lambda name: monkeypatch.setenv("MCPFACTORY_ACTOR", name)


def refused(match: str):
    return pytest.raises(PromotionError, match=match)


# --- approvals ---


def test_verified_in_staging_is_not_approved_for_production(books):
    with refused("may not be promoted to production: 1 of 1 approval missing") as caught:
        books.promote()
    assert caught.value.hint == (
        f"mcpfactory pipeline approve books --to production --candidate {books.state.candidate}"
    )
    assert not (books.workspace.pipeline / "channels" / "production").exists()
    books.decide("approve", reason="looked at it")
    assert "production" not in books.state.channels, "an approval moves nothing"
    books.promote()
    assert books.offered("production") == [b"one"]
    said, moved = Store(books.workspace).history("books")[-2:]
    assert (said["event"], said["actor"], said["reason"]) == ("approved", "tester", "looked at it")
    assert moved["event"] == "promoted"
    assert verify(books.workspace) == []


def test_an_approval_is_for_these_bytes_and_no_others(books):
    books.decide("approve")
    books.next("two")
    with refused("1 of 1 approval missing"):
        books.promote()


def test_so_many_different_people_must_approve_as_the_policy_says(books, act):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 2\n')
    books.decide("approve")
    with refused("tester has approved candidate .* already"):
        books.decide("approve")
    with refused("1 of 2 approvals missing"):
        books.promote()
    act("ada")
    books.decide("approve")
    books.promote()
    assert books.offered("production") == [b"one"]


def test_only_those_whom_the_policy_names_may_approve_and_reject(books, act):
    table = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\napprovers = ["ada"]\n'
    books.configure(table)
    for what, options in (("approve", {}), ("reject", {"reason": "no"})):
        with refused("tester may not approve for production") as caught:
            books.decide(what, **options)
        assert "approvers: ada" in caught.value.hint
    act("ada")
    books.decide("approve")
    act("tester")
    books.promote()


def test_an_approval_of_somebody_who_may_no_longer_approve_does_not_count(books):
    books.decide("approve")
    table = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\napprovals = 1\napprovers = ["ada"]\n'
    books.configure(table)
    with refused("1 of 1 approval missing"):
        books.promote()


def test_a_rejection_takes_the_approvals_away_and_a_later_approval_lifts_it(books):
    books.decide("approve")
    books.decide("reject", reason="the README lies")
    with refused("rejected by tester: the README lies; 1 of 1 approval missing"):
        books.promote()
    books.decide("approve", reason="corrected")
    books.promote()


def test_what_is_in_a_channel_is_rolled_back_not_rejected(books):
    books.decide("approve")
    books.promote()
    with refused("is in production already") as caught:
        books.decide("reject", reason="no")
    assert "mcpfactory pipeline rollback books --channel production" in caught.value.hint


def test_what_did_not_pass_or_never_was_in_staging_cannot_be_approved(books):
    (books.folder / "tests" / "outcome.txt").write_text("failed")
    books.next("two")
    with refused("has nothing to approve yet: test failed"):
        books.decide("approve", candidate=books.state.candidate)
    (books.folder / "tests" / "outcome.txt").write_text("passed")
    (books.folder / "source.txt").write_text("three")
    books.run("books", until="test")
    with refused("was never in staging"):
        books.decide("approve", candidate=books.state.candidate)
    with refused("it was never in staging"):
        books.promote(candidate=books.state.candidate)


def test_a_channel_that_asks_for_no_approval_takes_none(books):
    with refused("channel staging asks for no approval"):
        books.decide("approve", "staging")


# --- soak and gates ---

SOAK = '[[pipeline.channels]]\nname = "production"\nfrom = "staging"\nsoak = "24h"\n'


def shipped_at(books: Space) -> datetime:
    event = next(e for e in reversed(Store(books.workspace).history("books")) if e.get("channel") == "staging")
    return datetime.fromisoformat(event["at"])


def test_a_candidate_must_have_been_in_staging_for_the_time_that_the_policy_says(books):
    books.configure(SOAK)
    books.clock.at = shipped_at(books) + timedelta(hours=23, minutes=30)
    with refused("30 min of 1 d in staging left"):
        books.promote()
    books.clock.pass_(minutes=30)
    books.promote()
    assert books.offered("production") == [b"one"]


def test_time_in_which_staging_offered_something_else_does_not_count(books):
    books.configure(SOAK)
    first, start = books.state.candidate, shipped_at(books)
    books.next("two")
    books.clock.at = start + timedelta(days=30)
    with refused("in staging left"):
        books.promote(candidate=first)
    books.promote()
    assert books.offered("production") == [b"two"]


def test_a_clock_that_was_set_back_makes_no_time_pass(books):
    books.configure(SOAK)
    books.clock.at = shipped_at(books) - timedelta(days=300)
    with refused("1 d of 1 d in staging left"):
        books.promote()


def candidate(**summaries) -> Candidate:
    checks = {stage: {"outcome": "passed", "summary": summary} for stage, summary in summaries.items()}
    return Candidate("1.0", 1, {}, checks=checks, facts={"document": True, "tokens": 900, "coverage": 79})


GOOD = candidate(validate={"score": 91, "critical": 0}, test={"passed": 12})
LIMITS = {
    "min_score": (91, 91.5, "score 91, at least 91.5 wanted"),
    "max_critical": (0, -1, "0 findings of severity 5"),
    "min_tests": (12, 13, "12 tests passed, at least 13 wanted"),
    "token_budget": (900, 899, "tools take 900 tokens, at most 899 allowed"),
    "min_coverage": (79, 80, "79 % of the operations are tools, at least 80 % wanted"),
}


@pytest.mark.parametrize("name", GATES)
def test_a_gate_opens_at_its_limit_and_is_closed_beyond_it_and_where_nothing_is_known(name):
    within, beyond, words = LIMITS[name]
    assert closed({name: within}, GOOD) == {}
    assert words in closed({name: beyond}, GOOD)[name]
    assert "cannot be checked" in closed({name: within}, Candidate("1.0", 1, {}))[name]


def test_a_server_without_an_api_document_has_nothing_to_cover():
    assert closed({"min_coverage": 100}, replace(GOOD, facts={"document": False})) == {}


def test_a_closed_gate_stops_a_promotion_and_names_its_remedy(books):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\ngates = { min_tests = 5 }\n')
    with refused("min_tests 5 cannot be checked") as caught:
        books.promote()
    assert caught.value.hint == "add tests to servers/books/tests/"


def test_a_closed_gate_of_the_first_channel_blocks_the_run_and_says_so(books):
    gated = [
        replace(stage, channel=Channel("staging", gates={"min_score": 90})) if stage.channel else stage
        for stage in STAGES
    ]
    (books.folder / "source.txt").write_text("two")
    outcome = run_pipeline(books.workspace, stages=gated)
    assert (outcome.servers, outcome.failed) == ({"books": "blocked"}, True)
    (step,) = [step for step in plan_servers(books.workspace, stages=gated) if step.stage == "staging"]
    assert (step.verdict, step.reasons) == ("blocked", ("min_score 90 cannot be checked: the candidate does not say",))
    assert books.offered("staging") == [b"one"]


# --- rollback, hold, release ---


def two_in_production(books: Space) -> tuple[str, str]:
    first = books.state.candidate
    books.decide("approve")
    books.promote()
    second = books.next("two")
    books.decide("approve")
    books.promote()
    return first, second


def test_a_rollback_brings_the_older_bytes_back_and_holds_the_channel(books):
    first, second = two_in_production(books)
    assert books.rollback()["candidate"] == first
    assert books.offered("production") == [b"one"]
    assert books.state.holds["production"] == {"actor": "tester", "reason": "it is bad"}
    with refused("production is held by tester: it is bad") as caught:
        books.promote()
    assert caught.value.hint == "mcpfactory pipeline release books --channel production"
    books.decide("release")
    books.promote(candidate=second)
    assert books.offered("production") == [b"two"]


def test_a_rollback_of_staging_is_not_undone_by_the_next_run_until_the_hold_is_released(books):
    books.next("two")
    books.rollback("staging")
    assert books.offered("staging") == [b"one"]
    for source in ("three", "four"):
        (books.folder / "source.txt").write_text(source)
        outcome = books.run("books")
        assert (outcome.servers, outcome.failed) == ({"books": "passed"}, False), "a hold is no failure"
        assert books.offered("staging") == [b"one"]
    assert books.run("books", force=True).servers == {"books": "passed"}
    assert books.offered("staging") == [b"one"], "not even by force"
    (step,) = [step for step in plan_servers(books.workspace, stages=STAGES) if step.stage == "staging"]
    assert (step.verdict, step.reasons) == ("held", ("held by tester: it is bad",))
    books.decide("release", "staging")
    books.run("books")
    assert books.offered("staging") == [b"four"]


def test_when_the_hold_of_a_rollback_is_released_the_run_brings_the_newest_back(books):
    books.next("two")
    books.rollback("staging")
    books.decide("release", "staging")
    assert books.run("books").ran == 1
    assert books.offered("staging") == [b"two"]


def test_a_rollback_needs_something_that_was_there_before(books):
    with refused("production offers nothing of books"):
        books.rollback()
    with refused("staging offered no older candidate of books") as caught:
        books.rollback("staging")
    assert "mcpfactory pipeline retire books --channel staging" in caught.value.hint
    first, second = two_in_production(books)
    with refused("is not one that production offered before"):
        books.rollback(candidate=second)
    books.rollback()
    with refused("production offered no older candidate"):
        books.rollback()
    assert books.rollback(candidate=second)["candidate"] == second
    assert first != second


def test_a_rollback_to_bytes_that_are_gone_or_changed_is_refused_and_changes_nothing(books):
    first, _ = two_in_production(books)
    wheel = books.workspace.artifacts / "books" / first / "books-1.0-py3-none-any.whl"
    for spoil, words in (
        (lambda: wheel.write_bytes(b"evil"), "is not what was checked"),
        (wheel.unlink, "not on this machine"),
    ):
        spoil()
        with refused(words) as caught:
            books.rollback()
        assert "mcpfactory pipeline restore books" in caught.value.hint
        assert books.offered("production") == [b"two"]
        assert books.state.holds == {}


def test_holding_twice_and_releasing_what_is_not_held_are_refused(books):
    books.decide("hold", reason="audit")
    with refused("production of books is held by tester: audit"):
        books.decide("hold", reason="again")
    with refused("staging of books is not held"):
        books.decide("release", "staging")
    books.decide("release")
    assert books.state.holds == {}


def test_a_hold_that_is_set_while_staging_runs_is_seen_before_anything_moves(books, drive):
    from filelock import FileLock

    (books.folder / "source.txt").write_text("two")
    (books.workspace.root / "held.txt").write_text("")
    with FileLock(books.workspace.root / "ship.lock"):
        process = drive("run", "books")
        for line in process.stdout:
            if '"step.started"' in line and '"staging"' in line:
                break
        books.decide("hold", "staging", reason="stop")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, ""), out
    assert books.offered("staging") == [b"one"]
    assert books.state.stages["staging"].outcome == "inconclusive"
    assert "held by tester: stop" in books.state.stages["staging"].message
    assert verify(books.workspace) == []


# --- retirement ---


def test_a_retired_server_is_in_no_channel_and_no_run_touches_it(books):
    books.decide("retire", reason="replaced by library")
    assert books.state.channels == {}
    assert not (books.workspace.pipeline / "channels/staging/simple/books").exists()
    (books.folder / "source.txt").write_text("two")
    outcome = books.run("books")
    assert (outcome.ran, outcome.failed) == (0, False)
    for call in (books.promote, lambda: books.decide("approve"), lambda: books.decide("retire", reason="again")):
        with refused("retired by tester: replaced by library") as caught:
            call()
        assert caught.value.hint == "mcpfactory pipeline revive books"
    books.decide("revive")
    books.run("books")
    assert books.offered("staging") == [b"two"]
    with refused("books is not retired"):
        books.decide("revive")


def test_a_server_can_leave_one_channel_which_is_then_held(books):
    two_in_production(books)
    books.decide("retire", "production", reason="leaks")
    assert (list(books.state.channels), list(books.state.holds)) == (["staging"], ["production"])
    assert not (books.workspace.pipeline / "channels/production/simple/books").exists()
    assert books.offered("staging") == [b"two"]
    with refused("production offers nothing"):
        books.decide("retire", "production", reason="again")


# --- dry runs, timers, settings ---


def test_a_dry_run_of_anything_checks_everything_and_writes_nothing(books):
    two_in_production(books)
    books.next("three")

    def everything() -> str:
        return hash_files(books.workspace.root, source_files(books.workspace.root))

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
        books.decide("release", dry_run=True)
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
    assert promote_due(books.workspace, "production", **due) == []
    books.clock.pass_(days=2)
    (rehearsed,) = promote_due(books.workspace, "production", dry_run=True, **due)
    assert (rehearsed["server"], rehearsed["dry_run"]) == ("books", True)
    (moved,) = promote_due(books.workspace, "production", **due)
    assert (moved["server"], moved["candidate"]) == ("books", books.state.candidate)
    assert promote_due(books.workspace, "production", **due) == []


def test_a_timer_names_what_it_cannot_promote_because_something_is_broken(books):
    books.configure('[[pipeline.channels]]\nname = "production"\nfrom = "staging"\n')
    (books.workspace.artifacts / "books" / books.state.candidate / "books-1.0-py3-none-any.whl").unlink()
    (entry,) = promote_due(books.workspace, "production", stages=STAGES)
    assert "not on this machine" in entry["error"]
    assert entry["hint"]


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
    assert dev == Channel("dev", gates={"min_score": 80})
    gates = {"min_score": 95, "token_budget": 8000, "min_coverage": 80}
    assert live == Channel("live", "dev", gates, 172800.0, 2, ("ada", "ben"))
    assert workspace_stages(space)[-1].name == "dev", "the first channel is filled by the stage of its name"


FIRST = '[[pipeline.channels]]\nname = "a"\n'
SECOND = FIRST + '[[pipeline.channels]]\nname = "b"\nfrom = "a"\n'
BAD = {
    "channels = 3": "not a list of tables",
    "channels = []": "not a list of tables",
    '[[pipeline.channels]]\nname = "../x"\n': "channel name '../x'",
    FIRST + FIRST: "two channels a",
    FIRST + '[[pipeline.channels]]\nname = "b"\n': "from is None",
    FIRST + '[[pipeline.channels]]\nname = "b"\nfrom = "c"\n': "from is 'c'",
    FIRST + "approvals = 1\n": "has gates only",
    FIRST + 'soak = "1h"\n': "has gates only",
    SECOND + "approvals = -1\n": "approvals is -1",
    SECOND + "approvals = true\n": "approvals is True",
    SECOND + 'approvals = 2\napprovers = ["ada", "ada"]\n': "wants 2 approvals and names 1",
    SECOND + 'approvers = "ada"\n': "approvers is not a list",
    SECOND + "soak = 24\n": "soak is 24",
    SECOND + 'soak = "1 week"\n': "soak is '1 week'",
    SECOND + "gates = { min_scores = 3 }\n": "no gate 'min_scores'",
    SECOND + 'gates = { min_score = "A" }\n': "gate min_score is 'A'",
    SECOND + "gates = 3\n": "gates is not a table",
    SECOND + "colour = 3\n": "unknown field 'colour'",
}


@pytest.mark.parametrize("text", BAD)
def test_a_policy_that_cannot_be_used_is_refused_by_what_is_wrong_with_it(workspace, text):
    with pytest.raises(ConfigError, match=BAD[text].replace("[", r"\[")) as caught:
        read_channels(configured(workspace, text))
    assert caught.value.hint


def test_unknown_servers_and_channels_are_not_found(books):
    with pytest.raises(NotFoundError):
        decision.approve(books.workspace, "nope", "production")
    with pytest.raises(NotFoundError, match="no channel 'live'"):
        books.decide("hold", "live", reason="x")
    with pytest.raises(NotFoundError, match="no channel 'live'"):
        books.decide("retire", "live", reason="x")
