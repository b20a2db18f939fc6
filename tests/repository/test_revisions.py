from __future__ import annotations

import re

from mcpfactory_runtime.revisions import REVISIONS

LITERAL = re.compile("|".join(map(re.escape, REVISIONS)))  # other dates are sample values, no revisions
ALLOWED = ("factory/runtime/src/mcpfactory_runtime/revisions/",)


def test_only_the_revisions_folder_names_a_protocol_revision(modules):
    found = [
        f"{module.path}:{number}: {line.strip()}"
        for module in modules
        if not module.path.startswith(ALLOWED)
        for number, line in enumerate(module.text.splitlines(), 1)
        if LITERAL.search(line)
    ]
    assert found == []
