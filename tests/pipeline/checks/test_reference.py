from __future__ import annotations

import hashlib

from mcpfactory_pipeline.checks.report import RULES_VERSION
from mcpfactory_pipeline.checks.rules import RULES

# What the rules weigh and where they apply in this version. Who corrects the digest gives a new version with it.
WEIGHED = (21, "b830ceea48bcaa4a")


def test_whoever_changes_what_a_rule_weighs_gives_the_table_a_new_version() -> None:
    rows = "\n".join(sorted(f"{r.id} {r.severity} {r.gate} {r.since} {r.until}" for r in RULES))
    digest = hashlib.sha256(rows.encode()).hexdigest()[:16]
    assert (RULES_VERSION, digest) == WEIGHED, f"raise RULES_VERSION, and write it with {digest!r} into WEIGHED here"
