"""Rules about the package of a workspace's server; other servers are exempt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, is_search_call_tool
from mcpfactory_pipeline.checks.package_inspection import PackageFacts
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, not_applicable, not_checked

RULES: Final = RuleTable()
rule = RULES.rule
_WANTED: Final = ("name", "version", "description", "requires-python")
_TOOL_ROW: Final = re.compile(r"^[|*-]\s*(?:tool\s*\|\s*)?`([A-Za-z0-9_.-]{1,128})`", re.MULTILINE)
_SECTION: Final = re.compile(
    r"^#{1,4}[^\n]*\btools\b[^\n]*$(.*?)(?=^#{1,4}\s|\Z)", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
# A Markdown table with a first header that does not mention tools.
_OTHER_TABLE: Final = re.compile(
    r"^\|(?!\s*\|)(?![^|\n]*(?:tool|name|function))[^|\n]*\|[^\n]*\n\|[-:| ]+\n(?:\|[^\n]*\n?)*",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED_TOOL: Final = re.compile(r"^\|\s*tool\s*\|\s*`([A-Za-z0-9_.-]{1,128})`", re.MULTILINE)
_COMMAND: Final = re.compile(r'"command":\s*"([^"]+)"')
_RUNNERS: Final = frozenset({"uvx", "uv", "pipx", "python", "python3", "docker", "npx"})


def _package(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    if evidence.package is None:
        return not_applicable("its sources are not in a workspace")
    return RuleSubjects([evidence.package])


def _readable(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    problem = evidence.package.problem if evidence.package else ""
    return not_checked(problem) if problem else _package(evidence)


def _fields(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    return RuleSubjects([evidence.package], len(_WANTED)) if evidence.package else _package(evidence)


@rule("packaging.metadata", 2, over=_fields,
      statement="The package declares its name, version, description and required Python version.",
      source="PEP 621; package indexes and installers show and use them",
      hint="fill in [project] of pyproject.toml")  # fmt: skip
def _metadata(package: PackageFacts) -> Iterator[Fault]:
    if package.problem:
        yield Fault(package.problem, "pyproject.toml")
        return
    dynamic = package.project.get("dynamic")
    given = {*package.project, *(dynamic if isinstance(dynamic, list) else ())}
    for field in _WANTED:
        if field not in given or package.project.get(field) == "":
            yield Fault(f"project.{field} is missing", f"project.{field}")


def _scripts(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    package = _readable(evidence)
    return (
        package if isinstance(package, RuleOutcome) else RuleSubjects(package.items, len(package.items[0].scripts) or 1)
    )


@rule("packaging.entry-point", 3, over=_scripts,
      statement="The package declares a program, and its entry point exists.",
      source="entry points specification (packaging.python.org); a client starts a server by its program",
      hint='[project.scripts] name = "package.server:main"')  # fmt: skip
def _entry_point(package: PackageFacts) -> Iterator[Fault]:
    if not package.scripts:
        yield Fault("the package has no program: [project.scripts] is empty", "project.scripts")
    for name, problem in package.scripts.items():
        if problem:
            yield Fault(problem, f"project.scripts.{name}")


@rule("packaging.readme", 1, over=_readable,
      statement="The package has a README, and the tools and programs that it names exist.",
      source="people decide by the README, and copy the command from it",
      hint="correct the README as the finding says; mcpfactory inspect NAME prints the tools")  # fmt: skip
def _readme(package: PackageFacts, evidence: Evidence) -> Iterator[Fault]:
    if package.readme is None or not package.readme.strip():
        yield Fault("there is no README, or project.readme does not name it", "README")
        return
    for command in dict.fromkeys(_COMMAND.findall(package.readme)):
        if command not in package.scripts and command not in _RUNNERS and "/" not in command:
            yield Fault(f"the README starts {command!r}, which is not a program of the package", "README")
    # Search mode lists only its own tools.
    if not any(is_search_call_tool(tool) for _, tool in evidence.named_tools):
        yield from _false_tools(package.readme, {name for name, _ in evidence.named_tools})


def _false_tools(readme: str, listed: set[str]) -> Iterator[Fault]:
    sections = _OTHER_TABLE.sub("", "\n".join(found[1] for found in _SECTION.finditer(readme)))
    named = [*_TOOL_ROW.findall(sections), *_NAMED_TOOL.findall(readme)]
    for name in dict.fromkeys(named):
        if name not in listed:
            yield Fault(f"the README names a tool {name}, which the server does not have", "README")


@rule("packaging.license", 1, over=_readable,
      statement="The package declares its license.",
      source="PEP 639; nobody may copy a package that has no license",
      hint=('set project.license = "MIT" (an SPDX expression), or add a file LICENSE; '
            '"LicenseRef-Proprietary" permits no use'))  # fmt: skip
def _license(package: PackageFacts) -> Iterator[Fault]:
    if not package.project.get("license") and not package.license_files:
        yield Fault("there is neither project.license nor a license file", "project.license")


def _rebuilt(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    package = evidence.package
    if package is not None and package.build_problem:
        return not_checked(package.build_problem)
    if package is not None and package.rebuilt is None:
        return not_applicable("no candidate to compare with")
    return _package(evidence)


@rule("packaging.reproducible", 2, over=_rebuilt,
      statement="Two builds of the same sources give the same bytes.",
      source="reproducible-builds.org; otherwise nobody can verify that a wheel was built from its sources",
      hint="remove timestamps, random values and machine-specific paths from the build")  # fmt: skip
def _reproducible(package: PackageFacts) -> Iterator[Fault]:
    if not package.rebuilt:
        yield Fault("a second build of the same sources gave different bytes", "wheel")


def _hand_written(evidence: Evidence) -> RuleSubjects[PackageFacts] | RuleOutcome:
    count = max(len(evidence.named_tools), 1)
    return RuleSubjects([evidence.package], count) if evidence.package else _package(evidence)


@rule("packaging.implemented", 5, gate=True, over=_hand_written,
      statement="No hand-written tool has an empty body or only raises NotImplementedError.",
      source="a tool that is listed is a promise to the model",
      hint="write the function, or remove its decorator until it is written")  # fmt: skip
def _implemented(package: PackageFacts) -> Iterator[Fault]:
    for name, place in package.unwritten:
        yield Fault("the tool is listed, but its function has no body", name, proof={"where": place})
