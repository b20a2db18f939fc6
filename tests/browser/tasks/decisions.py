"""Tasks about decisions on candidates and channels. Each ends with a check on the command line."""

from __future__ import annotations

from tests.browser.demo_workspace import run
from tests.browser.tasks.person import Person, Setting
from tests.dates import NEXT_MONTH

_DONE = "Done: "
_STAGE = """
[[pipeline.stages]]
name = "read"
kind = "approval"
needs = []
shows = ["file:NOTES.md"]
message = "Are the notes correct?"
"""


def look_at_the_candidate(person: Person) -> None:
    """Open the decision page with the evidence from the inbox."""
    person.follow("bookshop", "bookshop", "production")
    person.sees("bookshop 0.2.0")
    person.sees("offset")  # the new argument
    for heading in ("Tools", "Findings", "Tests and figures", "Who asks"):
        person.sees(heading)


def confirm(person: Person, button: str) -> None:
    """Check the confirmation page, and press its button."""
    person.sees("What will happen")
    person.press(button)
    person.sees(_DONE)


def approve(at: Setting) -> None:
    ada = at.person("Ada")
    ada.log_in()
    look_at_the_candidate(ada)
    ada.fill("Reason", "the new argument is optional")
    ada.press("Approve")
    confirm(ada, "Approve bookshop")
    last = at.shop.history("bookshop")[-1]
    assert (last["event"], last["actor"], last["reason"]) == ("approved", "Ada", "the new argument is optional")


def reject(at: Setting) -> None:
    ada = at.person("Ada")
    ada.log_in()
    look_at_the_candidate(ada)
    ada.fill("Reason", "prices are wrong")
    ada.press("Reject")
    confirm(ada, "Reject bookshop")
    last = at.shop.history("bookshop")[-1]
    assert (last["event"], last["actor"], last["reason"]) == ("rejected", "Ada", "prices are wrong")


def promote(at: Setting) -> None:
    run(at.shop.root, "pipeline", "approve", "bookshop", "--channel", "production", "--reason", "fine")
    ada = at.person("Ada")
    ada.log_in()
    ada.follow("Promote bookshop")
    confirm(ada, "Promote bookshop")
    assert at.shop.state("bookshop")["channels"]["production"]["version"] == "0.2.0"
    assert at.shop.decisions("bookshop")[-1] == ("promoted", "Ada")


def _action(person: Person, server: str, action: str) -> None:
    """Open the form of a server's action from the front page."""
    person.log_in()
    person.follow("Board")
    person.follow(server)
    person.follow(action)


def hold(at: Setting) -> None:
    ada = at.person("Ada")
    _action(ada, "bookshop", "Hold")
    ada.choose("Channel", "staging")
    ada.fill("Reason", "audit")
    ada.press("Check")
    confirm(ada, "Hold bookshop")
    held = at.shop.state("bookshop")["holds"]["staging"]
    assert (held["actor"], held["reason"]) == ("Ada", "audit")


def roll_back(at: Setting) -> None:
    ada = at.person("Ada")
    _action(ada, "bookshop", "Roll back")
    ada.choose("Channel", "staging")
    ada.fill("Reason", "orders fail")
    ada.press("Check")
    confirm(ada, "Roll back bookshop")
    state = at.shop.state("bookshop")
    assert state["channels"]["staging"]["version"] == "0.1.0"
    assert state["holds"]["staging"]["actor"] == "Ada"


def waive(at: Setting) -> None:
    ada = at.person("Ada")
    _action(ada, "bookshop", "Waive")
    ada.choose("Rule", "descriptions.arguments")
    ada.fill("Until", NEXT_MONTH)
    ada.fill("Reason", "texts come next week")
    ada.press("Check")
    confirm(ada, "Waive bookshop")
    assert at.shop.decisions("bookshop")[-1] == ("waived", "Ada")


def bulk_approve(at: Setting) -> None:
    """Mark three candidates. One is rejected by another person before the confirmation, so it must be asked again."""
    ada = at.person("Ada")
    ada.log_in()
    for server in ("bookshop", "drafts", "notes"):
        ada.tick(f"Mark {server} for production")
    ada.fill("Reason", "read them all")
    ada.press("Approve marked")
    ada.sees("Approve 3 candidates")
    run(at.shop.root, "pipeline", "reject", "drafts", "--channel", "production", "--reason", "not yet")
    ada.press("Approve 3 candidates")
    ada.sees("drafts: nothing was done, this has changed since you looked")
    ada.sees("not yet")
    assert at.shop.decisions("bookshop")[-1] == ("approved", "Ada")
    assert at.shop.decisions("notes")[-1] == ("approved", "Ada")
    assert at.shop.decisions("drafts") == [("rejected", "Grace")]
    ada.press("Approve 1 candidate")
    ada.sees(_DONE)
    assert at.shop.decisions("drafts")[-1] == ("approved", "Ada")


def two_browsers(at: Setting) -> None:
    """Submit Ada's open form after Grace rejected: it must approve nothing, and show the reason."""
    ada, grace = at.person("Ada"), at.person("Grace")
    ada.log_in()
    look_at_the_candidate(ada)
    ada.press("Approve")
    ada.sees("What will happen")
    grace.log_in()
    look_at_the_candidate(grace)
    grace.fill("Reason", "prices are wrong")
    grace.press("Reject")
    confirm(grace, "Reject bookshop")
    ada.press("Approve bookshop")
    ada.sees("Nothing was done: this has changed since you looked")
    ada.sees("rejected by Grace: prices are wrong")
    assert at.shop.decisions("bookshop")[-1] == ("rejected", "Grace")


def lift_refused(at: Setting) -> None:
    """Read who holds a channel and why, and be refused without the permission of an operator."""
    config = at.shop.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace("approvals = 1\n", 'approvals = 1\noperators = ["Grace"]\n', 1))
    run(at.shop.root, "pipeline", "hold", "bookshop", "--channel", "production", "--reason", "audit of the year")
    ada = at.person("Ada")
    ada.log_in()
    ada.sees("production is held by Grace: audit of the year")
    ada.follow("Lift the hold bookshop")
    ada.sees("Ada has no permission to lift the hold of production")
    ada.sees("ask an operator: Grace")
    assert at.shop.decisions("bookshop")[-1] == ("held", "Grace")


def approve_stage(at: Setting) -> None:
    """Approve the output of a stage after a look at its question and content."""
    config = at.shop.root / "mcpfactory.toml"
    config.write_text(config.read_text() + _STAGE)
    (at.shop.root / "servers/torn/NOTES.md").write_text("The server keeps notes.\n")
    ada = at.person("Ada")
    ada.log_in()
    ada.follow("Approve torn")
    ada.sees("Are the notes correct?")
    ada.sees("The server keeps notes.")
    confirm(ada, "Approve torn")
    last = at.shop.history("torn")[-1]
    assert (last["event"], last["actor"], last["stage"]) == ("approved", "Ada", "read")
