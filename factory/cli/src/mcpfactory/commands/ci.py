"""`mcpfactory ci`: the workflow for a CI provider, and the two steps that it consists of: dealing out and folding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Factory, Names, Provider, check_provider, workspace_in

if TYPE_CHECKING:
    from mcpfactory_pipeline.ci.providers import CiFile
    from mcpfactory_pipeline.workspace.workspace import Workspace

app = typer.Typer(
    help="Run the pipeline at a CI provider: changed servers assigned to jobs, results folded into one state."
)


@app.callback(invoke_without_command=True)
def ci(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say whether the workflow is what would be written.")
    ] = False,
    release: Annotated[
        bool, typer.Option("--release", help="The workflow that publishes a release when its tag is pushed.")
    ] = False,
    provider: Provider = "github",
    factory: Factory = "",
    as_json: AsJson = False,
) -> None:
    """Write what a CI provider runs: .github/workflows/mcpfactory.yml, or with --release mcpfactory-release.yml."""
    if context.invoked_subcommand is not None:
        return
    from mcpfactory_pipeline.ci import providers
    from mcpfactory_pipeline.ci.origin import choose_origin, read_origin
    from mcpfactory_pipeline.ci.providers import PROVIDERS

    check_provider(provider)
    if check and factory:
        output.fail("--check writes nothing, and --factory is written down", "leave one of them out", Exit.USAGE)
    workspace, written = workspace_in(), PROVIDERS[provider][release]
    again = f"mcpfactory ci{'' if provider == 'github' else f' --provider {provider}'}{' --release' if release else ''}"
    if check:
        _check(workspace, written, again)
        changed = []
    else:
        before = read_origin(workspace.config)
        changed = providers.change_origin(workspace, choose_origin(factory)) if factory else []
        workspace = workspace_in(workspace.root)
        if before and before.kind == "folder" and before != read_origin(workspace.config):
            output.note(f"nothing is taken from {before} any more: git rm -r {before}")
        changed += providers.write_ci_file(workspace, written)
    if as_json:
        place = written.place.as_posix()
        output.data({"file": place, "written": place in changed, "changed": changed})
        return
    for path in changed:
        output.line(f"wrote {path}")
    if written.place.as_posix() not in changed:
        output.line(f"{written.place} is up to date")
    if not check:
        _print_rest(workspace, chosen=bool(factory))


def _check(workspace: Workspace, written: CiFile, again: str) -> None:
    """End in NO when the file, or the wheels that its jobs install, are not what would be written."""
    from mcpfactory_pipeline.ci.origin import read_origin
    from mcpfactory_pipeline.ci.origin_files import stale_wheels
    from mcpfactory_pipeline.ci.providers import is_fresh

    if not is_fresh(workspace, written):
        output.fail(f"{written.place} is not what this workspace and this version would write", again, Exit.NO)
    origin = read_origin(workspace.config)
    if origin and (stale := stale_wheels(workspace.root, origin)):
        output.fail(str(stale), stale.hint, Exit.NO)


def _print_rest(workspace: Workspace, *, chosen: bool) -> None:
    """Print what the person has to see to."""
    from mcpfactory_pipeline.ci.origin import in_words, read_origin
    from mcpfactory_pipeline.ci.origin_files import unconfigured_project

    origin = read_origin(workspace.config)
    if origin and chosen:
        output.note(f"jobs take mcpfactory from {in_words(origin)}")
    if origin and (rest := unconfigured_project(workspace.root, origin)):
        output.note(f"{rest}; hint: {rest.hint}")
    if origin and "install" in workspace.config.get("ci", {}):
        output.note(f"jobs install mcpfactory by ci.install of mcpfactory.toml, and not from {origin}")


@app.command()
def matrix(
    provider: Provider = "",
    as_json: AsJson = False,
) -> None:
    """Assign the servers that have something to run to jobs.

    With --provider: print what its next step reads, for github lines for $GITHUB_OUTPUT (`matrix` and the number of `jobs`),
    for gitlab the pipeline that runs the jobs and folds their results.
    """
    check_provider(provider)
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.ci import shards
    from mcpfactory_pipeline.ci.gitlab import gitlab_shards
    from mcpfactory_pipeline.ci.settings import read_ci
    from mcpfactory_pipeline.run.run import plan_servers

    workspace = workspace_in()
    settings, due = read_ci(workspace.config), shards.changed(plan_servers(workspace))
    groups = shards.shards(due, settings.jobs, settings.servers)
    assignment = shards.matrix(groups)
    if provider == "gitlab":
        output.line(gitlab_shards(groups, settings).rstrip())
    elif provider == "github":
        output.line(f"matrix={json.dumps(assignment)}")
        output.line(f"jobs={len(groups)}")
    elif as_json:
        output.data(assignment)
    else:
        for number, group in enumerate(groups, 1):
            output.line(f"{number}: {' '.join(group)}")
    output.note(f"{pluralize(len(due), 'server')} in {pluralize(len(groups), 'job')}")


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to; made when it is not there.")],
    names: Names = None,
    as_json: AsJson = False,
) -> None:
    """Write what this job found and built into a folder: histories, logs, and each file below the hash of its bytes."""
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.ci import bundle

    workspace = workspace_in()
    folder.mkdir(parents=True, exist_ok=True)
    packed = bundle.pack(workspace, folder, [server.name for server in workspace.survey(names)[0]])
    if as_json:
        output.data([server.to_json() for server in packed])
        return
    for server in packed:
        output.line(f"{server.server}: {pluralize(server.files, 'file')}, {server.bytes} bytes")
    output.note(f"{pluralize(len(packed), 'server')} packed")


@app.command()
def fold(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="What the jobs packed.")],
    summary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append what was found to this file, as Markdown.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fold what jobs found and built into state, history, artifacts and channels of this workspace."""
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.ci import fold as folding
    from mcpfactory_pipeline.promotion.restore import restore

    workspace = workspace_in()
    found = folding.fold_in(workspace, folders)
    if found:
        restore(workspace, [server.server for server in found], rebuild=False)
    if summary is not None:
        with summary.open("a", encoding="utf-8") as stream:
            stream.write(folding.summary(found))
    if as_json:
        output.data([server.to_json() for server in found])
        return
    for server in found:
        bad = [f"{stage} {outcome}" for stage, outcome in server.outcomes.items() if outcome != "passed"]
        summary_line = (
            f"{pluralize(server.events, 'event')}, {pluralize(server.files, 'file')}, {', '.join(bad) or 'passed'}"
        )
        output.line(
            f"{server.server}: {summary_line}{'; not here: ' if server.lacking else ''}{', '.join(server.lacking)}"
        )
    output.note(f"{pluralize(len(found), 'server')} folded")
