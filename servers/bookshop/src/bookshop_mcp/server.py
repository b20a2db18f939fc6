"""The MCP server bookshop. This file is yours; `_generated` is rewritten whenever the API document changes."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_runtime import Server

from . import __version__

server = Server(
    "bookshop",
    version=__version__,
    title="Bookshop",
    instructions="Find books, read what others thought of them, and order them. Reading is open to everybody. Changing anything needs an API key.",
)
server.mount_manifest(Path(__file__).parent / "_generated")

# Tools of your own go here, and may use the API's, too:
#
# from ._generated.api import upstream
# from ._generated.tools import ...
#
# @server.tool
# async def count_words(text: str) -> int:
#     """Count the words of a text."""
#     return len(text.split())


def main() -> None:
    """Speak MCP on stdin and stdout, or with --http on a port."""
    server.run()
