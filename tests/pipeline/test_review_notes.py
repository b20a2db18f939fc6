"""Notes for the reviewers of a pull request: a function of two trees, and what the command prints."""

from __future__ import annotations

from mcpfactory_pipeline.delivery.ci.review_notes import notes_as_markdown, review_notes
from tests.subtest_table import parametrize_subtests

STRICT = """[workspace]
[[pipeline.channels]]
name = "staging"
gates = {min_score = 90, max_critical = 0}
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 2
soak = "24h"
signed = true
[[pipeline.stages]]
name = "licenses"
command = ["true"]
"""
WAIVER = '[[waivers]]\nrule = "security.x"\nperson = "Ada"\nreason = "later"\nuntil = 2031-01-31\n'
PROJECT = '[project]\nname = "x"\ndependencies = ["httpx"]\n'


def notes(file: str, before: str | None, after: str | None) -> list[str]:
    trees = [{} if text is None else {file: text.encode()} for text in (before, after)]
    return [one.message for one in review_notes(*trees)]


@parametrize_subtests(
    "old, new, message",
    [
        ("min_score = 90", "min_score = 80", "pipeline.channels.staging.gates.min_score: 90 → 80"),
        ("min_score = 90", "min_score = 95", None),
        ("min_score = 90, ", "", "pipeline.channels.staging.gates.min_score: removed"),
        ("max_critical = 0", "max_critical = 3", "pipeline.channels.staging.gates.max_critical: 0 → 3"),
        ("max_critical = 0", "max_critical = 0, min_tests = 1", None),
        ("max_critical = 0", "max_critical = 0, contract = false", "pipeline.channels.staging.gates.contract: added"),
        ("approvals = 2", "approvals = 1", "pipeline.channels.production.approvals: 2 → 1"),
        ('"24h"', '"1h"', "pipeline.channels.production.soak: 86400.0 → 3600.0"),
        ("signed = true", "signed = false", "pipeline.channels.production.signed: true → false"),
        ('[[pipeline.stages]]\nname = "licenses"\ncommand = ["true"]', "", "pipeline.stages.licenses: removed"),
        ("[workspace]\n", "[workspace]\n[waivers]\nlimit = 99\n", "waivers.limit: 10 → 99"),
        ("[workspace]\n", '[workspace]\n[pipeline]\nisolation = "none"\n', 'pipeline.isolation: "auto" → "none"'),
        ("[workspace]\n", "[workspace\n", "cannot be read before or after; compare by hand"),
    ],
)
def test_a_relaxed_setting_is_noted_and_a_stricter_one_is_not(old, new, message):
    assert old in STRICT
    assert notes("mcpfactory.toml", STRICT, STRICT.replace(old, new)) == ([message] if message else [])


@parametrize_subtests(
    "file, before, after, message",
    [
        ("servers/a/waivers.toml", None, WAIVER, ["security.x (all tools) until 2031-01-31 by Ada: later"]),
        ("servers/a/waivers.toml", WAIVER, None, []),
        (".github/CODEOWNERS", "* @a\n", None, ["removed"]),
        ("CODEOWNERS", "* @a\n", "* @b\n", ["changed"]),
        ("pipeline/allowed_signers", None, "a", ["added"]),
        ("servers/a/tests/test_a.py", "def test_a(): ...\ndef test_b(): ...\n", "def test_b(): ...\n", ["test_a"]),
        ("servers/a/tests/test_a.py", "def test_a(): ...\n", None, ["the file, with 1 test"]),
        ("servers/a/tests/a.yaml", "tests: [{name: one}, {name: two}]", "tests: [{name: two}]", ["one"]),
        ("servers/a/pyproject.toml", PROJECT, PROJECT.replace('"httpx"', '"HTTPX>=1", "evil>1"'), ["evil>1"]),
        ("servers/a/pyproject.toml", PROJECT, PROJECT.replace("httpx", "httpx @ file:///x"), ["httpx @ file:///x"]),
        ("pyproject.toml", "", '[tool.uv]\nindex-url = "x"', ["changed [tool.uv]: sources and indexes of packages"]),
        ("servers/a/src/a.py", "def test_a(): ...", "", []),
    ],
)
def test_what_a_change_removes_or_brings_in_is_noted(file, before, after, message):
    assert notes(file, before, after) == message


def test_a_note_is_one_line_and_no_markup():
    text = WAIVER.replace('"later"', '"""later\n::error::| <b>"""')
    found = review_notes({}, {"servers/a/waivers.toml": text.encode()})
    assert "\n" not in found[0].message
    assert r"\| &lt;b>" in notes_as_markdown(found)
