from __future__ import annotations


def test_no_module_is_over_600_lines(modules, tests):
    over = {module.path: lines for module in (*modules, *tests) if (lines := module.text.count("\n")) > 600}
    assert over == {}


def test_every_lint_ignore_carries_its_reason(modules):
    bare = [
        f"{module.path}:{number}"
        for module in modules
        for number, line in enumerate(module.text.splitlines(), 1)
        for mark in ("# noqa", "# type: ignore")
        if mark in line and " - " not in line.split(mark, 1)[1] and " # " not in line.split(mark, 1)[1]
    ]
    assert bare == []
