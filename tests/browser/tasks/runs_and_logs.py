"""Tasks about runs, logs and tools, during and after a run."""

from __future__ import annotations

import json
import re

from tests.browser.tasks.person import Person, Setting
from tests.browser.tasks.workspace import TORN_TEST


def _begin_run(person: Person, server: str) -> None:
    """Run all stages of a server again, from the front page."""
    person.log_in()
    person.follow("Board")
    person.follow(server)
    person.follow("Run")
    person.tick("Also stages that are up to date")
    person.press("Check")
    person.sees("What will happen")
    person.press(f"Run {server}")


def follow_run(at: Setting) -> None:
    """Follow a run to its end without reloading the page."""
    before = len(at.shop.history("notes"))
    ada = at.person("Ada")
    _begin_run(ada, "notes")
    ada.sees("Live: this page follows what happens.")
    loads = ada.loads
    ada.sees("The run has ended.", slow=True)
    assert ada.loads == loads, "the page was loaded again"
    fresh = [event for event in at.shop.history("notes")[before:] if event["event"] == "stage.finished"]
    shown = ada.reads()
    assert {"build", "test", "validate"} <= {event["stage"] for event in fresh}, fresh
    assert all(event["outcome"] == "passed" and event["stage"] in shown for event in fresh), fresh


def failed_log(at: Setting) -> None:
    """Open the failing line of a log from the inbox, without scrolling."""
    person = at.person()
    person.open()
    person.follow("torn", "torn", "failed")
    person.follow("Log of test, where it went wrong")
    assert person.in_view("assert 1 + 1 == 3"), "the line is not on the screen"
    person.look.judge()
    assert at.shop.state("torn")["stages"]["test"]["outcome"] == "failed"


def search_log(at: Setting) -> None:
    """Search a word, and open its line in the log."""
    person = at.person()
    person.open()
    person.follow("torn", "torn", "failed")
    person.follow("Log of test, where it went wrong")
    person.fill("Search the log", "STEP 77 of")
    person.press("Search")
    person.sees("step 77 of the sum")
    person.misses("assert 1 + 1 == 3")
    person.look.judge()
    number = next(word for word in person.region("Lines of the log").split() if word.isdecimal())
    person.follow(number)
    assert person.in_view("step 77 of the sum"), "the line is not on the screen"
    person.sees("step 76 of the sum")


def run_again(at: Setting) -> None:
    """Fix the failed file in an editor, and run again from the inbox."""
    test = at.shop.root / TORN_TEST
    test.write_text(test.read_text().replace("== 3", "== 2"))
    ada = at.person("Ada")
    ada.log_in()
    ada.follow("Run torn")
    ada.sees("What will happen")
    ada.press("Run torn")
    ada.sees("The run has ended.", slow=True)
    assert at.shop.state("torn")["stages"]["test"]["outcome"] == "passed"


def cancel(at: Setting) -> None:
    """Cancel a run: the running stage must be recorded as interrupted."""
    ada = at.person("Ada")
    _begin_run(ada, "bookshop")
    ada.follow("Cancel this run")
    ada.sees("What will happen")
    ada.press("Cancel the run")
    ada.sees(re.compile("the run is stopping|It was cancelled"))  # the first text disappears when the run has ended
    ada.sees("It was cancelled", slow=True)
    ada.sees("interrupted")
    last = at.shop.history("bookshop")[-1]
    assert last["event"] == "stage.interrupted", last
    assert at.shop.state("bookshop").get("running") is None


def try_tool(at: Setting) -> None:
    """Call a tool of the candidate with a form; the server must not change."""
    before = at.shop.history("bookshop")
    ada = at.person("Ada")
    ada.log_in()
    ada.follow("Board")
    ada.follow("bookshop")
    ada.follow("Tools")
    ada.follow("All tools with their schemas")
    ada.follow("Try get_book")
    ada.fill("isbn", "9780306406157")
    ada.press("Call get_book")
    ada.sees("GET /books/9780306406157")
    answer = json.loads(ada.region("Result"))
    assert "title" in json.dumps(answer), answer
    assert at.shop.history("bookshop") == before
