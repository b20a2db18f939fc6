from __future__ import annotations

from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from mcpfactory import complete, output
from mcpfactory.exits import Exit
from mcpfactory.options import AsJson


def waive(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="The id of a rule, as reports show it.")],
    server: Annotated[
        str,
        typer.Option("--server", metavar="NAME", help="A server of this workspace.", autocompletion=complete.servers),
    ],
    reason: Annotated[str, typer.Option(help="Why it is accepted.")],
    until: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="The last day on which it is accepted.")],
    tool: Annotated[str, typer.Option(help="Accept it for this tool only.")] = "",
    person: Annotated[str, typer.Option(help="Who accepts it; by default whoever acts (MCPFACTORY_ACTOR).")] = "",
    as_json: AsJson = False,
) -> None:
    """Accept a rule's findings about a server for a time, by name and with a reason; in waivers.toml beside the server."""
    from mcpfactory_pipeline.checks.rules import RULES
    from mcpfactory_pipeline.ids import actor, utc_now
    from mcpfactory_pipeline.waivers import Waiver, add_waiver
    from mcpfactory_pipeline.workspace import Workspace

    known = [one.id for one in RULES]
    if rule not in known:
        near = get_close_matches(rule, known, 3)
        output.fail(
            f"there is no rule {rule!r}",
            f"perhaps {', '.join(near)}" if near else "docs/reference/rules.md",
            Exit.NOT_FOUND,
        )
    try:
        end = date.fromisoformat(until)
    except ValueError:
        output.fail(f"--until {until!r} is no date", "--until YYYY-MM-DD", Exit.USAGE)
    if end < utc_now().date():
        output.fail(f"--until {until} is over", "name a day to come: an expired waiver is none", Exit.USAGE)
    if not reason.strip():
        output.fail("a waiver without a reason is none", "--reason 'why it is accepted'", Exit.USAGE)
    folder = Workspace.find(Path.cwd()).server(server).folder
    waiver = Waiver(rule, person or actor(), reason, end, tool)
    file = add_waiver(folder, waiver)
    if as_json:
        output.data({**waiver.to_json(), "server": server, "file": str(file)})
    else:
        about = f" for {tool}" if tool else ""
        output.line(f"{rule}{about} is waived at {server} until {end} by {waiver.person}: {file}")
