"""The MCP server reonomy. Edit this file; `_generated` is overwritten when the API document changes."""

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
        "Commercial property in the United States. find_properties finds by place, kind, size and last sale; look_up_address returns the property at an "
        "address. Details are billed per property: search first with search_properties, which is not billed, then read relevant ones. comparable_sales, "
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
    """Ask for owners whose loans mature soon.

    Args:
        place: city or state.
        months: maximum months until maturity.
    """
    return (
        f"Find properties in {place} whose mortgages end within {months} months, and who is reported to own them. Before you read details, report how many "
        "properties are billed. Give one line for each: address, owner, lender, amount, when the loan ends."
    )


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
