"""The MCP server reonomy. This file is yours; `_generated` is rewritten whenever the API document changes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcpfactory_runtime import Server

from . import __version__, credits, properties
from .rates import keep_pace, note_end

server = Server(
    "reonomy",
    version=__version__,
    title="Reonomy",
    instructions=(
        "Commercial property in the United States. find_properties finds by place, kind, size and last sale; look_up_address tells what is at an "
        "address. Details are billed by property: search first (search_properties is free of that), then ask for those that matter. comparable_sales, "
        "who_owns and maturing_mortgages take ids."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")
server.before("get_property", "get_many_properties")(credits.asked)
server.before()(keep_pace)
server.after()(note_end)

_READS: Final = {"readOnlyHint": True, "openWorldHint": True}

for tool in (
    properties.find_properties,
    properties.look_up_address,
    properties.comparable_sales,
    properties.who_owns,
    properties.maturing_mortgages,
):
    server.tool(annotations=_READS)(tool)


@server.prompt(title="Whom should I call?")
def prospects(place: str, months: int = 12) -> str:
    """Ask for owners whose loans end soon.

    Args:
        place: the city or state.
        months: within so many.
    """
    return (
        f"Find properties in {place} whose mortgages end within {months} months, and who is reported to own them. Say before you read details how many "
        "properties that bills. Give one line for each: address, owner, lender, amount, when the loan ends."
    )


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
