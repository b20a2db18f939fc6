from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mcpfactory import completion, output
from mcpfactory.options import AsJson, Name, Names, Provider, check_provider, selected_workspace
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.channels.contract import Contract
    from mcpfactory_pipeline.delivery.releases.plan import ReleaseProposal
    from mcpfactory_pipeline.workspace.workspace import WorkspaceServer


_STEPS: Final = {"pending": "tag", "refused": "refused", "current": "-", "retired": "-"}

app = typer.Typer(help="Release servers: version, changelog, commit and tag.")


@app.command()
def plan(names: Names = None, as_json: AsJson = False) -> None:
    """Show the servers to release, with versions and reasons.

    Nothing is changed.
    """
    from mcpfactory_pipeline.delivery.releases.git import Repository
    from mcpfactory_pipeline.delivery.releases.plan import plan_releases

    workspace = selected_workspace()
    repository = Repository.around(workspace.root)
    found, dirty = plan_releases(workspace, repository, names, _read), repository.dirty()
    if as_json:
        output.data({"releases": [one.to_json() for one in found], "dirty": dirty})
    else:
        _show([one for one in found if names or one.status not in {"current", "retired"}])
        if dirty:
            output.note(f"{len(dirty)} files have uncommitted changes: commit them before `mcpfactory release apply`")
    if any(one.status == "refused" for one in found):
        raise typer.Exit(Exit.NEGATIVE)


@app.command("apply")
def apply(names: Names = None, as_json: AsJson = False) -> None:
    """Release the changed servers.

    Create one commit with versions and changelogs, and an annotated tag for each server. The command pushes nothing.
    """
    from mcpfactory_pipeline.delivery.releases.apply import apply_releases

    workspace = selected_workspace()
    made = apply_releases(workspace, names, _read)
    if as_json:
        output.data({"releases": [one.to_json() for one in made]})
        return
    for one in made:
        if one.outcome in {"released", "continued"}:
            output.line(
                f"{one.server} {one.version}: {one.outcome}, {one.tag}"
                + (f" at {one.commit[:12]}" if one.commit else "")
            )
        else:
            output.line(f"{one.server} {one.version}: {one.outcome}".replace(" :", ":"))
    released = [one.server for one in made if one.outcome in {"released", "continued"}]
    if not released:
        output.note("nothing to release")
    else:
        servers = " ".join(one.name for one in workspace.servers() if one.name in released)
        output.note(f"next: {f'mcpfactory pipeline run {servers}, then ' if servers else ''}git push --follow-tags")


@app.command()
def note(
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Description of the change, for users of the server")],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Set the kind of change: added, changed, fixed, removed or security",
            autocompletion=completion.kinds,
        ),
    ] = "changed",
    as_json: AsJson = False,
) -> None:
    """Write a changelog fragment for the next release."""
    from mcpfactory_pipeline.base.errors import ReleaseError
    from mcpfactory_pipeline.delivery.releases.changelog import write_changelog_fragment
    from mcpfactory_pipeline.delivery.releases.package_group import read_package_group

    workspace = selected_workspace()
    if (packages := read_package_group(workspace)) and packages.name == name:
        raise ReleaseError("note", f"{name} has no notes", hint="write the change below ## Unreleased in CHANGELOG.md")
    server = workspace.server(name)
    made = write_changelog_fragment(server.folder, text, kind)
    if as_json:
        output.data({"server": name, **made.to_json()})
    else:
        output.line(f"wrote servers/{name}/{made.file} ({made.step})")


@app.command()
def check(
    tag: Annotated[str, typer.Argument(metavar="TAG", help="Release tag, <server>-vX.Y.Z")],
    branch: Annotated[str, typer.Option(metavar="BRANCH", help="Refuse a tag that this branch does not contain")] = "",
    provider: Provider = "",
) -> None:
    """Check that a release tag can be published (for CI).

    The tag must name a release that may be published from the checked-out commit. With --provider, print `server=`,
    `version=`, `candidate=` and `run=` (a new run ID) for the next jobs.
    """
    check_provider(provider)
    from mcpfactory_pipeline.base.ids import new_id
    from mcpfactory_pipeline.delivery.releases.package_group import check_release_tag

    found = check_release_tag(selected_workspace(), tag, branch=branch)
    if provider:
        for key in ("server", "version", "candidate"):
            output.line(f"{key}={getattr(found, key)}")
        output.line(f"run={new_id()}")
    else:
        output.line(f"{found.tag}: {found.server} {found.version} at {found.commit[:12]}")


def _read(server: WorkspaceServer) -> Contract:
    from mcpfactory_pipeline.channels.contract import source_contract

    return asyncio.run(source_contract(server))


def _show(found: list[ReleaseProposal]) -> None:
    if not found:
        output.line("nothing to release")
        return
    rows = [
        (
            one.server,
            one.before or "-",
            one.version or "-",
            _STEPS.get(one.status) or (one.step if one.before else "first"),
            one.code if one.status == "refused" else "; ".join(one.reasons),
        )
        for one in found
    ]
    output.table(("SERVER", "RELEASED", "NEXT", "STEP", "WHY"), rows)
    for one in found:
        for change in one.changes:
            if change.kind != "cosmetic":
                output.line(f"  {one.server}: {change.kind}  {change.code}  {change.message}")
        if one.status == "refused":
            output.error(f"{one.server}: {one.code}: {one.message}")
            if one.hint:
                output.hint(one.hint)
