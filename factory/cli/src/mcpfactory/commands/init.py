"""Commands `mcpfactory init` and `mcpfactory schema`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, DryRun, Factory, Yes
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.ci.factory_origin import FactoryOrigin
    from mcpfactory_pipeline.maintenance.workspace_setup import WorkspaceSetup


def init(
    folder: Annotated[
        Path, typer.Argument(help="Workspace folder (created if missing); may be an existing repository")
    ] = Path(),
    factory: Factory = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Create a workspace for MCP servers and their state.

    A workspace is a repository: `git init` runs if the folder is not in a repository. Existing files stay unchanged.
    """
    from mcpfactory_pipeline.delivery.ci.factory_origin import describe_origin
    from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, git_ignored_paths, plan_workspace_setup

    folder_given, folder = folder, folder.resolve()
    setup = plan_workspace_setup(folder, origin=_chosen_origin(folder, factory))
    if dry_run:
        _show_setup(setup, as_json=as_json)
        raise typer.Exit(Exit.BAD_INPUT if setup.blocked else Exit.OK)
    if setup.others and not setup.blocked and not yes:
        _confirm_setup(setup, as_json=as_json)
    workspace = apply_setup(setup)
    lost = git_ignored_paths(folder, setup.written())
    if as_json:
        output.data({**_setup_json(setup), "workspace": workspace.name, "ignored": lost})
        return
    output.line(f"workspace {workspace.name} is ready in {workspace.root}")
    for change in setup.changes:
        if change.action == "tell":
            output.note(f"{change.path}: {change.note}")
    if lost:
        output.note(f"git ignores {', '.join(lost)}")
        output.note(f"hint: git add --force {' '.join(lost)}")
    if setup.origin:
        output.note(f"jobs install mcpfactory from {describe_origin(setup.origin)}")
    there = f"cd {folder_given} && " if folder != Path.cwd() else ""
    output.note(f"next: {there}mcpfactory new --from-openapi FILE")


def _chosen_origin(folder: Path, factory: str) -> FactoryOrigin | None:
    """Return the given or a default origin, or None to keep the origin of an existing workspace."""
    from mcpfactory_pipeline.delivery.ci.factory_origin import choose_origin
    from mcpfactory_pipeline.workspace.workspace import CONFIG, read_toml

    file = folder / CONFIG
    known = file.is_file() and "workspace" in read_toml(file)
    return None if known and not factory else choose_origin(factory)


def _confirm_setup(setup: WorkspaceSetup, *, as_json: bool) -> None:
    """Show the planned changes to a folder with unrelated files, and ask the user for confirmation."""
    shown = ", ".join(setup.others[:5]) + (" …" if len(setup.others) > 5 else "")
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.usage_error(
            f"{setup.folder} contains unrelated files: {shown}",
            "mcpfactory init --dry-run previews the changes, --yes makes them",
        )
    _show_setup(setup, as_json=False)
    if not typer.confirm(f"{setup.folder} contains unrelated files, which are not changed. Continue?"):
        output.note("nothing was changed")
        raise typer.Exit(Exit.NEGATIVE)


def _setup_json(setup: WorkspaceSetup) -> dict[str, Any]:
    origin = str(setup.origin) if setup.origin else None
    changes = [change.to_json() for change in setup.changes]
    return {"workspace": None, "path": str(setup.folder), "factory": origin, "changes": changes}


def _show_setup(setup: WorkspaceSetup, *, as_json: bool) -> None:
    if as_json:
        output.data(_setup_json(setup))
        return
    if not setup.changes:
        output.line(f"{setup.folder} is up to date")
    for change in setup.changes:
        styles = {"blocked": "bad", "tell": "warn"}
        action = output.styled(change.action.ljust(7), styles.get(change.action, "dim"))
        output.line(f"{action} {change.path}" + (f"  ({change.note})" if change.note else ""))


class SettingsFileKind(StrEnum):
    """A kind of settings file."""

    ROOT = "root"
    SERVER = "server"
    WAIVERS = "waivers"


def schema(
    kind: Annotated[
        SettingsFileKind | None,
        typer.Argument(
            metavar="root|server|waivers",
            help="Print only the schema for this kind of file [default: root and server]",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of mcpfactory.toml, for editors.

    Editors complete keys if the first line of a file is
    `#:schema ./mcpfactory.schema.json`.
    """
    output.data(settings_schema(kind.value if kind else ""))


def settings_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of settings file, or of root and server files together."""
    from mcpfactory_codegen.servers.config import ServerConfig
    from mcpfactory_codegen.settings import json_schema
    from mcpfactory_pipeline.workspace.settings import WorkspaceSettings
    from mcpfactory_pipeline.workspace.waivers import WaiverFile

    models = {"root": (WorkspaceSettings,), "server": (ServerConfig,), "waivers": (WaiverFile,)}
    return json_schema(*models.get(kind, (WorkspaceSettings, ServerConfig)))
