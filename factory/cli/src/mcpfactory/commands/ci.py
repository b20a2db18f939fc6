"""`mcpfactory ci`: write the workflow for a CI provider, and run the steps of the workflow."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Factory, Names, Provider, check_provider, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.ci.ci_files import CiFile
    from mcpfactory_pipeline.delivery.ci.fold import FoldedServer, RefusedShardResult
    from mcpfactory_pipeline.workspace.workspace import Workspace

RunId = Annotated[str, typer.Option("--run", metavar="ID", help="Run ID from the output of `mcpfactory ci matrix`")]
app = typer.Typer(help="Run the pipeline in CI: assign jobs and merge results.")


@app.callback(invoke_without_command=True)
def ci(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Check that the workflow is up to date; write nothing")
    ] = False,
    against: Annotated[
        str, typer.Option(metavar="BASE", help="With --check: also check the changes since this commit")
    ] = "",
    pushed: Annotated[
        bool,
        typer.Option(
            "--pushed",
            help="With --against: check a push instead of a pull request",
        ),
    ] = False,
    results: Annotated[
        bool, typer.Option(help="With --against: check a pull request that CI jobs opened with their results")
    ] = False,
    summary: Annotated[Path | None, typer.Option(metavar="FILE", help="Append a Markdown summary to this file")] = None,
    release: Annotated[
        bool, typer.Option("--release", help="Write the workflow that publishes pushed release tags")
    ] = False,
    provider: Provider = "github",
    factory: Factory = "",
    as_json: AsJson = False,
) -> None:
    """Write the CI workflow.

    The file for GitHub is .github/workflows/mcpfactory.yml, or with --release mcpfactory-release.yml.
    """
    if context.invoked_subcommand is not None:
        return
    from mcpfactory_pipeline.delivery.ci.ci_files import PROVIDERS
    from mcpfactory_pipeline.delivery.ci.factory_origin import unverified_install_note

    check_provider(provider)
    if check and factory:
        output.usage_error("--check writes nothing and cannot be combined with --factory", "leave one of them out")
    if (against and not check) or ((pushed or results or summary) and not against):
        output.usage_error(
            "--against requires --check; --pushed, --results and --summary require --against",
            "mcpfactory ci --check --against BASE",
        )
    workspace, written = selected_workspace(), PROVIDERS[provider][release]
    again = f"mcpfactory ci{'' if provider == 'github' else f' --provider {provider}'}{' --release' if release else ''}"
    if check:
        notes = _review_notes(workspace, against, summary, quiet=as_json) if against else []
        _check(workspace, written, again)
        if against:
            _check_changes(workspace, against, pushed=pushed, results=results)
        changed = []
    else:
        changed, notes = _write(workspace, written, factory), []
    if unverified := unverified_install_note(selected_workspace(workspace.root).settings):
        output.note(unverified)
    if as_json:
        place = written.place.as_posix()
        output.data({"file": place, "written": place in changed, "changed": changed, "notes": notes})
        return
    for path in changed:
        output.line(f"wrote {path}")
    if written.place.as_posix() not in changed:
        output.line(f"{written.place} is up to date")
    if not check:
        _print_rest(selected_workspace(workspace.root), chosen=bool(factory))


def _write(workspace: Workspace, written: CiFile, factory: str) -> list[str]:
    from mcpfactory_pipeline.delivery.ci import ci_files
    from mcpfactory_pipeline.delivery.ci.factory_origin import choose_origin, read_origin

    before = read_origin(workspace.settings)
    changed = ci_files.change_factory_origin(workspace, choose_origin(factory)) if factory else []
    workspace = selected_workspace(workspace.root)
    if before and before.kind == "folder" and before != read_origin(workspace.settings):
        output.note(f"{before} is no longer used: git rm -r {before}")
    return [*changed, *ci_files.write_ci_file(workspace, written)]


def _check(workspace: Workspace, written: CiFile, again: str) -> None:
    """Exit with NEGATIVE if the workflow file or the stored factory wheels are out of date."""
    from mcpfactory_pipeline.delivery.ci.ci_files import is_ci_file_current
    from mcpfactory_pipeline.delivery.ci.factory_origin import read_origin, stale_factory_wheels_error

    if not is_ci_file_current(workspace, written):
        output.fail(f"{written.place} is out of date for this workspace and version", again, Exit.NEGATIVE)
    origin = read_origin(workspace.settings)
    if origin and (stale := stale_factory_wheels_error(workspace.root, origin)):
        output.fail(str(stale), stale.hint, Exit.NEGATIVE)


def _review_notes(workspace: Workspace, base: str, summary: Path | None, *, quiet: bool) -> list[dict[str, Any]]:
    """Print the notes for reviewers, and append them to the summary."""
    from mcpfactory_pipeline.delivery.ci import review_notes

    notes = review_notes.review_notes(*review_notes.changed_files(workspace.root, base))
    for one in () if quiet else notes:
        output.line(f"{one.kind}: {one.file}: {one.message}")
    if summary is not None:
        with summary.open("a", encoding="utf-8") as stream:
            stream.write(review_notes.notes_as_markdown(notes))
    return [one.to_json() for one in notes]


def _check_changes(workspace: Workspace, base: str, *, pushed: bool, results: bool) -> None:
    """Exit with NEGATIVE if a pull request or push has changes that `refusals` forbids."""
    from mcpfactory_pipeline.delivery.ci.pull_request import refusals

    if found := refusals(workspace, base, pushed=pushed, results=results):
        for one in found[:-1]:
            output.error(one.message, one.hint)
        output.fail(found[-1].message, found[-1].hint, Exit.NEGATIVE)


def _print_rest(workspace: Workspace, *, chosen: bool) -> None:
    from mcpfactory_pipeline.delivery.ci.factory_origin import describe_origin, read_origin, unconfigured_uv_error

    origin = read_origin(workspace.settings)
    if origin and chosen:
        output.note(f"jobs install mcpfactory from {describe_origin(origin)}")
    if origin and (rest := unconfigured_uv_error(workspace.root, origin)):
        output.note(f"{rest}; hint: {rest.hint}")
    if origin and workspace.settings.ci.install:
        output.note(f"jobs install mcpfactory with ci.install in mcpfactory.toml, not from {origin}")


@app.command()
def matrix(provider: Provider = "", as_json: AsJson = False) -> None:
    """Assign servers with stages to run to CI jobs.

    Folders with an invalid server name are reported and skipped. With --provider github, print `matrix`, `jobs` (the
    number of jobs) and `run` (the run ID) for $GITHUB_OUTPUT. With --provider gitlab, print the GitLab pipeline that
    runs the jobs and merges the jobs' results.
    """
    check_provider(provider)
    from mcpfactory_pipeline.base.ids import new_id
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.delivery.ci import fold
    from mcpfactory_pipeline.delivery.ci.factory_origin import read_ci_settings
    from mcpfactory_pipeline.delivery.ci.gitlab import gitlab_shards
    from mcpfactory_pipeline.run.run import plan_servers

    workspace = selected_workspace()
    settings, (due, unusable) = read_ci_settings(workspace.settings), fold.changed(plan_servers(workspace))
    for name in unusable:
        output.error(
            f"{f'servers/{name}'!r} cannot be the folder of a server; no CI job includes it",
            "give it a name like bookshop",
        )
    groups = fold.split_into_shards(due, settings.jobs, settings.servers)
    assignment, run_id = fold.matrix(groups), new_id()
    if provider == "gitlab":
        output.line(gitlab_shards(groups, settings, run_id).rstrip())
    elif provider == "github":
        output.line(f"matrix={json.dumps(assignment)}")
        output.line(f"jobs={len(groups)}")
        output.line(f"run={run_id}")
    elif as_json:
        output.data({**assignment, "run": run_id})
    else:
        for number, group in enumerate(groups, 1):
            output.line(f"{number}: {' '.join(group)}")
    output.note(f"{pluralize(len(due), 'server')} in {pluralize(len(groups), 'job')}")


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Output folder (created if missing)")],
    names: Names = None,
    servers: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Run these servers (names separated by spaces)",
        ),
    ] = "",
    run_id: RunId = "",
) -> None:
    """Run the stages that are not up to date, and write their results.

    Server code cannot change the results, because mcpfactory keeps the results in memory until the end. The exit code
    is the exit code of `mcpfactory pipeline run`, or 5 if a recorded file was changed.
    """
    from mcpfactory.commands.pipeline_run import warn_missing_isolation
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.delivery.ci import bundle
    from mcpfactory_pipeline.delivery.ci.fold import validate_run_id
    from mcpfactory_pipeline.isolation.processes import adopt_orphans, end_descendants
    from mcpfactory_pipeline.reporting import make_reporter
    from mcpfactory_pipeline.run.run import run_pipeline

    workspace = selected_workspace()
    reporter = make_reporter("live" if output.supports_styling(sys.stdout) else "plain")
    adopt_orphans()
    outcome = run_pipeline(
        workspace,
        [*(names or ()), *servers.split()] or None,
        reporter=reporter,
        run_id=validate_run_id(run_id) if run_id else "",
    )
    warn_missing_isolation(workspace, outcome)
    if left := end_descendants():
        output.note(f"ended {pluralize(left, 'orphan')} (processes that jobs left behind)")
    folder.mkdir(parents=True, exist_ok=True)
    packed = bundle.pack_run(workspace, folder, outcome.recorded)
    for server in packed:
        output.note(f"{server.server}: {server.files} files, {server.bytes} bytes in {folder}")
    raise typer.Exit(outcome.exit_code)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Output folder (created if missing)")],
    names: Names = None,
) -> None:
    """Write the full state of servers to a folder.

    The folder gets histories, logs, and artifacts named by their hash. Use this command in the publish job, which runs
    no server code. To write the results of a run, use `mcpfactory ci run`.
    """
    from mcpfactory_pipeline.base.text import pluralize
    from mcpfactory_pipeline.delivery.ci import bundle

    workspace = selected_workspace()
    folder.mkdir(parents=True, exist_ok=True)
    packed = bundle.pack(workspace, folder, [server.name for server in workspace.load_servers(names)[0]])
    for server in packed:
        output.line(f"{server.server}: {pluralize(server.files, 'file')}, {server.bytes} bytes")
    output.note(f"{pluralize(len(packed), 'server')} packed")


@app.command()
def fold(
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders with the results of the jobs")],
    run_id: RunId = "",
    assigned: Annotated[
        str,
        typer.Option(
            metavar="MATRIX",
            help="Accept from FOLDER/shard-N only what this JSON matrix assigns to job N",
        ),
    ] = "",
    server: Annotated[
        str, typer.Option(metavar="NAME", help="Accept only results of this server (instead of --assigned)")
    ] = "",
    branch: Annotated[str, typer.Option(metavar="BRANCH", help="Also merge decisions recorded on this branch")] = "",
    released: Annotated[
        bool, typer.Option("--released", help="Accept `promoted` and `published` events of the publish job")
    ] = False,
    summary: Annotated[Path | None, typer.Option(metavar="FILE", help="Append a Markdown summary to this file")] = None,
) -> None:
    """Merge the results of CI jobs into this workspace.

    The command updates state, history, artifacts and channels. For each server, the command accepts only stage events
    of this run. The events must be in a valid order, and the server must be assigned to the job. The files must match
    their hashes. The command refuses a server with an invalid result, and exits with 1.
    """
    from mcpfactory_pipeline.decisions.restore import restore
    from mcpfactory_pipeline.delivery.ci import fold
    from mcpfactory_pipeline.delivery.ci.fold import assigned_shard_results, named_shard_results, validate_run_id

    if not run_id or bool(assigned) == bool(server):
        output.usage_error(
            "the run ID or the assignment of the jobs is missing",
            "set --run ID, and either --assigned MATRIX or --server NAME",
        )
    workspace, run = selected_workspace(), validate_run_id(run_id)
    shard_results = assigned_shard_results(folders, assigned) if assigned else named_shard_results(folders, [server])
    found, refused = fold.fold_results(workspace, shard_results, run, released=released, branch=branch)
    if found:
        restore(workspace, [one.server for one in found], rebuild=False)
    if summary is not None:
        with summary.open("a", encoding="utf-8") as stream:
            stream.write(fold.summary(found, refused))
    _print_folded(found, refused)
    if refused:
        raise typer.Exit(Exit.NEGATIVE)


def _print_folded(found: list[FoldedServer], refused: list[RefusedShardResult]) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    for server in found:
        bad = [f"{stage} {outcome}" for stage, outcome in server.outcomes.items() if outcome != "passed"]
        words = f"{pluralize(server.events, 'event')}, {pluralize(server.files, 'file')}, {', '.join(bad) or 'passed'}"
        output.line(f"{server.server}: {words}{'; not here: ' if server.lacking else ''}{', '.join(server.lacking)}")
    for one in refused:
        output.line(f"{one.server}: refused, {one.message}")
        output.hint(one.hint)
    output.note(f"{pluralize(len(found), 'server')} folded" + (f", {len(refused)} refused" if refused else ""))
