"""Checks that prove nothing: tests, waivers, and answers that only look like answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace
from mcpfactory_pipeline.checks.rules import RULES

_BROKEN: Final = "def test_broken() -> None:\n    assert 1 == 2\n"


def _soon() -> str:
    return str(date.today() + timedelta(days=30))


def _run(field: AttackedWorkspace) -> tuple[str, bool]:
    """Runs alpha; what the run and the status said, and whether another candidate is in staging."""
    before = field.offered("staging")
    field.code().write_text(field.code().read_text() + "\nANOTHER = True\n")  # tests alone make no other candidate
    done = field.run("pipeline", "run", "alpha")
    return done.text + field.run("pipeline", "status", "alpha").text, field.offered("staging") != before


def _only(field: AttackedWorkspace, text: str, **files: str) -> None:
    """These tests, and no others."""
    for path in (field.server() / "tests").rglob("*.py"):
        path.unlink()
    for name, content in {"test_it.py": text, **{f"{key}.py": value for key, value in files.items()}}.items():
        (field.server() / "tests" / name).write_text(content)


def _gate(field: AttackedWorkspace, gate: str) -> None:
    """A gate of the first channel."""
    file = field.root / "mcpfactory.toml"
    field.edit(file, 'name = "staging"\n', f'name = "staging"\ngates = {{ {gate} }}\n')


def _failing(field: AttackedWorkspace) -> Iterator[str]:
    said, staged = _run(field)
    if staged:
        yield "staged although a test fails"
    if "Traceback" in said:
        yield "the run broke"


def _told(field: AttackedWorkspace, *words: str) -> Iterator[str]:
    said, staged = _run(field)
    if staged and not any(word in said.lower() for word in words):
        yield f"staged, and nobody says {' or '.join(words)}"


def nothing_tested(field: AttackedWorkspace) -> Iterator[str]:
    """The only test is `def test_nothing(): pass`, and the channel wants one test."""
    _gate(field, "min_tests = 1")
    _only(field, "def test_nothing() -> None:\n    pass\n")
    _, staged = _run(field)
    if staged:
        yield "staged, with a test that ran no tool of the server"


def nothing_told(field: AttackedWorkspace) -> Iterator[str]:
    """The only test is `def test_nothing(): pass`; what is said?"""
    _only(field, "def test_nothing() -> None:\n    pass\n")
    yield from _told(field, "ran no tool", "no tool")


def deselected(field: AttackedWorkspace) -> Iterator[str]:
    """A failing test is deselected in `addopts`."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    more = ', "--deselect=tests/test_broken.py::test_broken"]'
    field.edit(field.server() / "pyproject.toml", '"--import-mode=importlib"]', f'"--import-mode=importlib"{more}')
    yield from _told(field, "deselected")


def deselected_by_word(field: AttackedWorkspace) -> Iterator[str]:
    """A failing test is left out by `-k` in a pytest.ini of the server."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    (field.server() / "pytest.ini").write_text('[pytest]\naddopts = -k "not broken" --import-mode=importlib\n')
    yield from _told(field, "deselected")


def hidden_by_hook(field: AttackedWorkspace) -> Iterator[str]:
    """A conftest takes the failing test out of what pytest collected, without a word."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    hook = (
        "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'broken' not in one.name]\n"
    )
    (field.server() / "tests/conftest.py").write_text(hook)
    yield from _told(field, "deselected")


def ignored(field: AttackedWorkspace) -> Iterator[str]:
    """A conftest has pytest ignore the file with the failing test."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    (field.server() / "tests/conftest.py").write_text('collect_ignore = ["test_broken.py"]\n')
    yield from _told(field, "deselected", "ignored")


def deleted(field: AttackedWorkspace) -> Iterator[str]:
    """Tests that the last candidate passed are deleted."""
    text = (field.server() / "tests/test_server.py").read_text()
    start, rest = text.split('@pytest.mark.parametrize("text"', 1)
    _only(field, start + "def _call" + rest.split("def _call", 1)[1])
    yield from _told(field, "gone", "fewer", "deleted", "removed")


def deleted_gate(field: AttackedWorkspace) -> Iterator[str]:
    """Tests that the last candidate passed are deleted, and the channel asks for all of them."""
    _gate(field, "max_lost_tests = 0")
    text = (field.server() / "tests/test_server.py").read_text()
    start, rest = text.split('@pytest.mark.parametrize("text"', 1)
    _only(field, start + "def _call" + rest.split("def _call", 1)[1])
    _, staged = _run(field)
    if staged:
        yield "staged, with fewer tests"


def all_skipped(field: AttackedWorkspace) -> Iterator[str]:
    """Every test is skipped."""
    _only(field, "import pytest\n\n\n@pytest.mark.skip\ndef test_it() -> None:\n    assert 1 == 2\n")
    yield from _failing(field)


def all_expected(field: AttackedWorkspace) -> Iterator[str]:
    """Every test is expected to fail."""
    _only(field, "import pytest\n\n\n@pytest.mark.xfail\ndef test_it() -> None:\n    assert 1 == 2\n")
    yield from _failing(field)


def status_forged(field: AttackedWorkspace) -> Iterator[str]:
    """A conftest turns the exit status of failing tests into 0."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    hook = "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n"
    (field.server() / "tests/conftest.py").write_text(hook)
    yield from _failing(field)


def report_forged(field: AttackedWorkspace) -> Iterator[str]:
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
    _only(field, text)
    _gate(field, "min_tests = 1")
    _, staged = _run(field)
    if staged:
        yield "staged on a report that a test wrote"


def outcome_forged(field: AttackedWorkspace) -> Iterator[str]:
    """A conftest turns the outcome of each failing test into `passed`."""
    (field.server() / "tests/test_broken.py").write_text(_BROKEN)
    hook = (
        "import pytest\n@pytest.hookimpl(wrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    report = yield\n    report.outcome = 'passed'\n    return report\n"
    )
    (field.server() / "tests/conftest.py").write_text(hook)
    _gate(field, "min_tests = 5")  # four honest ones; the one whose outcome is forged runs no tool
    _, staged = _run(field)
    if staged:
        yield "staged although a test fails"


def _answering(field: AttackedWorkspace, body: str, result: str = "str") -> None:
    """Makes the tool of alpha answer in another way; the tests of the server fit."""
    field.edit(field.code(), "def measure_text(text: str) -> Measures:", f"def measure_text(text: str) -> {result}:")
    field.edit(field.code(), "    return measure(text)", f"    {body}")
    text = (field.server() / "tests/test_server.py").read_text()
    _only(field, text.replace('assert result["structuredContent"]["words"] == 5', "assert not result.get('isError')"))


def _unfinished(field: AttackedWorkspace) -> Iterator[str]:
    _, staged = _run(field)
    if staged:
        yield "staged, with a tool that does nothing"


def _constant(field: AttackedWorkspace) -> Iterator[str]:
    _run(field)
    if "placeholder-answers.constant" not in field.run("pipeline", "history", "alpha", "validate").text:
        yield "the report does not say that its arguments change nothing"


def coming_soon(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers `coming soon`, and no error."""
    _answering(field, 'return "This feature is coming soon!"')
    yield from _unfinished(field)


def not_implemented(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers `not implemented yet` with the argument in the text, and no error."""
    _answering(field, 'return f"measure_text({text!r}) is not implemented yet"')
    yield from _unfinished(field)


def in_german(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers in German that it is not implemented."""
    _answering(field, 'return "Diese Funktion ist noch nicht implementiert."')
    yield from _unfinished(field)


def in_chinese(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers in Chinese that it is not implemented."""
    _answering(field, 'return "该功能尚未实现"')
    yield from _unfinished(field)


def same_text(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers with the same figures, whatever the text is."""
    _answering(field, 'return measure("Two words.")', "Measures")
    yield from _constant(field)


def same_words(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers `Done.`, whatever the text is."""
    _answering(field, 'return "The text was measured with great care."')
    yield from _constant(field)


def todo_figure(field: AttackedWorkspace) -> Iterator[str]:
    """The tool answers with an object whose text says TODO."""
    _answering(field, 'return {"longest": "TODO: implement", "words": len(text)}', "dict[str, object]")
    yield from _unfinished(field)


def waived_forever(field: AttackedWorkspace) -> Iterator[str]:
    """Accepts findings of a rule until 9999."""
    words = ("--server", "alpha", "--reason", "x", "--expires", "9999-12-31")
    if field.run("waive", "tool-calls.error-text", *words).code == 0:
        yield "accepted until 9999"


def _waived(field: AttackedWorkspace, until: str) -> None:
    text = "".join(
        f'[[waivers]]\nrule = "{rule}"\nreason = "x"\nperson = "Mallory"\nuntil = {until}\n' for rule in _rules()
    )
    (field.server() / "waivers.toml").write_text(text)


def _rules() -> list[str]:
    return [rule.id for rule in RULES]


def all_waived(field: AttackedWorkspace) -> Iterator[str]:
    """Every rule is waived until 9999, in the file by hand."""
    _waived(field, "9999-12-31")
    said, staged = _run(field)
    if staged and "waive" not in said:
        yield "staged, and neither run nor status says what was waived"


def waived_approved(field: AttackedWorkspace) -> Iterator[str]:
    """Every rule is waived for a month; does who approves see it?"""
    _waived(field, _soon())
    said, staged = _run(field)
    if staged and "waive" not in said:
        yield "neither run nor status says what was waived"
    if staged and "waive" not in field.run("pipeline", "approve", "alpha", by="Grace").text:
        yield "who approves does not see it"


def waived_too_many(field: AttackedWorkspace) -> Iterator[str]:
    """Accepts more rules than a policy allows."""
    field.edit(
        field.root / "mcpfactory.toml", "[pipeline]", '[waivers]\nlimit = 2\nmax_days = 90\nby = ["Ada"]\n[pipeline]'
    )
    rules = _rules()[:3]
    codes = [
        field.run("waive", rule, "--server", "alpha", "--reason", "x", "--expires", _soon()).code for rule in rules
    ]
    if codes[-1] == 0 or codes[0]:
        yield f"exit codes {codes} with two allowed"
    done = field.run("waive", rules[2], "--server", "beta", "--reason", "x", "--expires", _soon(), by="Mallory")
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
    Attempt('"coming soon" as an answer', "not staged", coming_soon, slow=True),
    Attempt('"not implemented yet" as an answer', "not staged", not_implemented, slow=True),
    Attempt("the same in German", "not staged", in_german, slow=True),
    Attempt("the same in Chinese", "not staged", in_chinese, slow=True),
    Attempt("the same figures for every text", "told", same_text, slow=True),
    Attempt("the same words for every text", "told", same_words, slow=True),
    Attempt("TODO in an object", "not staged", todo_figure, slow=True),
    Attempt("a waiver until 9999", "refused", waived_forever),
    Attempt("all rules waived by hand until 9999", "told, or refused", all_waived, slow=True),
    Attempt("all rules waived, then approved", "run, status and approve say so", waived_approved, slow=True),
    Attempt("more waivers than a policy allows", "refused", waived_too_many),
)
