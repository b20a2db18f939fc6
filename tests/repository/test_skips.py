"""Only `tests/skip_conditions.py` skips a test; `tests/suite` shows that any other skip fails the run."""

from __future__ import annotations

import ast

SKIPPING = {"skip", "skipif", "importorskip", "skipTest", "SkipTest"}
MACHINE = "tests/skip_conditions.py"


def test_only_one_module_knows_what_a_machine_may_lack(tests):
    found = [
        f"{module.path}:{node.lineno}"
        for module in tests
        for node in module.nodes_if_any(f".{name}" for name in SKIPPING)
        if isinstance(node, ast.Attribute) and node.attr in SKIPPING and module.path != MACHINE
    ]
    assert found == [], f"hint: use needs() or skip_without() of {MACHINE}, or parametrise over what applies"
