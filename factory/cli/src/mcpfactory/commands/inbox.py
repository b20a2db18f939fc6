from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.options import AsJson, Names, Refresh, Show, selected_workspace
from mcpfactory.output import server_progress

_SHOWN: Final = 20
_FIRST: Final = """\
from your API document:  mcpfactory new --from-openapi FILE
from a template:         mcpfactory new hello --template minimal
to try it out:           mcpfactory demo-api, an example API with a document"""
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
    if not (items or workspace.servers()):
        output.line(_FIRST)
        return True
    _print(items, 5, commands=1)
    output.line()
    output.line("next:")
    for command in next_commands(items):
        output.line(f"  {command}")
    return True


def _with_clients(items: list[Any], workspace: Any) -> list[Any]:
    from mcpfactory_pipeline.delivery.clients.config_files import read_user_paths
    from mcpfactory_pipeline.views.inbox_notifications import add_affected_clients

    return add_affected_clients(items, workspace, read_user_paths(os.environ), Path.cwd())


def _print(items: list[Any], limit: int, commands: int | None = None) -> None:
    """Print at most `limit` groups of items with the same cause, and at most `commands` commands of each group."""
    from mcpfactory_pipeline.base.text import pluralize, printable_line, table_lines
    from mcpfactory_pipeline.views.inbox import group_by_cause

    if not items:
        output.line("nothing needs your attention")
        return
    groups = group_by_cause(items)
    rows = [_group_row(group) for group in groups[:limit]]
    for group, lines in zip(groups, table_lines(rows, output.width()), strict=False):
        kind = output.styled(group[0].kind, _STYLES.get(group[0].kind, "warn"))
        output.line(lines[0].replace(group[0].kind, kind, 1))
        for line in lines[1:]:
            output.line(line)
        # Do not wrap the command, so that users can copy it.
        for item in group[:commands]:
            output.line(f"    {output.styled(printable_line(item.command), 'dim')}")
        if more := len(group[commands:]) if commands else 0:
            output.line(f"    … and {pluralize(more, 'command')} more: mcpfactory inbox")
    if hidden := sum(map(len, groups[limit:])):
        output.line(f"… and {pluralize(hidden, 'thing')} more: mcpfactory inbox --show 0")


def _group_row(group: list[Any]) -> tuple[str, str, str]:
    """Return the kind, the number or the name of the servers, and the message of items with the same cause."""
    from mcpfactory_pipeline.base.text import format_duration, pluralize, printable_line
    from mcpfactory_pipeline.views.inbox import item_cause

    first, names = group[0], dict.fromkeys(item.server for item in group)
    who = pluralize(len(names), "server") if len(names) > 1 else first.server
    message = item_cause(first.message, first.server) if len(group) > 1 else first.message
    listed = f": {', '.join(names)}" if len(names) > 1 else ""
    wait = f"  ({format_duration(first.waited)})" if first.waited is not None else ""
    return first.kind, who, printable_line(message + listed) + wait
