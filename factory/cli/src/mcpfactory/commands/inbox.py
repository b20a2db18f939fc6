from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Names, Refresh, Show, selected_workspace
from mcpfactory.output import server_progress

_SHOWN: Final = 20
_FIRST: Final = (
    "mcpfactory new --from-openapi FILE",
    "mcpfactory new hello --template minimal",
    "mcpfactory new --help",
)
_STYLES: Final = {
    "problem": "bad",
    "failed": "bad",
    "errored": "bad",
    "gate": "warn",
    "approval": "strong",
    "ready": "good",
}


def inbox(
    names: Names = None,
    refresh: Refresh = False,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify",
            help="Send each new item once to the receivers in [pipeline.events], and print the sent items",
        ),
    ] = False,
    show: Show = _SHOWN,
    as_json: AsJson = False,
) -> None:
    """Show what needs your attention and the next commands."""
    from mcpfactory_pipeline.views.inbox import read_inbox

    if notify:
        from mcpfactory_pipeline.views.inbox_notifications import notify_inbox_items

        sent = notify_inbox_items(selected_workspace(), names or None)
        if as_json:
            output.data([item.to_json() for item in sent])
        elif sent:
            _print(sent, show or len(sent))
        else:
            output.line("no notifications were sent")
        return
    workspace = selected_workspace()
    with server_progress() as count:
        items = _with_clients(read_inbox(workspace, names or None, refresh=refresh, count=count), workspace)
    if as_json:
        output.data([item.to_json() for item in items])
    else:
        _print(items, show or len(items))


def print_inbox_summary() -> bool:
    """Print the inbox, or return False outside a workspace."""
    from mcpfactory_pipeline.base.errors import WorkspaceError
    from mcpfactory_pipeline.views.inbox import next_commands, read_inbox

    try:
        workspace = selected_workspace()
    except WorkspaceError:
        return False
    with server_progress() as count:
        items = _with_clients(read_inbox(workspace, count=count), workspace)
    _print(items, 5)
    commands = next_commands(items) if items or workspace.servers() else _FIRST
    output.line()
    output.line("next:")
    for command in commands:
        output.line(f"  {command}")
    return True


def _with_clients(items: list[Any], workspace: Any) -> list[Any]:
    from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
    from mcpfactory_pipeline.views.inbox_notifications import add_affected_clients

    return add_affected_clients(items, workspace, read_user_paths(os.environ), Path.cwd())


def _print(items: list[Any], limit: int) -> None:
    from mcpfactory_pipeline.base.text import format_duration, pluralize, printable_line, table_lines

    if not items:
        output.line("nothing needs your attention")
        return
    shown = items[:limit]
    waits = [f"  ({format_duration(item.waited)})" if item.waited is not None else "" for item in shown]
    rows = [
        (item.kind, item.server, printable_line(item.message) + wait) for item, wait in zip(shown, waits, strict=True)
    ]
    for item, lines in zip(shown, table_lines(rows, output.width()), strict=True):
        kind = output.styled(item.kind, _STYLES.get(item.kind, "warn"))
        output.line(lines[0].replace(item.kind, kind, 1))
        for line in lines[1:]:
            output.line(line)
        # Do not wrap the command, so that users can copy it.
        output.line(f"    {output.styled(printable_line(item.command), 'dim')}")
    if len(items) > limit:
        output.line(f"… and {pluralize(len(items) - limit, 'thing')} more: mcpfactory inbox --show 0")
