"""Checks that prove nothing: tests, waivers, and answers that only look like answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from benchmarks.trials.gate.attempt import Act, Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace
from mcpfactory_pipeline.checks.rules import RULES

_RULE_IDS: Final = [rule.id for rule in RULES]
_BROKEN: Final = "def test_broken() -> None:\n    assert 1 == 2\n"


def _soon() -> str:
    return str(date.today() + timedelta(days=30))


def _run(space: AttackedWorkspace) -> tuple[str, bool]:
    """Runs alpha; what the run and the status said, and whether another candidate is in staging."""
    before = space.offered("staging")
    space.code().write_text(space.code().read_text() + "\nANOTHER = True\n")  # tests alone make no other candidate
    done = space.run("pipeline", "run", "alpha")
    return done.text + space.run("pipeline", "status", "alpha").text, space.offered("staging") != before


def _only(space: AttackedWorkspace, text: str) -> None:
    """Replace the server's tests with one module."""
    for path in (space.server() / "tests").rglob("*.py"):
        path.unlink()
    (space.server() / "tests/test_it.py").write_text(text)


def _gate(space: AttackedWorkspace, gate: str) -> None:
    """A gate of the first channel."""
    file = space.root / "mcpfactory.toml"
    space.edit(file, 'name = "staging"\n', f'name = "staging"\ngates = {{ {gate} }}\n')


def _not_staged(space: AttackedWorkspace, why: str) -> Iterator[str]:
    _, staged = _run(space)
    if staged:
        yield f"staged, {why}"


def _add_failing_test(space: AttackedWorkspace, conftest: str = "") -> None:
    (space.server() / "tests/test_broken.py").write_text(_BROKEN)
    (space.server() / "tests/conftest.py").write_text(conftest)


def _failing(space: AttackedWorkspace) -> Iterator[str]:
    said, staged = _run(space)
    if staged:
        yield "staged although a test fails"
    if "Traceback" in said:
        yield "the run broke"


def _reported(space: AttackedWorkspace, *words: str) -> Iterator[str]:
    said, staged = _run(space)
    if staged and not any(word in said.lower() for word in words):
        yield f"staged, and nobody says {' or '.join(words)}"


def nothing_tested(space: AttackedWorkspace) -> Iterator[str]:
    """The only test is `def test_nothing(): pass`, and the channel wants one test."""
    _gate(space, "min_tests = 1")
    _only(space, "def test_nothing() -> None:\n    pass\n")
    yield from _not_staged(space, "with a test that ran no tool of the server")


def nothing_told(space: AttackedWorkspace) -> Iterator[str]:
    """The only test is `def test_nothing(): pass`; what is said?"""
    _only(space, "def test_nothing() -> None:\n    pass\n")
    yield from _reported(space, "ran no tool", "no tool")


def deselected(space: AttackedWorkspace) -> Iterator[str]:
    """A failing test is deselected in `addopts`."""
    _add_failing_test(space)
    more = ', "--deselect=tests/test_broken.py::test_broken"]'
    space.edit(space.server() / "pyproject.toml", '"--import-mode=importlib"]', f'"--import-mode=importlib"{more}')
    yield from _reported(space, "deselected")


def deselected_by_word(space: AttackedWorkspace) -> Iterator[str]:
    """A failing test is left out by `-k` in a pytest.ini of the server."""
    _add_failing_test(space)
    (space.server() / "pytest.ini").write_text('[pytest]\naddopts = -k "not broken" --import-mode=importlib\n')
    yield from _reported(space, "deselected")


def hidden_by_hook(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest takes the failing test out of what pytest collected, without a word."""
    hook = (
        "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'broken' not in one.name]\n"
    )
    _add_failing_test(space, hook)
    yield from _reported(space, "deselected")


def ignored(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest has pytest ignore the file with the failing test."""
    _add_failing_test(space, 'collect_ignore = ["test_broken.py"]\n')
    yield from _reported(space, "deselected", "ignored")


def _delete_tests(space: AttackedWorkspace) -> None:
    start, rest = (space.server() / "tests/test_server.py").read_text().split('@pytest.mark.parametrize("text"', 1)
    _only(space, start + "def _call" + rest.split("def _call", 1)[1])


def deleted(space: AttackedWorkspace) -> Iterator[str]:
    """Tests that the last candidate passed are deleted."""
    _delete_tests(space)
    yield from _reported(space, "gone", "fewer", "deleted", "removed")


def deleted_gate(space: AttackedWorkspace) -> Iterator[str]:
    """Tests that the last candidate passed are deleted, and the channel asks for all of them."""
    _gate(space, "max_lost_tests = 0")
    _delete_tests(space)
    yield from _not_staged(space, "with fewer tests")


def all_skipped(space: AttackedWorkspace) -> Iterator[str]:
    """Every test is skipped."""
    _only(space, "import pytest\n\n\n@pytest.mark.skip\ndef test_it() -> None:\n    assert 1 == 2\n")
    yield from _failing(space)


def all_expected(space: AttackedWorkspace) -> Iterator[str]:
    """Every test is expected to fail."""
    _only(space, "import pytest\n\n\n@pytest.mark.xfail\ndef test_it() -> None:\n    assert 1 == 2\n")
    yield from _failing(space)


def status_forged(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest turns the exit status of failing tests into 0."""
    hook = "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n"
    _add_failing_test(space, hook)
    yield from _failing(space)


def report_forged(space: AttackedWorkspace) -> Iterator[str]:
    """A test leaves the process with 0 after writing a report that says that all passed."""
    text = (
        "import os, sys\n"
        "def test_it():\n"
        "    names = [w.split('=', 1)[1] for w in sys.argv if w.startswith('--junit')]\n"
        '    case = \'<testcase classname="t" name="a" time="0"/>\'\n'
        '    suite = f\'<testsuites><testsuite name="t" tests="1" errors="0" failures="0" skipped="0">{case}</testsuite></testsuites>\'\n'
        "    for name in names:\n        open(name, 'w').write(suite)\n"
        "    os._exit(0)\n"
    )
    _only(space, text)
    _gate(space, "min_tests = 1")
    yield from _not_staged(space, "on a report that a test wrote")


def outcome_forged(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest turns the outcome of each failing test into `passed`."""
    hook = (
        "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    )
    _add_failing_test(space, hook)
    _gate(space, "min_tests = 5")  # four honest ones; the one whose outcome is forged runs no tool
    yield from _not_staged(space, "although a test fails")


def _answer(space: AttackedWorkspace, body: str, result: str) -> None:
    """Replace the body and the return type of alpha's tool; the server's tests accept any answer."""
    space.edit(space.code(), "def measure_text(text: str) -> Measures:", f"def measure_text(text: str) -> {result}:")
    space.edit(space.code(), "    return measure(text)", f"    {body}")
    text = (space.server() / "tests/test_server.py").read_text()
    _only(space, text.replace('assert result["structuredContent"]["words"] == 5', "assert not result.get('isError')"))


def _unfinished(body: str, result: str = "str") -> Act:
    """Make an attempt with a tool that does nothing and answers without an error."""

    def act(space: AttackedWorkspace) -> Iterator[str]:
        _answer(space, body, result)
        yield from _not_staged(space, "with a tool that does nothing")

    act.__doc__ = f"The body of the tool is `{body}`."
    return act


def _constant(body: str, result: str = "str") -> Act:
    """Make an attempt with a tool that gives every text the same answer."""

    def act(space: AttackedWorkspace) -> Iterator[str]:
        _answer(space, body, result)
        _run(space)
        if "placeholder-answers.constant" not in space.run("pipeline", "history", "alpha", "validate").text:
            yield "the report does not say that its arguments change nothing"

    act.__doc__ = f"The body of the tool is `{body}`."
    return act


def waived_forever(space: AttackedWorkspace) -> Iterator[str]:
    """Accepts findings of a rule until 9999."""
    words = ("--server", "alpha", "--reason", "x", "--expires", "9999-12-31")
    if space.run("waive", "tool-calls.error-text", *words).code == 0:
        yield "accepted until 9999"


def _waived(space: AttackedWorkspace, until: str) -> None:
    text = "".join(
        f'[[waivers]]\nrule = "{rule}"\nreason = "x"\nperson = "Mallory"\nuntil = {until}\n' for rule in _RULE_IDS
    )
    (space.server() / "waivers.toml").write_text(text)


def all_waived(space: AttackedWorkspace) -> Iterator[str]:
    """Every rule is waived until 9999, in the file by hand."""
    _waived(space, "9999-12-31")
    said, staged = _run(space)
    if staged and "waive" not in said:
        yield "staged, and neither run nor status says what was waived"


def waived_approved(space: AttackedWorkspace) -> Iterator[str]:
    """Every rule is waived for a month; does who approves see it?"""
    _waived(space, _soon())
    said, staged = _run(space)
    if staged and "waive" not in said:
        yield "neither run nor status says what was waived"
    if staged and "waive" not in space.run("pipeline", "approve", "alpha", by="Grace").text:
        yield "who approves does not see it"


def waived_too_many(space: AttackedWorkspace) -> Iterator[str]:
    """Accepts more rules than a policy allows."""
    space.edit(
        space.root / "mcpfactory.toml", "[pipeline]", '[waivers]\nlimit = 2\nmax_days = 90\nby = ["Ada"]\n[pipeline]'
    )
    rules = _RULE_IDS[:3]
    codes = [
        space.run("waive", rule, "--server", "alpha", "--reason", "x", "--expires", _soon()).code for rule in rules
    ]
    if codes[-1] == 0 or codes[0]:
        yield f"exit codes {codes} with two allowed"
    done = space.run("waive", rules[2], "--server", "beta", "--reason", "x", "--expires", _soon(), by="Mallory")
    if done.code == 0:
        yield "somebody else may waive"


ATTEMPTS: Final = (
    Attempt("`def test_nothing(): pass` and min_tests", "not staged", nothing_tested, slow=True),
    Attempt("`def test_nothing(): pass`", "told", nothing_told, slow=True),
    Attempt("failing test deselected in addopts", "told", deselected, slow=True),
    Attempt("failing test left out by -k", "told", deselected_by_word, slow=True),
    Attempt("failing test hidden by a hook", "told", hidden_by_hook, slow=True),
    Attempt("failing test's file ignored", "told", ignored, slow=True),
    Attempt("deleted tests", "told", deleted, slow=True),
    Attempt("deleted tests and a gate", "not staged", deleted_gate, slow=True),
    Attempt("all tests skipped", "not staged", all_skipped, slow=True),
    Attempt("all tests expected to fail", "not staged", all_expected, slow=True),
    Attempt("exit status forged by a hook", "not staged", status_forged, slow=True),
    Attempt("report written by a test", "not staged", report_forged, slow=True),
    Attempt("outcomes forged by a hook", "not counted", outcome_forged, slow=True),
    Attempt(
        '"coming soon" as an answer', "not staged", _unfinished('return "This feature is coming soon!"'), slow=True
    ),
    Attempt(
        '"not implemented yet" as an answer',
        "not staged",
        _unfinished('return f"measure_text({text!r}) is not implemented yet"'),
        slow=True,
    ),
    Attempt(
        "the same in German",
        "not staged",
        _unfinished('return "Diese Funktion ist noch nicht implementiert."'),
        slow=True,
    ),
    Attempt("the same in Chinese", "not staged", _unfinished('return "该功能尚未实现"'), slow=True),
    Attempt(
        "the same figures for every text", "told", _constant('return measure("Two words.")', "Measures"), slow=True
    ),
    Attempt(
        "the same words for every text", "told", _constant('return "The text was measured with great care."'), slow=True
    ),
    Attempt(
        "TODO in an object",
        "not staged",
        _unfinished('return {"longest": "TODO: implement", "words": len(text)}', "dict[str, object]"),
        slow=True,
    ),
    Attempt("a waiver until 9999", "refused", waived_forever),
    Attempt("all rules waived by hand until 9999", "told, or refused", all_waived, slow=True),
    Attempt("all rules waived, then approved", "run, status and approve say so", waived_approved, slow=True),
    Attempt("more waivers than a policy allows", "refused", waived_too_many),
)
