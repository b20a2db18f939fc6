from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson, Factory

if TYPE_CHECKING:
    from mcpfactory_pipeline.ci.origin import Origin
    from mcpfactory_pipeline.init import Plan


def init(
    folder: Annotated[
        Path, typer.Argument(help="Where the workspace goes; made if it is not there. A repository may be there.")
    ] = Path(),
    name: Annotated[str, typer.Option(help="Name of the workspace; the folder's name by default.")] = "",
    factory: Factory = "",
    git: Annotated[
        bool, typer.Option("--git/--no-git", help="Run `git init` when the folder is in no repository.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask about a folder that holds other things.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a workspace: a repository that keeps many MCP servers and their state. What is there already stays as it is."""
    from mcpfactory_pipeline.init import carry_out, plan_workspace, repository

    folder_given, folder = folder, folder.resolve()
    plan = plan_workspace(folder, name, _origin(folder, factory))
    if dry_run:
        _show(plan, as_json=as_json)
        raise typer.Exit(Exit.BAD_INPUT if plan.blocked else Exit.OK)
    if plan.others and not plan.blocked and not yes:
        _ask(plan, as_json=as_json)
    workspace = carry_out(plan, git=git)
    lost = repository.ignored(folder, plan.written())
    if as_json:
        origin = str(plan.origin) if plan.origin else None
        steps = [step.to_json() for step in plan.steps]
        output.data({"workspace": workspace.name, "path": str(workspace.root), "factory": origin, "steps": steps, "ignored": lost})  # fmt: skip
        return
    output.line(f"workspace {workspace.name} is ready in {workspace.root}")
    for step in plan.steps:
        if step.action == "tell":
            output.note(f"{step.path}: {step.note}")
    if lost:
        output.note(f"git ignores {', '.join(lost)}")
        output.note(f"hint: git add --force {' '.join(lost)}")
    if plan.origin:
        output.note(f"jobs take mcpfactory from {plan.origin}")
    there = f"cd {folder_given} && " if folder != Path.cwd() else ""
    output.note(f"next: {there}mcpfactory new --from-openapi FILE")


def _origin(folder: Path, factory: str) -> Origin | None:
    """What the person named, or what works; a workspace keeps its own."""
    from mcpfactory_pipeline.ci.choice import choose_origin
    from mcpfactory_pipeline.workspace.workspace import CONFIG, read_toml

    file = folder / CONFIG
    known = file.is_file() and "workspace" in read_toml(file)
    return None if known and not factory else choose_origin(factory)


def _ask(plan: Plan, *, as_json: bool) -> None:
    """Shows what would be done beside the things of somebody else, and goes on when a person says yes."""
    shown = ", ".join(plan.others[:5]) + (" …" if len(plan.others) > 5 else "")
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        output.fail(
            f"{plan.folder} holds other things: {shown}",
            "mcpfactory init --dry-run says what would be done there, --yes does it",
            Exit.USAGE,
        )
    _show(plan, as_json=False)
    if not typer.confirm(f"{plan.folder} holds other things, which stay as they are. Do this?"):
        output.note("nothing was changed")
        raise typer.Exit(Exit.NO)


def _show(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        origin = str(plan.origin) if plan.origin else None
        steps = [step.to_json() for step in plan.steps]
        output.data({"workspace": None, "path": str(plan.folder), "factory": origin, "steps": steps})
        return
    if not plan.steps:
        output.line(f"{plan.folder} lacks nothing")
    for step in plan.steps:
        styles = {"blocked": "bad", "tell": "warn"}
        action = output.styled(step.action.ljust(7), styles.get(step.action, "dim"))
        output.line(f"{action} {step.path}" + (f"  ({step.note})" if step.note else ""))
