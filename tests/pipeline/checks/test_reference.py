from __future__ import annotations

import hashlib

from mcpfactory_pipeline.checks.report import RULES_VERSION, VERSIONS
from mcpfactory_pipeline.checks.rules import RULES

# What the rules weighed and where they applied when this version was given out. Do not correct a digest: give a new version.
WEIGHED = {
    2: "79df378dce3e9e61",
    3: "6e08b8432b69287b",
    4: "3e985d780c023ca1",
    5: "21605008dfa64404",
    6: "e4c194e5d3a7f59f",
    7: "ce5db2e56f6821a5",
    8: "ce443d481d07dfa7",
    9: "ab386e42289b58a9",
    10: "5c9ef247b5e81a2a",
    11: "27af2754285dc377",
    12: "27af2754285dc377",
    13: "27af2754285dc377",
    14: "9fc28e5b5262e17f",
}


def test_whoever_changes_what_a_rule_weighs_gives_the_table_a_new_version() -> None:
    rows = "\n".join(f"{r.id} {r.severity} {r.gate} {r.since} {r.until}" for r in RULES)
    digest = hashlib.sha256(rows.encode()).hexdigest()[:16]
    assert WEIGHED.get(RULES_VERSION) == digest, (
        f"say what changed in VERSIONS of pipeline/src/mcpfactory_pipeline/checks/report.py, and write {digest!r} for it into WEIGHED here"
    )
    assert set(VERSIONS) == set(range(1, RULES_VERSION + 1))
