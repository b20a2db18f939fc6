from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson


def new(
    name: Annotated[str, typer.Argument(help="Name of the server; made from the document's title by default.")] = "",
    from_openapi: Annotated[str, typer.Option("--from-openapi", metavar="FILE|URL", help="An OpenAPI document.")] = "",
    template: Annotated[str, typer.Option(help="A template's name or folder.", autocompletion=complete.templates)] = "",
    name_option: Annotated[str, typer.Option("--name", help="The same as NAME.")] = "",
    include_tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only operations with this tag; repeatable.")
    ] = None,
    include_path: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only paths like this; repeatable.")
    ] = None,
    include_operation: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this operationId or 'GET /path'; repeatable.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Make nothing when the document has any problem.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be made, and make nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a server from an OpenAPI document or from a template."""
    from mcpfactory_codegen.create import create_server
    from mcpfactory_codegen.select import Selection
    from mcpfactory_pipeline.workspace import Workspace

    if bool(from_openapi) == bool(template):
        output.fail(
            "a server is made from an API document or from a template: give exactly one of the two",
            "mcpfactory new --from-openapi FILE, or mcpfactory new NAME --template minimal",
            Exit.USAGE,
        )
    if name and name_option and name != name_option:
        output.fail(f"two names were given: {name} and {name_option}", "give one of them", Exit.USAGE)
    workspace = Workspace.find(Path.cwd())
    created = create_server(
        workspace.root / "servers",
        name=name or name_option or None,
        source=from_openapi or None,
        template=template or None,
        selection=Selection(
            include_tags=tuple(include_tag or ()),
            include_paths=tuple(include_path or ()),
            include_operations=tuple(include_operation or ()),
        ),
        strict=strict,
        dry_run=dry_run,
    )
    if as_json:
        _print_json(created, dry_run=dry_run)
    else:
        _print_text(created, f"from template {template}" if template else "", dry_run=dry_run)


def _print_json(created: Any, *, dry_run: bool) -> None:
    fields = ("level", "code", "pointer", "line", "message", "hint")
    output.data(
        {
            "server": created.server,
            "path": str(created.path),
            "tools": created.tools,
            "operations": created.operations,
            "problems": [{field: getattr(problem, field) for field in fields} for problem in created.problems],
            **({"files": sorted(created.files), "dry_run": True} if dry_run else {}),
        }
    )


def _print_text(created: Any, origin: str, *, dry_run: bool) -> None:
    output.problems(created.problems)
    what = origin or f"{created.tools} tools from {created.operations} operations"
    output.line(f"{'would make' if dry_run else 'made'} server {created.server}: {what}")
    output.line(f"  in {created.path}")
    if dry_run:
        for path in sorted(created.files):
            output.line(f"  {path}")
    else:
        output.note(f"next: mcpfactory inspect {created.server}; mcpfactory pipeline run {created.server}")
