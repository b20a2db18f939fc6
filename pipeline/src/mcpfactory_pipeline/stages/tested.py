"""What the tests of a server show: each test's outcome and the tools that it ran, as the plugin of pytest saw it.

The plugin runs in the process of the tests. Its record counts when it has the nonce of this run: a process that ended before
pytest did, or wrote a report of its own, has none.
"""

from __future__ import annotations

import ast
import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.text import pluralize

__all__ = [
    "PLUGIN",
    "EvidenceFiles",
    "Observed",
    "compare_tests",
    "defined_tests",
    "keep_tests",
    "name_tests",
    "prepare_evidence",
    "read_evidence",
]

PLUGIN: Final = Path(__file__).parent.parent / "pytest_plugin"  # what the process of the tests has to be able to read
_KEPT: Final = "tests.json"  # beside the report of a candidate: the tests that it passed
_LARGEST: Final = 1 << 26  # bytes of a record
_SHOWN: Final = 3  # tests that a message names


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """Where the plugin writes its record, and the nonce that the record must have; `environ` and `options` make pytest load it."""

    nonce: str
    record: Path
    environ: Mapping[str, str]
    options: tuple[str, ...] = ("-p", "mcpfactory_evidence")


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of the tests: the names of each outcome. `with_tool` are those that passed and ran a tool, `tools` what they ran.

    `deselected` are tests that are defined and did not run, `errors` files that could not be collected.
    """

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()
    with_tool: tuple[str, ...] = ()
    tools: frozenset[str] = field(default_factory=frozenset)

    def facts(self) -> dict[str, int]:
        """The numbers for the record of the stage."""
        return {
            "tests": len(self.passed) + len(self.failed) + len(self.skipped) + len(self.errors),
            "passed": len(self.passed),
            "failed": len(self.failed) + len(self.errors),
            "skipped": len(self.skipped),
            "deselected": len(self.deselected),
            "tool_tests": len(self.with_tool),
            "tools_run": len(self.tools),
        }

    def missing(self) -> str:
        """What the tests that passed do not show, in words; "" when there is nothing to say."""
        said = [f", {len(self.skipped)} skipped"] if self.skipped else []
        if self.deselected:
            said.append(f", {len(self.deselected)} deselected: {name_tests(self.deselected)}")
        if self.passed and not self.with_tool:
            said.append("; they ran no tool of the server")
        return "".join(said)

    def joined(self, other: Observed) -> Observed:
        """Both, as one."""
        both = {name: getattr(self, name) + getattr(other, name) for name in _LISTS}
        return replace(self, **both, tools=self.tools | other.tools)


_LISTS: Final = ("passed", "failed", "skipped", "errors", "deselected", "with_tool")


def prepare_evidence(folder: Path) -> EvidenceFiles:
    """Return what the plugin is started with; its files are in `folder`, which the tests may write."""
    folder.mkdir(parents=True)
    nonce, record, tools = secrets.token_hex(16), folder / "record.json", folder / "tools.jsonl"
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"nonce": nonce, "record": str(record), "tools": str(tools)}), encoding="utf-8")
    environ = {"MCPFACTORY_EVIDENCE": str(settings), "MCPFACTORY_TOOL_RECORD": str(tools), "PYTHONPATH": str(PLUGIN)}
    return EvidenceFiles(nonce, record, environ)


def read_evidence(evidence: EvidenceFiles, defined: Iterable[str] = ()) -> Observed | None:
    """Return what the plugin saw; None where it wrote no record of this run.

    `defined` are the tests that stand in the files (`defined_tests`): what of them was not collected is deselected, too.
    """
    try:
        if evidence.record.is_symlink() or evidence.record.stat().st_size > _LARGEST:
            return None
        data = json.loads(evidence.record.read_bytes())
        if data["nonce"] != evidence.nonce:
            return None
        return _observed(data, defined)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _observed(data: Mapping[str, Any], defined: Iterable[str]) -> Observed:
    tests: Mapping[str, Mapping[str, Any]] = data["tests"]
    known = {_without_parameters(name) for name in (*tests, *data["deselected"])}
    hidden = [name for name in defined if name not in known and name.partition("::")[0] not in data["errors"]]
    by_outcome = {
        outcome: tuple(name for name, test in tests.items() if test["outcome"] == outcome)
        for outcome in ("passed", "failed", "skipped")
    }
    with_tool = [name for name in by_outcome["passed"] if tests[name]["tools"]]
    return Observed(
        **by_outcome,
        errors=tuple(map(str, data["errors"])),
        deselected=(*map(str, data["deselected"]), *hidden),
        with_tool=tuple(with_tool),
        tools=frozenset(str(tool) for name in with_tool for tool in tests[name]["tools"]),
    )


def defined_tests(folder: Path, files: Sequence[str]) -> list[str]:
    """Return the tests that stand in `test_*.py` and `*_test.py` of a folder `tests`, by the names that pytest gives them."""
    found: list[str] = []
    for file in files:
        name = file.rpartition("/")[2]
        if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
            try:
                found += (f"tests/{file}::{one}" for one in _functions(ast.parse((folder / file).read_bytes())))
            except (OSError, ValueError, SyntaxError, RecursionError):
                continue  # pytest says what is wrong with it
    return found


def _functions(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if _is_test(node):
            yield node.name  # type: ignore[attr-defined] # it is a function
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{one.name}" for one in node.body if _is_test(one))  # type: ignore[attr-defined] # as above


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _without_parameters(name: str) -> str:
    return name.partition("[")[0]


def name_tests(names: Collection[str]) -> str:
    """Return the first names of tests in words, without their files."""
    shown = [name.rpartition("::")[2] for name in sorted(names)]
    return ", ".join(shown[:_SHOWN]) + (" …" if len(shown) > _SHOWN else "")


# --- tests that were there before ---


def compare_tests(passed: Collection[str], folder: Path, candidate: str) -> tuple[dict[str, int], str]:
    """Return how many tests each candidate in a server's artifacts passed that are not among these; and, of the last one, in words."""
    kept = {file.parent.parent.name: _read_kept(file) for file in folder.glob(f"*/test/{_KEPT}")}
    lost = {name: sorted(set(tests) - set(passed)) for name, (_, tests) in sorted(kept.items())}
    last = candidate if candidate in kept else max(kept, key=lambda name: kept[name][0], default="")
    gone = lost.get(last, [])
    words = f"{pluralize(len(gone), 'test')} that candidate {last} passed are gone: {name_tests(gone)}" if gone else ""
    return {name: len(tests) for name, tests in lost.items()}, words


def keep_tests(passed: Collection[str], folder: Path, candidate: str) -> None:
    """Keep the names of the tests that a candidate passed, now or before, in a server's artifacts."""
    file = folder / candidate / "test" / _KEPT
    number, before = _read_kept(file)
    others = (_read_kept(other)[0] for other in folder.glob(f"*/test/{_KEPT}"))
    content = {"number": number or 1 + max(others, default=0), "tests": sorted({*before, *passed})}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")


def _read_kept(file: Path) -> tuple[int, list[str]]:
    try:
        data = json.loads(file.read_bytes())
        return int(data["number"]), [str(name) for name in data["tests"]]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, []
