"""The tasks of people: the page of the documentation has them all, and they use what is seen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.browser.tasks import around, decide, work
from tests.browser.tasks.table import TASKS

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
