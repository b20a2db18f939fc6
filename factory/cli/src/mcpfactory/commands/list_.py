from __future__ import annotations

from pathlib import Path

from mcpfactory import output
from mcpfactory.options import AsJson


def list_servers(as_json: AsJson = False) -> None:
    """List the servers of this workspace."""
    from mcpfactory_pipeline.views.status import list_servers as read_list
    from mcpfactory_pipeline.workspace.workspace import Workspace

    rows = read_list(Workspace.find(Path.cwd()))
    if as_json:
        output.data(rows)
    elif rows:
        output.table(
            ("SERVER", "TEMPLATE", "TOOLS", "FROM"),
            [
                (
                    row["server"],
                    row["template"] or "-",
                    "-" if row["tools"] is None else str(row["tools"]),
                    f"error: {row['problem']['message']}; hint: {row['problem']['hint']}"
                    if "problem" in row
                    else row["source"] or "-",
                )
                for row in rows
            ],
        )
    else:
        output.note("no server yet; hint: mcpfactory new --from-openapi FILE")
