from __future__ import annotations

from mcpfactory import output
from mcpfactory.options import AsJson, workspace_in


def list_servers(as_json: AsJson = False) -> None:
    """List the servers of this workspace."""
    from mcpfactory_pipeline.views.status import list_servers as read_list

    rows = read_list(workspace_in())
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
