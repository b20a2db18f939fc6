"""A small change for each recipe of CONTRIBUTING.md, in a copy of the repository."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.checks.report import RULES_VERSION
from tests.future_revision import add_record
from tests.runtime.upstream.test_styles import STEPS

RUNTIME: Final = "factory/runtime/src/mcpfactory_runtime"
CODEGEN: Final = "factory/codegen/src/mcpfactory_codegen"
PIPELINE: Final = "pipeline/src/mcpfactory_pipeline"
CLI: Final = "factory/cli/src/mcpfactory"


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that follows a recipe.

    Attributes:
        change: applies the change to a copy of the repository.
        forgotten: a file of the change that is omitted once; a check must report that.
        tests: expression for pytest's `-k` that selects the tests of the change; the suite runs the others.
    """

    change: Callable[[Path], None]
    forgotten: str
    tests: str


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def replace(root: Path, path: str, before: str, after: str) -> None:
    text = (root / path).read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path} no longer says once: {before}"
    (root / path).write_text(text.replace(before, after), encoding="utf-8")


def revision(root: Path) -> None:
    add_record(root / RUNTIME / "revisions/records.py")
    facts = root / "tests/runtime/spec_types"
    table = json.loads((facts / "2026-07-28.json").read_text(encoding="utf-8"))
    (facts / "2027-01-01.json").write_text(json.dumps({**table, "revision": "2027-01-01"}), encoding="utf-8")


STAGE: Final = '''\
"""Look for the notices of a wheel."""

from __future__ import annotations

from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs


def run(inputs: StageInputs) -> StageOutputs:
    """Accept every candidate."""
    return StageOutputs("passed", f"looked at {inputs.server}")
'''
ROW: Final = """\
_NOTICES: Final = Stage(
    name="notices",
    needs=("build",),
    reads=("candidate",),
    writes=("checks",),
    version=1,
    run=f"{_MODULE}.notices:run",
    timeout=60,
    check=True,
)
"""


def stage(root: Path) -> None:
    write(root, f"{PIPELINE}/stages/notices.py", STAGE)
    registry = f"{PIPELINE}/stages/__init__.py"
    replace(root, registry, "_BEFORE: Final = ", f"{ROW}_BEFORE: Final = ")
    replace(root, registry, "_TEST, _VALIDATE)", "_TEST, _VALIDATE, _NOTICES)")
    replace(root, f"{CLI}/completion.py", '"test", "validate")', '"test", "validate", "notices")')
    row = "| `notices` | `build` | looks at the notices | `candidate` | 60 s |\n"
    replace(root, "docs/reference/pipeline.md", "| `staging` | all checks |", f"{row}| `staging` | all checks |")


RULE: Final = """

@rule("packaging.summary", 1, over=_readable,
      statement="The package describes itself in a line.",
      source="indexes show one line",
      hint="shorten project.description")  # fmt: skip
def _summary(package: PackageFacts) -> Iterator[Fault]:
    if len(str(package.project.get("description", ""))) > 200:
        yield Fault("the description is no summary", "project.description")
"""
BROKEN: Final = '''

class Windbag(Packaged):
    """Describes itself at length."""

    rule = "packaging.summary"
    change = ("pyproject.toml", "A small zoo", "A small zoo" * 30)
'''


def append(root: Path, path: str, text: str) -> None:
    write(root, path, (root / path).read_text(encoding="utf-8") + text)


def rule(root: Path) -> None:
    append(root, f"{PIPELINE}/checks/rules/packaging.py", RULE)
    append(root, "tests/broken_servers/packages.py", BROKEN)
    next_version(root)


def next_version(root: Path) -> None:
    version = "RULES_VERSION: Final = {}"
    report = f"{PIPELINE}/checks/report.py"
    replace(root, report, version.format(RULES_VERSION), version.format(RULES_VERSION + 1))


PROBE: Final = """\
    Probe("ping-params", "lists", "ping", {"mcpfactory": 1}, "ping with params", result("ping"), "legacy", "prompts"),
"""
PROBED: Final = """
row("features.ping-params", 1, until=LATEST_HANDSHAKE, over=probed("ping-params"),
    statement="ping with unknown params is answered.",
    source="MCP schema, RequestParams",
    hint="ignore the params")  # fmt: skip
"""
PICKY: Final = '''

class Picky(SampleServer):
    """Refuses a ping with params."""

    rule = "features.ping-params"

    def handshake(self, method: str, params: Json) -> Json:
        if method == "ping" and params:
            raise RpcError(-32602, "ping has no params")
        return super().handshake(method, params)
'''


def probe(root: Path) -> None:
    before = '    Probe("modern-no-capabilities"'
    replace(root, f"{PIPELINE}/checks/probes.py", before, f"{PROBE}{before}")
    append(root, f"{PIPELINE}/checks/rules/features.py", PROBED)
    append(root, "tests/broken_servers/protocol.py", PICKY)
    next_version(root)


TARGET: Final = '''\
"""A file with the name of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_pipeline.delivery.publish.target import PublishTarget

__all__ = ["TARGET"]


def make(release: Any, _settings: Any) -> Mapping[str, bytes]:
    """Return the file."""
    return {"name.txt": release.metadata.name.encode()}


TARGET: Final = PublishTarget(id="label", title="A label: the name of the release", build=make)
'''


def target(root: Path) -> None:
    write(root, f"{PIPELINE}/delivery/publish/label.py", TARGET)
    table = f"{PIPELINE}/delivery/publish/publish.py"
    replace(root, table, "import docker, mcpb", "import docker, label, mcpb")
    replace(root, table, "    sbom.TARGET,\n", "    sbom.TARGET,\n    label.TARGET,\n")
    replace(root, f"{CLI}/completion.py", '"sbom", "registry")', '"sbom", "label", "registry")')


def template(root: Path) -> None:
    shutil.copytree(root / "templates/minimal", root / "templates/tiny")
    row = "| `openapi` | the files around"
    replace(root, "docs/reference/templates.md", row, f"| `tiny` | as minimal as `minimal` |\n{row}")
    replace(root, "README.md", "`time`.", "`time`, `tiny`.")


def style(root: Path) -> None:
    places = {"runtime": RUNTIME, "codegen": CODEGEN}
    (before, after), *steps = STEPS["query"]
    replace(root, f"{RUNTIME}/upstream/operation.py", before, after)
    for name, _, before, after in steps:
        wheel, _, path = name.partition("/")
        replace(root, f"{places[wheel]}/{path}", before, after)


VIEW: Final = '''\
"""How many servers there are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Census", "census_page"]


@dataclass(frozen=True, slots=True)
class Census:
    """The number of servers of a workspace."""

    workspace: str
    total: int


def census_page(workspace: str, total: int) -> Census:
    """Return the page."""
    return Census(workspace, total)
'''
SHOWN: Final = """\
{% extends "page.html" %}
{% block title %}Census{% endblock %}
{% block content %}<h1>{{ view.total }} servers</h1>{% endblock %}
"""
PAGE: Final = """\
    Page(
        "census", "/census/", "Census", "How many servers there are", Census,
        lambda library, _path, _query: census_page(library.workspace_name(), len(library.workspace().servers)),
    ),
)  # fmt: skip
"""


def page(root: Path) -> None:
    write(root, f"{PIPELINE}/dashboard/census.py", VIEW)
    write(root, f"{PIPELINE}/dashboard/templates/census.html", SHOWN)
    table, before = f"{PIPELINE}/dashboard/pages.py", "from mcpfactory_pipeline.dashboard.decision import"
    replace(root, table, before, f"from mcpfactory_pipeline.dashboard.census import Census, census_page\n{before}")
    replace(root, table, ")  # fmt: skip\n", PAGE)
    row = "| Runs | `/runs/` |"
    replace(root, "docs/reference/dashboard.md", row, f"| Census | `/census/` | how many |\n{row}")


COMMAND: Final = '''\
from __future__ import annotations

from mcpfactory import output


def greet() -> None:
    """Greet whoever types it."""
    output.line("hello")
'''


def command(root: Path) -> None:
    write(root, f"{CLI}/commands/greet.py", COMMAND)
    replace(
        root,
        f"{CLI}/main.py",
        '    "doctor": ',
        '    "greet": CommandEntry("Operate", f"{_COMMANDS}.greet:greet", "Greet whoever types it"),\n    "doctor": ',
    )
    example(root, "greet")


def example(root: Path, name: str) -> None:
    line = f'    "{name}": ("mcpfactory {name}", "mcpfactory {name} --json"),\n'
    replace(root, f"{CLI}/examples.py", '    "init": ', f'{line}    "init": ')


ANNOTATE: Final = '''\
"""Write a note about a server."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from mcpfactory_pipeline.operations.operation import Server
from mcpfactory_pipeline.operations.operation import Operation, OperationContext, OperationResult


class Annotate(Operation):
    """Write a note about a server."""

    command: ClassVar[str] = "pipeline annotate"
    title: ClassVar[str] = "Annotate"
    result: ClassVar[type[OperationResult]] = OperationResult

    server: Server
    note: Annotated[str, Field(description="Text of the note", examples=["prices change in May"])]

    def run(self, context: OperationContext) -> OperationResult:
        """Append the note to NOTES.md of the server."""
        file = context.workspace.server(self.server).folder / "NOTES.md"
        if not context.dry_run:
            with file.open("a", encoding="utf-8") as notes:
                notes.write(f"- {self.note}\\n")
        return OperationResult(message=f"{self.server}: {self.note}", dry_run=context.dry_run)
'''


def operation(root: Path) -> None:
    write(root, f"{PIPELINE}/operations/annotate.py", ANNOTATE)
    table = f"{PIPELINE}/operations/table.py"
    before = "from mcpfactory_pipeline.operations.decisions import"
    replace(root, table, before, f"from mcpfactory_pipeline.operations.annotate import Annotate\n{before}")
    replace(root, table, "    New, Adopt,", "    Annotate, New, Adopt,")
    commands = f"{CLI}/commands/pipeline.py"
    at = "mcpfactory_pipeline.operations.annotate:Annotate"
    place = f'    "annotate": CommandEntry("Decide", "{at}", "Write a note about a server"),\n'
    replace(root, commands, '    "verify": ', f'{place}    "verify": ')
    example(root, "pipeline annotate")


EXCLUDED: Final = """\
    exclude_tags: tuple[str, ...] = Field(
        default=(), description="Leave out operations with this tag (repeatable)", examples=[["internal"]]
    )
"""


def option(root: Path) -> None:
    field = "    include_methods: tuple[str, ...] = Field("
    replace(root, f"{CODEGEN}/curation.py", field, f"{EXCLUDED}{field}")
    place = f"{CODEGEN}/select.py"
    replace(root, place, '{**_ADDING, "include', '{**_ADDING, "exclude_tags": _by_tag, "include')
    line = "    if inclusion_from_extensions(operation.extensions) is False"
    reason = '        return f"{NOT_SELECTED}: it has an excluded tag"\n'
    replace(root, place, line, f'    if "exclude_tags" in hits:\n{reason}{line}')
    replace(
        root, "docs/reference/generated-server.md", "include_paths = []\n", "exclude_tags = []\ninclude_paths = []\n"
    )


PAUSE: Final = """\
    first_pause: float = Field(default=0.0, ge=0, description="seconds before the first stage of a run")
"""


def setting(root: Path) -> None:
    place = f"{PIPELINE}/workspace/settings.py"
    before = "    executor: str = Field("
    replace(root, place, before, f"{PAUSE}{before}")
    reader = f"{PIPELINE}/run/run.py"
    use = "    name = wanted or workspace.settings.pipeline.executor\n"
    replace(root, reader, use, f"    time.sleep(workspace.settings.pipeline.first_pause)\n{use}")


TRIALS: Final = {
    "Protocol revision": Trial(revision, "tests/runtime/spec_types/2027-01-01.json", "2027 or sort_inbox_items"),
    "Stage": Trial(stage, f"{CLI}/completion.py", "stage or written_down"),
    "Rule": Trial(rule, "tests/broken_servers/packages.py", "reference or whoever or Windbag or every_rule_has"),
    "Probe": Trial(
        probe, "tests/broken_servers/protocol.py", "probes or reference or whoever or Picky or every_rule_has"
    ),
    "Publish target": Trial(target, f"{CLI}/completion.py", "target"),
    "Template": Trial(template, "docs/reference/templates.md", "template_is_documented or tiny"),
    "Parameter style": Trial(style, f"{RUNTIME}/upstream/encoding.py", "query"),
    "Page of the dashboard": Trial(
        page, f"{PIPELINE}/dashboard/templates/census.html", "page_of_the_dashboard or census"
    ),
    "Operation": Trial(operation, f"{CLI}/commands/pipeline.py", "surfaces or has_examples"),
    "Option of an operation": Trial(option, "docs/reference/generated-server.md", "surfaces or select or key"),
    "Setting": Trial(setting, f"{PIPELINE}/run/run.py", "every_setting"),
    "Command": Trial(command, f"{CLI}/main.py", "command_line or has_examples"),
}
"""Changes by the name of the recipe."""
