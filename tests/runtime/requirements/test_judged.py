"""Every requirement of every revision is judged by a rule of `validate`, or says why it is not."""

from __future__ import annotations

from fnmatch import fnmatchcase

from mcpfactory_pipeline.checks import RULES
from tests.runtime.requirements.judged import OPEN, RULES_OF, WHY, coverage, to_text
from tests.runtime.requirements.table import TABLE

ROWS = coverage()
LONGEST = 0  # requirements that may be open: could be judged, and are not yet.


def test_no_requirement_is_without_a_rule_and_without_a_reason() -> None:
    lost = [one.row.id for one in ROWS if not one.rules and not one.why]
    assert lost == [], "write the rule that judges it, or why none can, into tests/runtime/requirements/judged.py"


def test_the_rules_that_judge_exist() -> None:
    ids = {rule.id for rule in RULES}
    assert [(name, rule) for name, rules in RULES_OF.items() for rule in rules.split() if rule not in ids] == []


def test_the_table_names_only_requirements_that_exist() -> None:
    assert [name for name in RULES_OF if name not in TABLE] == []
    patterns = [*WHY, *OPEN]
    assert [one for one in patterns if not any(fnmatchcase(name, one) for name in TABLE)] == []


def test_what_is_judged_has_no_excuse_beside_it() -> None:
    plain = [name for name in (*WHY, *OPEN) if "*" not in name]
    assert [name for name in plain if name in RULES_OF] == []
    assert [name for name in OPEN if name in WHY] == []


def test_the_list_of_what_is_open_does_not_grow() -> None:
    still = [one.row.id for one in ROWS if one.open]
    assert len(still) <= LONGEST, still


def test_the_command_prints_every_level_and_every_reason() -> None:
    text = to_text(ROWS)
    assert f"all{len(ROWS):11}" in text
    assert all(one.why in text for one in ROWS if one.why)


# Rules that judge servers of revisions without the sentence as well, each for a reason that is older than it.
EARLIER = {
    "legacy.batch": "it is asked in sessions of the one revision that has arrays",
    "legacy.batch-silence": "it is asked in sessions of the one revision that has arrays",
    "legacy.batch-empty": "it is asked in sessions of the one revision that has arrays",
    "legacy.batch-initialize": "it is asked where arrays were answered",
    "lists.stable": "models read the list from a cache",
    "schemas.names-valid": "model APIs refuse other names",
    "schemas.refs-resolve": "JSON Schema has said so all along",
    "schemas.refs-local": "clients have never fetched them",
    "security.files": "earlier revisions say that URIs and inputs must be validated",
}


def test_no_rule_judges_servers_of_revisions_that_do_not_have_its_sentence() -> None:
    sentences = {rule.id: [one.row.since.name for one in ROWS if rule.id in one.rules] for rule in RULES}
    early = {rule.id for rule in RULES if sentences[rule.id] and rule.since < min(sentences[rule.id])}
    first = min(one.row.since.name for one in ROWS)
    assert {name for name in early if min(sentences[name]) > first} == set(EARLIER)
