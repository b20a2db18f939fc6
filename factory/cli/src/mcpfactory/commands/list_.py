from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpfactory import output
from mcpfactory.options import AsJson


def list_servers(as_json: AsJson = False) -> None:
    """List the servers of this workspace."""
    from mcpfactory_pipeline.workspace import Workspace

    rows = [_row(server) for server in Workspace.find(Path.cwd()).servers()]
    if as_json:
        output.data(rows)
    elif rows:
        output.table(
            ("SERVER", "TEMPLATE", "TOOLS", "FROM"),
            [
                (
                    row["server"],
                    row["template"],
                    "-" if row["tools"] is None else str(row["tools"]),
                    row["source"] or "-",
                )
                for row in rows
            ],
        )
    else:
        output.note("no server yet; hint: mcpfactory new --from-openapi FILE")


def _row(server: Any) -> dict[str, Any]:
    report = server.folder / ".mcpfactory" / "report.json"
    tools = len(json.loads(report.read_bytes())["tools"]) if report.exists() else None
    return {
        "server": server.name,
        "path": str(server.folder),
        "template": server.template,
        "tools": tools,
        "source": server.source,
    }
