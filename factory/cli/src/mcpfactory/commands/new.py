"""`mcpfactory init` and `new`: make a workspace, and a server in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.options import (
    Answers,
    AnswersFile,
    AsJson,
    DryRun,
    Factory,
    Mode,
    TemplateOption,
    Trust,
    Yes,
    answers_of,
    trusted,
    workspace_in,
)
from mcpfactory.output import print_addresses, print_overview, print_problems, progress
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.ci.origin import Origin
    from mcpfactory_pipeline.lifecycle.setup import Setup


def init(
    folder: Annotated[
        Path, typer.Argument(help="Workspace folder (created if missing); may be an existing repository")
    ] = Path(),
    factory: Factory = "",
    git: Annotated[
        bool, typer.Option("--git/--no-git", help="Run `git init` if the folder is not in a repository")
    ] = True,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create a workspace for MCP servers and their state.

    A workspace is a repository. Existing files stay unchanged.
    """
    from mcpfactory_pipeline.delivery.ci.origin import in_words
    from mcpfactory_pipeline.lifecycle import setup as repository
    from mcpfactory_pipeline.lifecycle.setup import apply_setup, read_setup

    folder_given, folder = folder, folder.resolve()
    setup = read_setup(folder, origin=_chosen_origin(folder, factory))
    if dry_run:
        _show_setup(setup, as_json=as_json)
        raise typer.Exit(Exit.BAD_INPUT if setup.blocked else Exit.OK)
    if setup.others and not setup.blocked and not yes:
        _confirm_setup(setup, as_json=as_json)
    workspace = apply_setup(setup, git=git)
    lost = repository.ignored(folder, setup.written())
    if as_json:
        origin = str(setup.origin) if setup.origin else None
        changes = [change.to_json() for change in setup.changes]
        output.data(
            {
                "workspace": workspace.name,
                "path": str(workspace.root),
                "factory": origin,
                "changes": changes,
                "ignored": lost,
            }
        )
        return
    output.line(f"workspace {workspace.name} is ready in {workspace.root}")
    for change in setup.changes:
        if change.action == "tell":
            output.note(f"{change.path}: {change.note}")
    if lost:
        output.note(f"git ignores {', '.join(lost)}")
        output.note(f"hint: git add --force {' '.join(lost)}")
    if setup.origin:
        output.note(f"jobs install mcpfactory from {in_words(setup.origin)}")
    there = f"cd {folder_given} && " if folder != Path.cwd() else ""
    output.note(f"next: {there}mcpfactory new --from-openapi FILE")


def _chosen_origin(folder: Path, factory: str) -> Origin | None:
    """Return the origin that the user named, else one that works; None if a workspace keeps its own."""
    from mcpfactory_pipeline.delivery.ci.origin import choose_origin
    from mcpfactory_pipeline.workspace.workspace import CONFIG, read_toml

    file = folder / CONFIG
    known = file.is_file() and "workspace" in read_toml(file)
    return None if known and not factory else choose_origin(factory)


def _confirm_setup(setup: Setup, *, as_json: bool) -> None:
    """Show the planned changes to a folder with unrelated files, and continue only if the user confirms."""
    shown = ", ".join(setup.others[:5]) + (" …" if len(setup.others) > 5 else "")
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.fail(
            f"{setup.folder} contains unrelated files: {shown}",
            "mcpfactory init --dry-run previews the changes, --yes makes them",
            Exit.USAGE,
        )
    _show_setup(setup, as_json=False)
    if not typer.confirm(f"{setup.folder} contains unrelated files, which are not changed. Continue?"):
        output.note("nothing was changed")
        raise typer.Exit(Exit.NO)


def _show_setup(setup: Setup, *, as_json: bool) -> None:
    if as_json:
        origin = str(setup.origin) if setup.origin else None
        changes = [change.to_json() for change in setup.changes]
        output.data({"workspace": None, "path": str(setup.folder), "factory": origin, "changes": changes})
        return
    if not setup.changes:
        output.line(f"{setup.folder} is up to date")
    for change in setup.changes:
        styles = {"blocked": "bad", "tell": "warn"}
        action = output.styled(change.action.ljust(7), styles.get(change.action, "dim"))
        output.line(f"{action} {change.path}" + (f"  ({change.note})" if change.note else ""))


_Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--from-openapi",
        "--from",
        metavar="[LABEL=]FILE|URL",
        help="API document: OpenAPI, or another kind in docs/how-to/other-sources.md (repeatable, with labels)",
    ),
]


def new(
    name: Annotated[str, typer.Argument(help="Server name [default: from the document's title]")] = "",
    source: _Sources = None,
    template: TemplateOption = "",
    answers_file: AnswersFile = None,
    answer: Answers = None,
    trust: Trust = False,
    name_option: Annotated[str, typer.Option("--name", help="Server name, same as NAME")] = "",
    include_tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Include only operations with this tag (repeatable)")
    ] = None,
    include_path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Include only matching paths (repeatable)")
    ] = None,
    include_operation: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Include only this operationId or 'GET /path' (repeatable)")
    ] = None,
    include_method: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="Of these, include only operations with this method (repeatable)"),
    ] = None,
    overlay: Annotated[
        list[str] | None,
        typer.Option(metavar="[LABEL=]FILE", help="OpenAPI overlay to apply to the document (repeatable)"),
    ] = None,
    shared_credentials: Annotated[
        bool, typer.Option("--shared-credentials", help="Merge equal security schemes of several documents")
    ] = False,
    mode: Mode = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a server from an API document or a template."""
    from mcpfactory_codegen.servers.create import create_server

    _refuse(source or [], template, (name, name_option), mode, overlay)
    workspace = workspace_in()
    make = partial(
        create_server,
        workspace.root / "servers",
        name=name or name_option or None,
        source=source or None,
        template=template or None,
        answers=answers_of(answers_file, answer),
        selection=_selection(include_tag, include_path, include_operation, include_method),
        overlays=tuple(overlay or ()),
        credentials="shared" if shared_credentials else "",
        mode=mode,
        permit=True,
    )
    trusted(template, lambda: make(dry_run=True).files, trust=trust or dry_run, as_json=as_json)
    with progress(quiet=as_json) as tell:
        created = make(dry_run=dry_run, notify=tell)
    if as_json:
        output.data(created.to_json(dry_run=dry_run))
    else:
        _print_text(created, workspace, template, dry_run=dry_run)


def _selection(*chosen: list[str] | None) -> Any:
    from mcpfactory_codegen.select import Selection

    return Selection(*(tuple(one or ()) for one in chosen))


def _refuse(document: list[str], template: str, names: tuple[str, str], mode: str, overlays: list[str] | None) -> None:
    if bool(document) == bool(template):
        output.fail(
            "a server is made from an API document or from a template: give exactly one of the two",
            "mcpfactory new --from-openapi FILE, or mcpfactory new NAME --template minimal",
            Exit.USAGE,
        )
    if all(names) and len(set(names)) > 1:
        output.fail(f"two names were given: {' and '.join(names)}", "give one of them", Exit.USAGE)
    if mode not in {"", "full", "search"}:
        output.fail(f"unknown mode {mode!r}", "use --mode full or --mode search", Exit.USAGE)
    if template and not document and (mode or overlays):
        output.fail(
            "--mode and --overlay require an API document",
            "leave them out, or mcpfactory new --from-openapi FILE",
            Exit.USAGE,
        )


def _print_text(created: Any, workspace: Any, template: str, *, dry_run: bool) -> None:
    earlier = _earlier(workspace, created.server)
    print_problems(created.problems)
    what = f"from template {template}" if template else f"{created.tools} tools from {created.operations} operations"
    if created.recognised:
        output.line(f"read {created.recognised}")
    output.line(f"{'would make' if dry_run else 'made'} server {created.server}: {what}")
    output.line(f"  in {created.path}")
    if dry_run:
        for path in sorted(created.files):
            output.line(f"  {path}")
    else:
        revive = f"mcpfactory pipeline revive {created.server}; " if earlier else ""
        start = " --start" if template else ""
        output.note(
            f"next: {revive}mcpfactory inspect {created.server}{start}; mcpfactory pipeline run {created.server}"
        )
    _advise(created)


def _advise(created: Any) -> None:
    """Print advice to read before the first call: the address of the API, and decisions to consider."""
    print_addresses(created.server, created.address)
    if created.alike:
        names = ", ".join(created.alike)
        output.note(f"several documents have the security scheme {names}, each with separate variables")
        output.note("  hint: if they use one account, --shared-credentials merges them")
    print_overview(created.overview)
    if created.overview is not None:
        _print_set_variables(created.overview.credentials, created.address)


def _print_set_variables(credentials: Iterable[str], address: Mapping[str, Any]) -> None:
    """Warn about variables of the new server that are already set: their values may belong to another API."""
    from mcpfactory_runtime.upstream.secrets import SETTINGS

    settings = (f"{address['prefix']}_{name}" for name in SETTINGS)
    names = (*credentials, *settings, *(one["variable"] for one in address["servers"]))
    there = [one for name in names for one in (name, f"{name}_FILE") if os.environ.get(one)]
    if there:
        output.warning(f"already set in this environment: {', '.join(there)}")
        output.note("  hint: unset variables of other APIs; this server would use them")


def _earlier(workspace: Any, name: str) -> bool:
    """Return True if an earlier server of this name was retired; its retirement must be reverted by hand."""
    from mcpfactory_pipeline.base.errors import StateError
    from mcpfactory_pipeline.state.store import Store

    store = Store(workspace)
    try:
        return name in store.servers() and store.state(name).retired is not None
    except StateError:
        return False
