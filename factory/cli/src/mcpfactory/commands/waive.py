from __future__ import annotations

from typing import Annotated

import typer

from mcpfactory import complete, output
from mcpfactory.options import AsJson, RequiredReason, workspace_in


def waive(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The id of a rule, as reports show it.")],
    server: Annotated[
        str,
        typer.Option("--server", metavar="NAME", help="A server of this workspace.", autocompletion=complete.servers),
    ],
    reason: RequiredReason,
    expires: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="The last day on which it is accepted.")],
    tool: Annotated[str, typer.Option(help="Accept it for this tool only.", autocompletion=complete.tools)] = "",
    as_json: AsJson = False,
) -> None:
    """Accept a rule's findings about a server for a time, by name and with a reason; in waivers.toml beside the server."""
    from mcpfactory_pipeline.checks.waive import waive as accept

    made = accept(workspace_in(), server, rule, reason=reason, until=expires, tool=tool)
    if as_json:
        output.data(made)
    else:
        about = f" for {tool}" if tool else ""
        output.line(f"{rule}{about} is waived at {server} until {expires} by {made['person']}: {made['file']}")
        if covers := made.get("covers"):
            output.line(covers)
