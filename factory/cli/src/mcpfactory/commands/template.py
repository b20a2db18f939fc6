"""`mcpfactory template`: list, show, create and check templates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from mcpfactory import completion, output
from mcpfactory.options import AsJson, selected_workspace
from mcpfactory.output import progress
from mcpfactory_runtime.errors import Exit, McpfactoryError

if TYPE_CHECKING:
    from mcpfactory_codegen.servers.generation import GeneratedServer
    from mcpfactory_codegen.servers.scaffold import ServerTemplate
    from mcpfactory_codegen.servers.template_answers import TemplateVariant

app = typer.Typer(help="Manage templates from mcpfactory, folders, git and packages.")

_TOLD: Final = ("name", "package", "distribution", "document")
_PATIENCE: Final = 1800  # seconds; timeout of the pipeline run of one variant
_LEAST: Final = 95
_DOCUMENT: Final = {
    "openapi": "3.1.0",
    "info": {"title": "Words", "version": "1"},
    "servers": [{"url": "https://words.example.com"}],
    "paths": {
        "/words": {
            "get": {
                "operationId": "listWords",
                "summary": "List words",
                "description": "Gives all words that are known, in their order.",
                "responses": {"200": {"description": "Words", "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}}},
            }
        }
    },
}  # fmt: skip

Source = Annotated[
    str,
    typer.Argument(
        metavar="TEMPLATE",
        help="Template: its NAME, a folder, git+https://…@REF#subdirectory=… or package:NAME==VERSION",
        autocompletion=completion.templates,
    ),
]


@app.command("list")
def list_templates(as_json: AsJson = False) -> None:
    """List shipped templates and the templates of this workspace.

    The templates of a workspace are in templates/.
    """
    from mcpfactory_codegen.servers.scaffold import find_template, templates
    from mcpfactory_pipeline.base.errors import WorkspaceError

    found = [(template, "shipped") for template in templates()]
    try:
        folders = sorted(path.parent for path in (selected_workspace().root / "templates").glob("*/copier.yml"))
    except WorkspaceError:
        folders = []
    shipped = {template.name for template, _ in found}
    found += [(find_template(str(folder)), "workspace") for folder in folders if folder.name not in shipped]
    if as_json:
        output.data([{"template": one.name, "about": one.about, "where": where} for one, where in found])
    else:
        output.table(("TEMPLATE", "WHERE", "MAKES"), [(one.name, where, one.about) for one, where in found])


@app.command("show")
def show(source: Source, as_json: AsJson = False) -> None:
    """Show a template's origin, questions and files.

    No code of the template is run.
    """
    from mcpfactory_codegen.servers.scaffold import find_template

    template = find_template(source)
    about = _described(template)
    if as_json:
        output.data(about)
        return
    output.line(f"{template.name}: {template.about or 'no description'}")
    output.line(f"  from {source}{f', {template.origin}' if template.origin else ''}")
    output.line(f"  {template.version}")
    if about["refused"]:
        output.warning(
            f"the template has {', '.join(about['refused'])} and is refused: templates must not run anything"
        )
    rows = [
        (one["name"], one["type"], one["default"], ", ".join(one["choices"]) or "-", one["help"])
        for one in about["questions"]
    ]
    if rows:
        output.table(("QUESTION", "TYPE", "DEFAULT", "CHOICES", "HELP"), rows)
    output.line("writes")
    for path in about["files"]:
        output.line(f"  {path}")


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new template (folder: templates/NAME)")],
    as_json: AsJson = False,
) -> None:
    """Create a template in templates/.

    The new template passes `mcpfactory template check`.
    """
    from mcpfactory_codegen.servers.config import NAME
    from mcpfactory_codegen.servers.scaffold import new_template

    if not NAME.match(name):
        output.usage_error(f"{name!r} is not a valid template name", "use a name that matches [a-z][a-z0-9-]*")
    folder = selected_workspace().root / "templates" / name
    files = new_template(folder)
    if as_json:
        output.data({"template": name, "path": str(folder), "files": list(files)})
        return
    output.line(f"made template {name}")
    output.line(f"  in {folder}")
    output.note(
        f"next: mcpfactory template check templates/{name}; mcpfactory new my-server --template templates/{name}"
    )


class _Step(NamedTuple):
    variant: str
    step: str
    good: bool
    message: str = ""


@app.command("check")
def check(source: Source, as_json: AsJson = False) -> None:
    """Check a template with every choice of every question.

    Make one server with the default answers, and one server for each choice. Lint, type-check, test and validate each
    server.
    """
    from mcpfactory_codegen.servers.scaffold import find_template
    from mcpfactory_codegen.servers.template_answers import read_questions, variants

    template = find_template(source)
    if template.origin:
        output.note(f"{source} is third-party: its files are rendered, and its tests run in the sandbox")
    tried = list(variants(read_questions(template), _TOLD, {}))
    steps: list[_Step] = []
    with TemporaryDirectory(prefix="mcpfactory-check-") as folder, progress(quiet=as_json) as tell:
        root = Path(folder, "workspace")
        root.mkdir()
        _mcpfactory(root, "init", ".")
        for number, variant in enumerate(tried, 1):
            tell(f"{variant.name} ({number} of {len(tried)})")
            steps += _tried(root, template, variant, f"variant-{number}")
    good = all(step.good for step in steps)
    if as_json:
        output.data({"template": template.name, "good": good, "steps": [step._asdict() for step in steps]})
    else:
        output.table(
            ("VARIANT", "STEP", "OUTCOME", ""),
            [(one.variant, one.step, "passed" if one.good else "failed", one.message) for one in steps],
        )
        output.line(f"{template.name}: {len(tried)} variants, {'all good' if good else 'not good'}")
    if not good:
        raise typer.Exit(Exit.NEGATIVE)


def _described(template: ServerTemplate) -> dict[str, Any]:
    """Describe a template as plain data, with the files that its default answers create."""
    from mcpfactory_codegen.servers.template_answers import read_questions, unsafe_settings

    asked = [one for one in read_questions(template) if not one.hidden and one.name not in _TOLD]
    files: list[str] = []
    refused = list(unsafe_settings(template))
    if not refused:
        with TemporaryDirectory(prefix="mcpfactory-show-") as folder:
            try:
                files = sorted(_made(Path(folder), template, "my-server", dry_run=True).files)
            except McpfactoryError as error:
                refused = [str(error)]
    return {
        "template": template.name,
        "about": template.about,
        "source": template.source,
        "origin": template.origin,
        "version": template.version,
        "questions": [
            {"name": q.name, "type": q.type, "default": q.default, "choices": list(q.choices), "help": q.help}
            for q in asked
        ],
        "files": files,
        "refused": refused,
    }


def _made(root: Path, template: ServerTemplate, name: str, **options: Any) -> GeneratedServer:
    """Create a server from the template in `servers/` of a folder, with a small API document if needed."""
    from mcpfactory_codegen.servers.create import create_server

    document = root / "words.json"
    document.write_text(json.dumps(_DOCUMENT))
    place = template.source if template.origin or template.shipped else str(template.folder)
    source = str(document) if template.requires_api_document else None
    return create_server(root / "servers", name=name, template=place, source=source, **options)


def _tried(root: Path, template: ServerTemplate, variant: TemplateVariant, name: str) -> list[_Step]:
    """Create a server from one variant, and check the server unless its creation failed."""
    try:
        made = _made(root, template, name, answers=variant.answers)
    except McpfactoryError as error:
        return [_Step(variant.name, "render", False, f"{error}; hint: {error.hint}")]
    steps = [_Step(variant.name, "render", True, f"{len(made.files)} files")]
    steps.append(_judged(variant, "lint", [*_program("ruff"), "check", "--no-cache", "."], made.path))
    if find_spec("mypy") is not None:
        command = [*_program("mypy"), "--strict", "--no-error-summary", "--cache-dir", os.devnull, "src"]
        steps.append(_judged(variant, "types", command, made.path))
    else:
        steps.append(_Step(variant.name, "types", True, "skipped: mypy is not installed"))
    _mcpfactory(root, "pipeline", "run", name)
    (status,) = json.loads(_mcpfactory(root, "pipeline", "status", name, "--json").stdout)
    for stage in ("build", "test", "validate"):
        found = status["stages"][stage]
        score = found.get("summary", {}).get("score")
        good = found["outcome"] == "passed" and (score is None or score >= _LEAST)
        message = f"score {score}" if score is not None else str(found.get("message") or "")
        steps.append(_Step(variant.name, stage, good, message))
    return steps


def _judged(variant: TemplateVariant, step: str, command: list[str], folder: Path) -> _Step:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=_PATIENCE, stdin=subprocess.DEVNULL
    )
    said = (done.stdout or done.stderr).strip()
    return _Step(variant.name, step, done.returncode == 0, "" if done.returncode == 0 else said[:2000])


def _program(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def _mcpfactory(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MCPFACTORY_")}
    return subprocess.run(
        [*_program("mcpfactory"), *command],
        cwd=root,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
        stdin=subprocess.DEVNULL,
    )
