"""The tasks of people: the page of the documentation has them all, they use what is seen, and one that fails says so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mcpfactory_pipeline.init import init_workspace
from tests.browser.tasks import around, decide, work
from tests.browser.tasks.__main__ import perform
from tests.browser.tasks.person import Setting
from tests.browser.tasks.table import TASKS, DashboardTask
from tests.browser.tasks.workspace import Shop

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/dashboard.md"
# Ways to what people neither see nor hear.
HIDDEN = {"page", "locator", "evaluate", "goto", "request", "route", "add_init_script", "dispatch_event", "set_content"}


def test_the_documentation_has_every_task_in_its_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows[-len(TASKS) :] == [(name, task.about) for name, task in TASKS.items()]
    assert len(TASKS) == 27


def test_tasks_find_things_by_what_is_seen() -> None:
    for module in (around, decide, work):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert used & HIDDEN == set(), module.__name__


@pytest.mark.browser
def test_a_task_that_fails_says_why_with_its_steps_and_a_picture(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    from tests.browser.tools import chromium

    init_workspace(tmp_path / "kept", git=False)

    def looks(at: Setting) -> None:
        at.person().open()

    def wishes(at: Setting) -> None:
        person = at.person()
        person.open()
        assert "a thing that is not there" in person.reads(), "it is not there"

    def complains(at: Setting) -> None:
        person = at.person()
        person.open()
        person.open(f"{at.url}/board/")
        person.page.evaluate("console.error('broken')")

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        steps: list[str] = []
        results = [
            perform(act.__name__, DashboardTask("looks", act), Shop(tmp_path), browser, steps.append)
            for act in (looks, wishes, complains)
        ]
        browser.close()
    assert [one.problem for one in results][:2] == ["", "AssertionError: it is not there"]
    assert "broken" in results[2].problem
    assert "ok" in results[0].line
    assert "FAILED" in results[1].line
    assert results[1].steps == ("opens the front page",)
    assert [Path(file).is_file() for file in results[1].pictures] == [True]
    assert steps.count("opens the front page") == 3
