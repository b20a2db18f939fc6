"""The tasks of people use what is seen."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.browser.tasks import decisions, navigation, runs_and_logs

# Ways to what people neither see nor hear.
HIDDEN = {"page", "locator", "evaluate", "goto", "request", "route", "add_init_script", "dispatch_event", "set_content"}


def test_tasks_find_things_by_what_is_seen() -> None:
    for module in (navigation, decisions, runs_and_logs):
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert used & HIDDEN == set(), module.__name__
