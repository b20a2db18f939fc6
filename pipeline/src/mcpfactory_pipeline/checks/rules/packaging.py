"""Rules over the package that a server comes in. They apply to servers of a workspace; of strangers no sources are seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, calls_others
from mcpfactory_pipeline.checks.package import PackageFacts
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome

_WANTED: Final = ("name", "version", "description", "requires-python")
_TOOL_ROW: Final = re.compile(r"^[|*-]\s*(?:tool\s*\|\s*)?`([A-Za-z0-9_.-]{1,128})`", re.MULTILINE)
_SECTION: Final = re.compile(
    r"^#{1,4}[^\n]*\btools\b[^\n]*$(.*?)(?=^#{1,4}\s|\Z)", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
# A table whose first column is headed by something else: profiles, variables.
_OTHER_TABLE: Final = re.compile(
    r"^\|(?!\s*\|)(?![^|\n]*(?:tool|name|function))[^|\n]*\|[^\n]*\n\|[-:| ]+\n(?:\|[^\n]*\n?)*",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED_TOOL: Final = re.compile(r"^\|\s*tool\s*\|\s*`([A-Za-z0-9_.-]{1,128})`", re.MULTILINE)
_COMMAND: Final = re.compile(r'"command":\s*"([^"]+)"')
_RUNNERS: Final = frozenset({"uvx", "uv", "pipx", "python", "python3", "docker", "npx"})


def _on_package(check_package: Callable[[PackageFacts, Evidence], RuleOutcome]) -> Callable[[Evidence], RuleOutcome]:
    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.package is None:
            return not_applicable("its sources are not in a workspace")
        return check_package(evidence.package, evidence)

    return check


def _metadata(package: PackageFacts, _evidence: Evidence) -> RuleOutcome:
    if package.problem:
        return rule_outcome(len(_WANTED), [Fault(package.problem, "pyproject.toml")])
    dynamic = package.project.get("dynamic")
    given = {*package.project, *(dynamic if isinstance(dynamic, list) else ())}
    missing = [field for field in _WANTED if field not in given or package.project.get(field) == ""]
    return rule_outcome(len(_WANTED), (Fault(f"project.{field} is missing", f"project.{field}") for field in missing))


def _entry_point(package: PackageFacts, _evidence: Evidence) -> RuleOutcome:
    if package.problem:
        return not_checked(package.problem)
    if not package.scripts:
        return rule_outcome(1, [Fault("the package has no program: [project.scripts] is empty", "project.scripts")])
    wrong = {name: problem for name, problem in package.scripts.items() if problem}
    return rule_outcome(
        len(package.scripts), (Fault(problem, f"project.scripts.{name}") for name, problem in wrong.items())
    )


def _readme(package: PackageFacts, evidence: Evidence) -> RuleOutcome:
    if package.problem:
        return not_checked(package.problem)
    if package.readme is None or not package.readme.strip():
        return rule_outcome(1, [Fault("there is no README, or project.readme does not name it", "README")])
    listed = {name for name, _ in evidence.named_tools}
    faults = [*_false_commands(package)]
    if not any(calls_others(tool) for _, tool in evidence.named_tools):  # else the tools behind are not listed
        faults += _false_tools(package.readme, listed)
    return rule_outcome(1, faults)


def _false_tools(readme: str, listed: set[str]) -> Iterator[Fault]:
    sections = _OTHER_TABLE.sub("", "\n".join(found[1] for found in _SECTION.finditer(readme)))
    named = [*_TOOL_ROW.findall(sections), *_NAMED_TOOL.findall(readme)]
    for name in dict.fromkeys(named):
        if name not in listed:
            yield Fault(f"the README names a tool {name}, which the server does not have", "README")


def _false_commands(package: PackageFacts) -> Iterator[Fault]:
    for command in dict.fromkeys(_COMMAND.findall(package.readme or "")):
        if command not in package.scripts and command not in _RUNNERS and "/" not in command:
            yield Fault(f"the README starts {command!r}, which is not a program of the package", "README")


def _licence(package: PackageFacts, _evidence: Evidence) -> RuleOutcome:
    if package.problem:
        return not_checked(package.problem)
    if package.project.get("license") or package.licence_files:
        return RuleOutcome()
    return rule_outcome(1, [Fault("there is neither project.license nor a license file", "project.license")])


def _reproducible(package: PackageFacts, _evidence: Evidence) -> RuleOutcome:
    if package.build_problem:
        return not_checked(package.build_problem)
    if package.rebuilt is None:
        return not_applicable("no candidate to compare with")
    return rule_outcome(
        1, () if package.rebuilt else [Fault("a second build of the same sources gave different bytes", "wheel")]
    )


def _implemented(package: PackageFacts, evidence: Evidence) -> RuleOutcome:
    """Every tool is a subject, as the generated ones have a body by construction."""
    faults = (
        Fault("the tool is listed, but its function has no body", name, proof={"where": place})
        for name, place in package.unwritten
    )
    return rule_outcome(max(len(evidence.named_tools), 1), faults)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="packaging.metadata", severity=2, check=_on_package(_metadata),
        statement="The package declares its name, version, description and required Python version.",
        source="PEP 621; package indexes and installers show and use them",
        hint="fill in [project] of pyproject.toml",
    ),
    Rule(
        id="packaging.entry-point", severity=3, check=_on_package(_entry_point),
        statement="The package declares a program, and its entry point exists.",
        source="entry points specification (packaging.python.org); a client starts a server by its program",
        hint='[project.scripts] name = "package.server:main"',
    ),
    Rule(
        id="packaging.readme", severity=1, check=_on_package(_readme),
        statement="The package has a README, and the tools and programs that it names exist.",
        source="people decide by the README, and copy the command from it",
        hint="correct the README as the finding says; mcpfactory inspect NAME prints the tools",
    ),
    Rule(
        id="packaging.licence", severity=1, check=_on_package(_licence),
        statement="The package declares its license.",
        source="PEP 639; without one nobody may copy it",
        hint=('set project.license = "MIT" (an SPDX expression), or add a file LICENSE; "LicenseRef-Proprietary" '
              "permits no use"),
    ),
    Rule(
        id="packaging.reproducible", severity=2, check=_on_package(_reproducible),
        statement="Two builds of the same sources give the same bytes.",
        source="reproducible-builds.org; else nobody can tell whether a wheel was made of its sources",
        hint="remove timestamps, random values and machine-specific paths from the build",
    ),
    Rule(
        id="packaging.implemented", severity=5, gate=True, check=_on_package(_implemented),
        statement="No hand-written tool has an empty body or only raises NotImplementedError.",
        source="a tool that is listed is a promise to the model",
        hint="write the function, or remove its decorator until it is written",
    ),
)  # fmt: skip
